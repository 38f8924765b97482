"""Which suites a change touches, and through which files."""

from dataclasses import replace
from pathlib import Path

import pytest

from agentevals_action.model.diagnostic import Diagnostic, Location, NamedFile
from agentevals_action.model.path_patterns import read_rule
from agentevals_action.model.suite import BrokenSuite, Suite
from agentevals_action.review.inputs.selection import Change, SelectedSuites, select_suites
from agentevals_action.system.git import ChangedFile


def suite(path: str = "evals/EVAL.yaml", *named: tuple[str, str]) -> Suite:
    files = (NamedFile(path, "suite"), *(NamedFile(*file) for file in named))
    root = Path("/repository")
    return Suite(path=path, name="suite", root=root, folder=root / "evals", files=files)


def broken(path: str) -> BrokenSuite:
    return BrokenSuite(path, (Diagnostic(Location(path, 3), "bad"),), (NamedFile(path, "suite"),))


def modified(*paths: str) -> tuple[ChangedFile, ...]:
    return tuple(ChangedFile(path, "modified") for path in paths)


def reasons(found: SelectedSuites) -> dict[str, tuple[str, ...]]:
    return {selection.path: selection.reasons for selection in found.selections}


A, B = suite("a/EVAL.yaml"), suite("b/EVAL.yaml")
RULES = ("src/**", "billing/** => b/**")
REMOVED_PROMPT = ChangedFile("prompts/old.md", "removed")
#: Suites, the change, and why each suite runs.
CASES: dict[str, tuple[list[Suite], Change, dict[str, tuple[str, ...]]]] = {
    "its own file": ([A, B], Change(modified(B.path)), {B.path: ("changed: b/EVAL.yaml",)}),
    "a named file": (
        [A, suite("EVAL.yaml", ("prompts/judge.md", "prompt"))],
        Change(modified("prompts/judge.md")),
        {"EVAL.yaml": ("changed: prompts/judge.md (prompt)",)},
    ),
    "a file beside it": ([A], Change(modified("a/other.json", "README.md")), {}),
    "the agent's code": (
        [A, B],
        Change(modified("src/agent.py")),
        {A.path: ("watch: src/agent.py",), B.path: ("watch: src/agent.py",)},
    ),
    "the agent's code of one suite": (
        [A, B],
        Change(modified("billing/x.py")),
        {B.path: ("watch: billing/x.py",)},
    ),
    "watched and gone": (
        [A],
        Change([ChangedFile("src/old.py", "removed")]),
        {A.path: ("watch: src/old.py",)},
    ),
    "watched and moved away": (
        [A],
        Change([ChangedFile("lib/a.py", "renamed", "src/a.py")]),
        {A.path: ("watch: lib/a.py",)},
    ),
    "named on base": (
        [A],
        Change([REMOVED_PROMPT], named={A.path: [NamedFile("prompts/old.md", "prompt")]}),
        {A.path: ("removed: prompts/old.md (prompt)",)},
    ),
    "imported": (
        [A, B],
        Change(modified("lib/x.py"), named={A.path: [NamedFile("lib/x.py", "", ("agent.py",))]}),
        {A.path: ("changed: lib/x.py (agent.py imports lib/x.py)",)},
    ),
    "imported by imported files": (
        [A],
        Change(modified("d.py"), named={A.path: [NamedFile("d.py", "", ("a.py", "b.py", "c.py"))]}),
        {A.path: ("changed: d.py (a.py imports b.py, which imports c.py, which imports d.py)",)},
    ),
    "a long chain of imports": (
        [A],
        Change(modified("z.js"), named={A.path: [NamedFile("z.js", "", ("a.js",) * 100)]}),
        {
            A.path: (
                "changed: z.js (a.js imports a.js, which imports a.js, which imports …, "
                "which imports z.js)",
            )
        },
    ),
    "all": (
        [A, B],
        Change(modified(B.path), everything=True),
        {
            A.path: ("all suites run, whatever changed",),
            B.path: ("all suites run, whatever changed", "changed: b/EVAL.yaml"),
        },
    ),
    "unknown files": (
        [A],
        Change(None),
        {A.path: ("the changed files are unknown, so all suites run",)},
    ),
    "a name that is not UTF-8": (
        [A],
        Change(modified("src/\udcff.py")),
        {A.path: ("watch: src/\\xff.py",)},
    ),
}


@pytest.mark.parametrize("name", CASES)
def test_select_suites__with_the_reasons(name: str) -> None:
    suites, change, expected = CASES[name]
    found = select_suites(suites, replace(change, watch=[[*map(read_rule, RULES)]]))
    assert reasons(found) == expected
    assert found.is_empty == (not expected)


def test_select_suites__a_renamed_suite_has_its_place_on_base() -> None:
    moved = ChangedFile(B.path, "renamed", A.path)
    found = select_suites([B], Change([moved], base_suites=[A.path]))
    (selection,) = found.selections
    assert selection.base_path == A.path
    assert selection.reasons == ("renamed: a/EVAL.yaml → b/EVAL.yaml",)
    assert found.gone == ()
    # A copied suite is new, and its original stays.
    (selection,) = select_suites([A, B], Change([replace(moved, status="copied")])).selections
    assert (selection.path, selection.base_path) == (B.path, None)


@pytest.mark.parametrize(
    ("suites", "file", "gone"),
    [
        ([A], ChangedFile(B.path, "removed"), (B.path,)),
        ([A], ChangedFile("b/EVAL.yaml.off", "renamed", B.path), (B.path,)),
        ([A, broken(B.path)], ChangedFile("x", "modified"), ()),
    ],
)
def test_select_suites__what_base_alone_has_is_gone(
    suites: list[Suite | BrokenSuite], file: ChangedFile, gone: tuple[str, ...]
) -> None:
    assert select_suites(suites, Change([file], base_suites=[A.path, B.path])).gone == gone


def test_select_suites__broken_and_touched_or_not() -> None:
    found = select_suites(
        [broken("a/EVAL.yaml"), broken("b/EVAL.yaml")], Change(modified("a/EVAL.yaml"))
    )
    assert [suite.path for suite in found.broken] == ["a/EVAL.yaml"]
    assert [suite.path for suite in found.unaffected] == ["b/EVAL.yaml"]
    assert found.selections == ()


def test_select_suites__many_files_are_counted_and_all_are_kept() -> None:
    paths = [f"src/{number}.py" for number in range(50)]
    change = Change(modified(*paths), watch=[[read_rule("src/**")]])
    [selection] = select_suites([suite()], change).selections
    assert len(selection.reasons) == 21
    assert selection.reasons[-1] == "and 30 more files"
    assert selection.files == tuple(paths)


def test_select_suites__an_uncovered_file_affects_all_or_only_broken_ones() -> None:
    files = modified("src/kb.py")
    every = select_suites([A, broken("b/EVAL.yaml")], Change(files, uncovered=files))
    assert reasons(every) == {A.path: ("no suite covers src/kb.py",)}
    assert [suite.path for suite in every.broken] == ["b/EVAL.yaml"]
    named = Change(files, uncovered=files, watch=[[read_rule("other/**")]] * 2)
    declared = select_suites([A, broken("b/EVAL.yaml")], named)
    assert reasons(declared) == {}
    assert [suite.path for suite in declared.broken] == ["b/EVAL.yaml"]
