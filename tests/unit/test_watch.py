"""The agent's own code, as `watch` names it."""

import pytest

from agentevals_action.model.watch import WatchRule, read_rule, rule_for


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


def test_watch_rule__as_it_is_written() -> None:
    assert str(read_rule(" src/** =>  evals/** ")) == "src/** => evals/**"
    assert str(WatchRule("src/**")) == "src/**"
