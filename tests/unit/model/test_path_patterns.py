"""Glob patterns over repository paths, and the rules of the input `watch`."""

import pytest

from agentevals_action.model.path_patterns import WatchRule, matches, read_rule, rule_for, selected


@pytest.mark.parametrize(
    ("path", "pattern", "is_matched"),
    [
        ("EVAL.yaml", "**/EVAL.yaml", True),
        ("a/b/EVAL.yaml", "**/EVAL.yaml", True),
        ("a/b/EVAL.yaml/c", "**/EVAL.yaml", True),
        ("a/MEVAL.yaml", "**/EVAL.yaml", False),
        ("a/eval.yaml", "**/EVAL.yaml", False),
        ("a/.hidden/x.eval.yaml", "**/*.eval.yaml", True),
        (".eval.yaml", "**/*.eval.yaml", True),
        ("a/eval.yaml", "**/*.eval.yaml", False),
        ("a/b.yaml", "a", True),
        ("a/b.yaml", "*.yaml", False),
        ("a/b.yaml", "a/*.{yml,yaml}", True),
        ("a/b/c.py", "a/**", True),
    ],
)
def test_matches__what_the_documentation_says(path: str, pattern: str, is_matched: bool) -> None:
    assert matches(path, pattern) is is_matched


def test_selected__the_last_that_matches_decides() -> None:
    patterns = ("**/*.yaml", "!drafts", "drafts/final.yaml")
    assert [
        selected(path, patterns)
        for path in ("a.yaml", "drafts/a.yaml", "drafts/final.yaml", "a.txt")
    ] == [True, False, True, False]


@pytest.mark.parametrize(
    ("path", "suite", "is_watched"),
    [
        ("src/agent.py", "evals/EVAL.yaml", True),
        ("src/deep/er/agent.py", "evals/EVAL.yaml", True),
        ("docs/agent.md", "evals/EVAL.yaml", False),
        ("billing/a.py", "evals/billing/EVAL.yaml", True),
        ("billing/a.py", "evals/support/EVAL.yaml", False),
        ("src/README.md", "evals/EVAL.yaml", False),
    ],
)
def test_rule_for__the_last_rule_that_matches_decides(
    path: str, suite: str, is_watched: bool
) -> None:
    rules = [read_rule(text) for text in ("src/**", "billing => evals/billing/**", "!src/**/*.md")]
    assert (rule_for(rules, path, suite) is not None) is is_watched


@pytest.mark.parametrize(
    ("text", "rule"),
    [
        (" src/** =>  evals/** ", "src/** => evals/**"),
        ("./src//x/", "src/x"),
        (".", "**"),
        ("!docs/**", "!docs/**"),
        ("src/[!a-c]*.{py,ts}", "src/[!a-c]*.{py,ts}"),
    ],
)
def test_read_rule__the_three_forms(text: str, rule: str) -> None:
    assert str(read_rule(text)) == rule


@pytest.mark.parametrize(
    "text",
    [
        *("", "!", "=> evals", "src =>", "a => b => c", "src/** -> evals", "src: evals", "'src'"),
        *("../src", "- src", "!src => evals", "src => !evals", "src # the agent", "src\\**"),
    ],
)
def test_read_rule__any_other_form_is_an_error(text: str) -> None:
    with pytest.raises(ValueError, match="write `glob`, `glob => suite glob` or `!glob`"):
        read_rule(text)


@pytest.mark.parametrize("form", ["{}", "!{}", "src => {}"])
def test_read_rule__too_many_alternatives_are_an_error(form: str) -> None:
    assert read_rule(form.format("{1..1000}"))
    with pytest.raises(ValueError, match=r"`\{1..1001\}` have more than 1,000 alternatives; write"):
        read_rule(form.format("{1..1001}"))


@pytest.mark.parametrize("text", ["vendor/lib", "vendor/lib/**", "vendor/**", "vendor/*"])
def test_covers__a_submodule_by_its_folder(text: str) -> None:
    """For git it is one path."""
    assert read_rule(text).covers("vendor/lib")
    assert not read_rule("vendor/lib/src/**").covers("vendor/lib")


def test_rule_for__from_the_root_and_from_the_working_directory() -> None:
    rule = WatchRule("src/**", "evals/**", folder="agents/billing")
    for path in ("src/a.py", "agents/billing/src/a.py"):
        assert rule_for([rule], path, "agents/billing/evals/EVAL.yaml") is rule
    assert rule_for([rule], "agents/other/src/a.py", "evals/EVAL.yaml") is None
