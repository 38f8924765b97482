"""Whether old results still hold for a suite of the base."""

from collections.abc import Sequence
from pathlib import Path

import pytest

from agentevals_action.model.changed_file import ChangedFile
from agentevals_action.model.path_patterns import read_rule
from agentevals_action.review.change.selection import Change
from agentevals_action.review.change.unchanged_since import changed_since
from tests.support import base_tree, suites

OLD = "a" * 40


def asked(
    root: Path,
    *files: ChangedFile | str,
    watch: str = "",
    links: dict[str, list[str]] | None = None,
) -> str:
    there = {suite.path: suite for suite in (suites.load(root, base_tree.PATH),)}
    actual = [ChangedFile(one, "modified") if isinstance(one, str) else one for one in files]
    rules = (read_rule(watch),) if watch else ()
    return changed_since(
        there, rules, lambda _: actual, lambda files: Change(files, links=links or {})
    )(OLD, base_tree.PATH)


@pytest.fixture
def root(tmp_path: Path) -> Path:
    base_tree.greeter(tmp_path)
    return tmp_path


def test_untouched__by_a_change_of_something_else(root: Path) -> None:
    assert asked(root) == ""
    assert asked(root, "README.md", ChangedFile("src/agent.py", "removed")) == ""


@pytest.mark.parametrize(
    ("file", "words"),
    [
        (ChangedFile("evals/EVAL.yaml", "modified"), "changed: evals/EVAL.yaml"),
        (
            ChangedFile(".agentv/targets.yaml", "added"),
            "added: .agentv/targets.yaml (targets file)",
        ),
        (
            ChangedFile("evals/EVAL.yaml", "renamed", "old/EVAL.yaml"),
            "renamed: old/EVAL.yaml → evals/EVAL.yaml",
        ),
        (
            ChangedFile("evals/.agentv/targets.yaml", "removed"),
            "removed: evals/.agentv/targets.yaml (targets file)",
        ),
    ],
)
def test_untouched__not_by_a_change_of_what_it_names(
    root: Path, file: ChangedFile, words: str
) -> None:
    assert asked(root, file) == f"the base has changed it since ({words})"


def test_untouched__not_by_what_is_watched(root: Path) -> None:
    assert (
        asked(root, "src/agent.py", watch="src/**")
        == "the base has changed it since (watch: src/agent.py)"
    )
    assert asked(root, "src/agent.py", watch="src/** => other/**") == ""


def test_untouched__not_by_a_link_that_leads_to_what_it_names(root: Path) -> None:
    assert "changed: link" in str(asked(root, "link", links={"link": ["evals/EVAL.yaml"]}))


def test_untouched__a_broken_suite_or_none(tmp_path: Path) -> None:
    suites.write(tmp_path, {base_tree.PATH: "tests: 3\n"})
    assert asked(tmp_path, base_tree.PATH) == "the base has changed it since (the suite is broken)"
    assert changed_since({}, (), lambda _: (), Change)(OLD, "x") == "the base has no such suite"


def test_untouched__what_changed_is_asked_once_for_all_suites(root: Path) -> None:
    asked: list[str] = []

    def changes(ancestor: str) -> Sequence[ChangedFile] | str:
        asked.append(ancestor)
        return "nobody knows" if ancestor == OLD else ()

    there = {base_tree.PATH: suites.load_valid(root, base_tree.PATH)}
    untouched = changed_since(there, (), changes, Change)
    assert [
        untouched(OLD, base_tree.PATH),
        untouched(OLD, base_tree.PATH),
        untouched("c" * 40, base_tree.PATH),
    ] == [
        "nobody knows",
        "nobody knows",
        "",
    ]
    assert asked == [OLD, "c" * 40]
