"""Which suites a change touches, and through which files."""

from pathlib import Path

import pytest

from agentevals_action.model.diagnostic import Diagnostic, Location
from agentevals_action.model.files import NamedFile
from agentevals_action.model.path_patterns import read_rule
from agentevals_action.model.suite import BrokenSuite, Suite
from agentevals_action.review.change.selection import (
    Change,
    SelectedSuites,
    describe_uncovered,
    select_suites,
    useless_rules,
)
from agentevals_action.system.git import ChangedFile


def suite(path: str = "evals/EVAL.yaml", *named: tuple[str, str]) -> Suite:
    files = (NamedFile(path, "suite"), *(NamedFile(*file) for file in named))
    root = Path("/repository")
    return Suite(path=path, name="suite", root=root, folder=root / "evals", files=files)


def broken(
    path: str = "evals/EVAL.yaml", problem: str = "bad", at: str | None = None
) -> BrokenSuite:
    return BrokenSuite(
        path, (Diagnostic(Location(at or path, 3), problem),), (NamedFile(path, "suite"),)
    )


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
    "a removed file beside a judge": (
        [suite("EVAL.yaml", ("judges/check.py", "judge script"))],
        Change([ChangedFile("judges/rules.py", "removed")]),
        {"EVAL.yaml": ("removed: judges/rules.py (beside a judge)",)},
    ),
    "a removed targets file": (
        [suite("evals/a/EVAL.yaml"), B],
        Change([ChangedFile("evals/.agentv/targets.yaml", "removed")]),
        {"evals/a/EVAL.yaml": ("removed: evals/.agentv/targets.yaml (targets file)",)},
    ),
    "named on base": (
        [A],
        Change([REMOVED_PROMPT], base_files={A.path: [NamedFile("prompts/old.md", "prompt")]}),
        {A.path: ("removed: prompts/old.md (prompt)",)},
    ),
    "imported by a judge": (
        [A, B],
        Change(
            modified("lib/x.py"), imported={A.path: [NamedFile("lib/x.py", "imported by a judge")]}
        ),
        {A.path: ("changed: lib/x.py (imported by a judge)",)},
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
    found = select_suites(suites, change, [*map(read_rule, RULES)])
    assert reasons(found) == expected
    assert found.is_empty == (not expected)


def test_select_suites__a_renamed_suite_has_its_place_on_base() -> None:
    moved = ChangedFile("evals/new/EVAL.yaml", "renamed", "evals/old/EVAL.yaml")
    found = select_suites(
        [suite("evals/new/EVAL.yaml")], Change([moved], base_suites=["evals/old/EVAL.yaml"])
    )
    assert found.selections[0].base_path == "evals/old/EVAL.yaml"
    assert found.selections[0].reasons == ("renamed: evals/old/EVAL.yaml → evals/new/EVAL.yaml",)
    assert found.gone == ()


def test_select_suites__a_copied_suite_is_new_and_its_original_stays() -> None:
    copy = ChangedFile(B.path, "copied", A.path)
    (selection,) = select_suites([A, B], Change([copy])).selections
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
    assert [one.path for one in found.broken] == ["a/EVAL.yaml"]
    assert [one.path for one in found.unaffected] == ["b/EVAL.yaml"]
    assert found.selections == ()


def test_select_suites__a_suite_that_the_change_broke_by_taking_a_file_away() -> None:
    misses = broken(
        "EVAL.yaml", "there is no file 'prompts/judge.md' (looked for prompts/judge.md)"
    )
    for change in (
        ChangedFile("prompts/judge.md", "removed"),
        ChangedFile("prompts/new.md", "renamed", "prompts/judge.md"),
    ):
        assert select_suites([misses], Change([change])).broken == (misses,)


def test_select_suites__a_suite_that_an_imported_file_broke() -> None:
    invalid = broken("EVAL.yaml", at="tests/more.yaml")
    assert select_suites([invalid], Change(modified("tests/more.yaml"))).broken == (invalid,)


def test_select_suites__many_files_are_counted_and_all_are_kept() -> None:
    paths = [f"src/{number}.py" for number in range(50)]
    [selection] = select_suites(
        [suite()], Change(modified(*paths)), [read_rule("src/**")]
    ).selections
    assert len(selection.reasons) == 21
    assert selection.reasons[-1] == "and 30 more files"
    assert selection.files == tuple(paths)


@pytest.mark.parametrize(
    ("rule", "words"),
    [
        ("src/**", ""),
        ("gone/**", ""),
        ("vendor/lib/**", ""),
        ("vendor/lib/x.py", "the rule `vendor/lib/x.py` of `watch` matches no file"),
        ("!src/a.py", ""),
        ("src/** => evals/**", ""),
        ("scr/**", "the rule `scr/**` of `watch` matches no file"),
        ("!doc/**", "the rule `!doc/**` of `watch` matches no file"),
        ("src/** => eval/**", "the rule `src/** => eval/**` of `watch` matches no suite"),
    ],
)
def test_useless_rules__match_no_file_of_head_and_the_change_or_no_suite(
    rule: str, words: str
) -> None:
    change = Change([ChangedFile("gone/a.py", "removed")])
    files = ["src/a.py", "vendor/lib"]
    found = useless_rules([read_rule(rule)], files, change, ["evals/EVAL.yaml"])
    assert [words in one for one in found] == ([True] if words else [])


def test_describe_uncovered__names_the_rules_that_would_cover_the_files() -> None:
    files = modified(
        "src/kb.py", "src/deep/x.py", "agent.py", "README.md", "docs/a.py", "lib/a", "b"
    )
    assert describe_uncovered(files, SelectedSuites()) == (
        "no suite and no rule of `watch` covers `src/kb.py`, `src/deep/x.py`, `agent.py`, `lib/a` and `b`: "
        "if they belong to the agent, add `src/**`, `agent.py`, `lib/**` and `b` to `watch`"
    )
    assert describe_uncovered(modified("src/kb.py"), SelectedSuites()) == (
        "no suite and no rule of `watch` covers `src/kb.py`: "
        "if it belongs to the agent, add `src/**` to `watch`"
    )


@pytest.mark.parametrize("path", ["README.md", "docs/how/to.py", "LICENSE", "a/notes.txt"])
def test_describe_uncovered__documentation_needs_no_suite(path: str) -> None:
    assert describe_uncovered(modified(path), SelectedSuites()) == ""


def test_describe_uncovered__a_deleted_suite_is_listed_as_gone() -> None:
    assert describe_uncovered(modified("a/EVAL.yaml"), SelectedSuites(gone=("a/EVAL.yaml",))) == ""
