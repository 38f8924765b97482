"""Which suites a change touches, and through which files."""

from pathlib import Path

import pytest

from agentevals_action.model.changed_file import ChangedFile
from agentevals_action.model.diagnostic import Diagnostic, Location
from agentevals_action.model.path_patterns import read_rule
from agentevals_action.model.suite import BrokenSuite, NamedFile, Suite
from agentevals_action.model.target import TargetTable
from agentevals_action.review.change.selection import (
    Change,
    SelectedSuites,
    describe_uncovered,
    select_suites,
    useless_rules,
)


def suite(path: str = "evals/EVAL.yaml", *named: tuple[str, str]) -> Suite:
    files = (NamedFile(path, "suite"), *(NamedFile(*file) for file in named))
    return Suite(
        path, "suite", Path("/repository"), Path("/repository/evals"), (), TargetTable(), files
    )


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


def test_select_suites__its_own_file() -> None:
    found = select_suites(
        [suite("a/EVAL.yaml"), suite("b/EVAL.yaml")], Change(modified("b/EVAL.yaml"))
    )
    assert reasons(found) == {"b/EVAL.yaml": ("changed: b/EVAL.yaml",)}
    assert found.selections[0].files == ("b/EVAL.yaml",)


def test_select_suites__a_named_file_with_its_role() -> None:
    found = select_suites(
        [suite("EVAL.yaml", ("prompts/judge.md", "prompt"))], Change(modified("prompts/judge.md"))
    )
    assert reasons(found) == {"EVAL.yaml": ("changed: prompts/judge.md (prompt)",)}


def test_select_suites__what_lies_beside_is_not_touched() -> None:
    found = select_suites(
        [suite("evals/EVAL.yaml", ("evals/data.json", "file"))],
        Change(modified("evals/other.json", "README.md")),
    )
    assert found == SelectedSuites()


def test_select_suites__the_agents_code_is_for_watch() -> None:
    rules = [read_rule("src/**"), read_rule("billing/** => b/**")]
    suites = [suite("a/EVAL.yaml"), suite("b/EVAL.yaml")]
    assert reasons(select_suites(suites, Change(modified("src/agent.py")), rules)) == {
        "a/EVAL.yaml": ("watch: src/agent.py",),
        "b/EVAL.yaml": ("watch: src/agent.py",),
    }
    assert list(reasons(select_suites(suites, Change(modified("billing/x.py")), rules))) == [
        "b/EVAL.yaml"
    ]


def test_select_suites__a_watched_file_that_is_gone_or_moved_away() -> None:
    rules = [read_rule("src/**")]
    assert reasons(select_suites([suite()], Change([ChangedFile("src/old.py", "removed")]), rules))
    assert reasons(
        select_suites([suite()], Change([ChangedFile("lib/a.py", "renamed", "src/a.py")]), rules)
    )


def test_select_suites__a_renamed_suite_has_its_place_on_base() -> None:
    moved = ChangedFile("evals/new/EVAL.yaml", "renamed", "evals/old/EVAL.yaml")
    found = select_suites(
        [suite("evals/new/EVAL.yaml")], Change([moved], base_suites=["evals/old/EVAL.yaml"])
    )
    assert found.selections[0].base_path == "evals/old/EVAL.yaml"
    assert found.selections[0].reasons == ("renamed: evals/old/EVAL.yaml → evals/new/EVAL.yaml",)
    assert found.gone == ()


def test_select_suites__a_copied_suite_is_new_and_its_original_stays() -> None:
    copy = ChangedFile("b/EVAL.yaml", "copied", "a/EVAL.yaml")
    found = select_suites([suite("a/EVAL.yaml"), suite("b/EVAL.yaml")], Change([copy]))
    assert [(selection.path, selection.base_path) for selection in found.selections] == [
        ("b/EVAL.yaml", None)
    ]


def test_select_suites__a_deleted_suite_is_gone() -> None:
    change = Change(
        [ChangedFile("b/EVAL.yaml", "removed")], base_suites=["a/EVAL.yaml", "b/EVAL.yaml"]
    )
    assert select_suites([suite("a/EVAL.yaml")], change).gone == ("b/EVAL.yaml",)


def test_select_suites__a_suite_renamed_to_what_is_none_is_gone() -> None:
    change = Change(
        [ChangedFile("EVAL.yaml.off", "renamed", "EVAL.yaml")], base_suites=["EVAL.yaml"]
    )
    assert select_suites([], change).gone == ("EVAL.yaml",)


def test_select_suites__a_suite_that_is_broken_is_not_gone() -> None:
    assert select_suites([broken("EVAL.yaml")], Change([], base_suites=["EVAL.yaml"])).gone == ()


def test_select_suites__a_file_beside_a_judge_that_is_gone() -> None:
    there = suite("EVAL.yaml", ("judges/check.py", "judge script"))
    found = select_suites([there], Change([ChangedFile("judges/rules.py", "removed")]))
    assert reasons(found) == {"EVAL.yaml": ("removed: judges/rules.py (beside a judge)",)}


def test_select_suites__a_nearer_targets_file_that_is_gone() -> None:
    change = Change([ChangedFile("evals/.agentv/targets.yaml", "removed")])
    found = select_suites([suite("evals/a/EVAL.yaml"), suite("other/EVAL.yaml")], change)
    assert reasons(found) == {
        "evals/a/EVAL.yaml": ("removed: evals/.agentv/targets.yaml (targets file)",)
    }


def test_select_suites__a_file_that_the_suite_named_on_base() -> None:
    change = Change(
        [ChangedFile("prompts/old.md", "removed")],
        base_files={"EVAL.yaml": [NamedFile("prompts/old.md", "prompt")]},
    )
    assert reasons(select_suites([suite("EVAL.yaml")], change)) == {
        "EVAL.yaml": ("removed: prompts/old.md (prompt)",)
    }


def test_select_suites__all_when_asked_and_why_each_is_touched() -> None:
    found = select_suites(
        [suite("a/EVAL.yaml"), suite("b/EVAL.yaml")],
        Change(modified("b/EVAL.yaml"), everything=True),
    )
    assert reasons(found) == {
        "a/EVAL.yaml": ("all suites run, whatever changed",),
        "b/EVAL.yaml": ("all suites run, whatever changed", "changed: b/EVAL.yaml"),
    }


def test_select_suites__all_when_the_change_could_not_be_scored() -> None:
    found = select_suites([suite("a/EVAL.yaml"), broken("b/EVAL.yaml")], Change(None))
    assert reasons(found) == {"a/EVAL.yaml": ("the changed files are unknown, so all suites run",)}
    assert [one.path for one in found.broken] == ["b/EVAL.yaml"]


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


def test_select_suites__a_name_that_is_no_text_can_be_written() -> None:
    [selection] = select_suites(
        [suite()], Change(modified("src/\udcff.py")), [read_rule("src/**")]
    ).selections
    assert selection.reasons == ("watch: src/\\xff.py",)
    "".join((*selection.reasons, *selection.files)).encode("utf-8")


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


def test_select_suites__what_a_judge_imports_on_either_side() -> None:
    helper = NamedFile("lib/rules.py", "imported by a judge")
    change = Change(modified("lib/rules.py"), imported={"evals/EVAL.yaml": (helper,)})
    found = select_suites((suite("evals/EVAL.yaml"), suite("other/EVAL.yaml")), change)
    assert reasons(found) == {"evals/EVAL.yaml": ("changed: lib/rules.py (imported by a judge)",)}
