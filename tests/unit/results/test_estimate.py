"""The sentence before a run, and the figures that it is made from."""

from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest

from agentevals_action import formatting
from agentevals_action.model.result import ErrorInfo, SampleResult, TestResult, TraceSummary
from agentevals_action.results.estimate import (
    EstimateTally,
    Figures,
    earlier_figures,
    sentence,
    tally,
)
from agentevals_action.results.jsonl import encode_row


def result(
    path: str = "a/EVAL.yaml", tokens: int | None = 100, samples: int = 1, **fields: Any
) -> TestResult:
    figures = TraceSummary(total_tokens=tokens)
    plain = {
        "cost_usd": 0.01,
        "duration_ms": 4000,
        "samples": tuple(SampleResult(trace_summary=figures) for _ in range(samples)),
    }
    return TestResult(
        timestamp="2026-01-01T00:00:00Z",
        eval_id="one",
        dataset="a",
        score=1,
        verdict="pass",
        eval_path=path,
        **{**plain, **fields},
    )


def test_tally__sums_each_suite() -> None:
    told = tally([result(), result(samples=2), result("b/EVAL.yaml", tokens=None, cost_usd=None)])
    assert told == {
        "a/EVAL.yaml": Figures(3, 0.02, 300, 12_000),
        "b/EVAL.yaml": Figures(1, None, None, 4000),
    }


def test_tally__cached_replies_and_errors_tell_nothing() -> None:
    added = EstimateTally()
    added.add(result(cached_replies=1))
    added.add(replace(result(samples=0), samples=(SampleResult(cached=True),)))
    added.add(result(error=ErrorInfo(kind="budget", message="over"), cost_usd=None))
    assert added.figures() == {}


@pytest.mark.parametrize(
    "wrong",
    [
        (0, None, None, 1.0),
        (1, -1.0, None, 1.0),
        (1, None, -1, 1.0),
        (1, None, None, float("inf")),
        (1, float("nan"), None, 1.0),
    ],
)
def test_figures__refuse_what_nobody_measured(
    wrong: tuple[int, float | None, int | None, float],
) -> None:
    with pytest.raises(ValueError, match="at least"):
        Figures(*wrong)


def test_sentence__by_the_last_run() -> None:
    last = {"a": Figures(100, 0.25, 2500, 410_000)}
    assert sentence({"a": 120}, {"a": 120}, samples=2, at_once=8, last=last) == (
        "Estimate: 120 tests × 2 samples on head and base: 480 attempts, about $1.20 and 12k tokens, 4 min 6 s at 8 at once "
        "(by the last run: $0.0025 and 4.1 s an attempt)"
    )


def test_sentence__base_with_other_tests() -> None:
    assert sentence({"a": 7, "b": 1}, {"a": 6}, samples=1, at_once=8, last={}).startswith(
        "Estimate: 8 tests on head and 6 on base: 14 attempts;"
    )


def test_sentence__nothing_known() -> None:
    assert sentence({"a": 1}, {}, samples=1, at_once=8, last={"b": Figures(1, 1, 1, 1)}) == (
        "Estimate: 1 test: 1 attempt; cost and time are unknown before the first run"
    )
    assert sentence({}, {}, samples=1, at_once=8, last={}).startswith(
        "Estimate: 0 tests: 0 attempts;"
    )


def test_sentence__known_in_part() -> None:
    last = {"a": Figures(10, 1, None, 10_000), "b": Figures(10, None, 20_000_000, 10_000)}
    assert sentence({"a": 10, "b": 10, "c": 5}, {}, samples=1, at_once=4, last=last) == (
        "Estimate: 25 tests: 25 attempts, about $1.00 and 20M tokens, 5.0 s at 4 at once (by the last run: $0.0500 and 1.0 s an attempt), "
        "without the 5 tests of suites that have not run before; the cost of 10 tests is unknown"
    )


def test_sentence__nothing_but_time() -> None:
    assert sentence(
        {"a": 2}, {}, samples=1, at_once=8, last={"a": Figures(1, None, None, 1500)}
    ) == (
        "Estimate: 2 tests: 2 attempts, 1.5 s at 8 at once (by the last run: 1.5 s an attempt); the cost of 2 tests is unknown"
    )


def test_sentence__above_the_limit() -> None:
    last = {"a": Figures(1, 0.5, None, 1000)}
    above = sentence({"a": 3}, {}, samples=1, at_once=8, last=last, limit=1)
    assert above.endswith("; that is above `max-cost-usd` ($1), so that some will not be made")
    assert "max-cost-usd" not in sentence({"a": 2}, {}, samples=1, at_once=8, last=last, limit=1)


def test_sentence__words_tokens_and_money_as_the_tables_do() -> None:
    last = {"a": Figures(1, None, 1234, 1000)}
    assert f"about {formatting.tokens(1234)} tokens" in sentence(
        {"a": 1}, {}, samples=1, at_once=8, last=last
    )
    dear = sentence(
        {"a": 3},
        {},
        samples=1,
        at_once=8,
        last={"a": Figures(1, 5e5, None, 1000)},
        limit=1_000_000,
    )
    assert "about $1,500,000.00, " in dear
    assert dear.endswith(
        "; that is above `max-cost-usd` ($1,000,000), so that some will not be made"
    )


def test_earlier_figures__impossible_ones_are_unknown(tmp_path: Path) -> None:
    path = tmp_path / "results.jsonl"
    path.write_bytes(encode_row(result(duration_ms=-1.0)) + b"\n")
    assert earlier_figures(path) == {}
    path.write_bytes(encode_row(result()) + b"\n")
    assert earlier_figures(path) == {"a/EVAL.yaml": Figures(1, 0.01, 100, 4000)}
