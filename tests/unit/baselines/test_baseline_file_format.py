"""The baseline file: written, read back, damaged."""

import json
from dataclasses import replace

import pytest

from agentevals_action.baselines import baseline_file_format
from agentevals_action.baselines.baseline_file_format import ANSWER_LIMIT, Damaged, StoredSuite
from agentevals_action.model.result import SampleResult, TestResult, TraceSummary
from tests.support import results

COMMIT, TIME = "c" * 40, "2026-01-01T00:00:00Z"


def stored(*rows: TestResult, path: str = "evals/EVAL.yaml") -> StoredSuite:
    return StoredSuite(path, "suite", COMMIT, TIME, rows)


def text(*suites: StoredSuite) -> str:
    return baseline_file_format.format_suites(suites)[0]


def sampled(id: str, *scores: float, answer: str = "an answer") -> TestResult:
    samples = tuple(
        SampleResult(
            score=score,
            verdict="pass" if score >= 0.8 else "fail",
            candidate_answer=answer,
            output_messages=({"role": "assistant", "content": answer},),
            file_changes="diff",
            trace_summary=TraceSummary(
                tool_call_count=2, cost_usd=0.00123456789, duration_ms=1234.5678, tool_names=("a",)
            ),
        )
        for score in scores
    )
    return replace(results.result(id), samples=samples, cost_usd=0.1234567891, duration_ms=99.9)


def test_file__reads_what_it_wrote() -> None:
    rows = (sampled("b", 1.0, 0.2), results.result("a", "fail", gates=("g", "h"), failed=("g",)))
    (suite,) = baseline_file_format.read_suites(text(stored(*rows)))
    assert (suite.path, suite.name, suite.commit, suite.time) == (
        "evals/EVAL.yaml",
        "suite",
        COMMIT,
        TIME,
    )
    first, second = suite.results
    assert (first.eval_id, first.verdict, first.gates_failed) == ("a", "fail", ("g",))
    assert [gate.name for gate in first.gates] == ["g", "h"]
    assert (second.score, second.fingerprint, second.timestamp) == (
        0.6,
        results.fingerprint(),
        TIME,
    )
    older, latest = second.samples
    assert (older.output_messages, older.file_changes, older.score) == ((), None, 1.0)
    assert latest.output_messages == ({"role": "assistant", "content": "an answer"},)
    assert (latest.candidate_answer, second.candidate_answer, latest.file_changes) == (
        "an answer",
        "an answer",
        "diff",
    )
    assert latest.trace_summary == TraceSummary(
        tool_call_count=2, cost_usd=0.001235, duration_ms=1235, tool_names=("a",)
    )
    assert (second.cost_usd, second.duration_ms) == (0.123457, 100)


def test_file__is_the_same_whatever_the_order() -> None:
    one, other = (
        stored(sampled("a", 1), sampled("b", 1), path="x"),
        stored(sampled("c", 1), path="a"),
    )
    turned = stored(sampled("b", 1), sampled("a", 1), path="x")
    assert text(one, other) == text(other, turned)
    assert text(*baseline_file_format.read_suites(text(one, other))) == text(one, other)


def test_file__has_one_line_a_test() -> None:
    lines = text(stored(sampled("a", 1, answer="line\nline"), sampled("b", 1))).split("\n")
    assert [sorted(json.loads(line)) for line in lines[:2]] == [
        ["agentevalsBaseline"],
        ["commit", "name", "suite", "tests", "time"],
    ]
    assert [json.loads(line)["id"] for line in lines[2:4]] == ["a", "b"]
    assert lines[4:] == [""]


def test_file__separators_in_an_answer_break_no_line() -> None:
    answer = "one\u2028two\u0085three\x1cfour"
    (suite,) = baseline_file_format.read_suites(text(stored(sampled("a", 1, answer=answer))))
    assert suite.results[0].candidate_answer == answer


def test_file__an_answer_that_is_too_long_is_left_out_and_named() -> None:
    written, cut = baseline_file_format.format_suites(
        [stored(sampled("long", 1, answer="x" * ANSWER_LIMIT), sampled("short", 1))]
    )
    assert cut == ("evals/EVAL.yaml: long",)
    long, short = baseline_file_format.read_suites(written)[0].results
    assert (long.samples[0].output_messages, long.verdict) == ((), "pass")
    assert short.samples[0].output_messages


def test_file__keeps_no_more_than_the_latest_samples() -> None:
    (suite,) = baseline_file_format.read_suites(
        text(stored(sampled("a", *([0.0] * 10), *([1.0] * 50))))
    )
    assert [sample.score for sample in suite.results[0].samples] == [1.0] * 50


def test_file__leaves_out_what_confirmed_a_suspicion() -> None:
    row = replace(sampled("a", 1.0, 0.0, 0.0), confirming=2)
    (suite,) = baseline_file_format.read_suites(text(stored(row)))
    assert [sample.score for sample in suite.results[0].samples] == [1.0]


WHOLE = text(stored(sampled("a", 1), sampled("b", 1)))


@pytest.mark.parametrize(
    ("damaged", "words"),
    [
        ("", "it does not begin like a baseline file"),
        ("{}\n", "line 1: `agentevalsBaseline`: it is missing"),
        ('{"agentevalsBaseline":2}\n', "it does not begin like a baseline file of version 1"),
        ("name: a suite\n", "line 1: it is not valid JSON"),
        (
            "\n".join(WHOLE.split("\n")[:3]),
            "line 2: the suite `evals/EVAL.yaml` has 1 of its 2 tests",
        ),
        (WHOLE.replace('"tests":2', '"tests":1'), "line 4: `suite`: it is missing"),
        (
            WHOLE + "\n".join(WHOLE.split("\n")[1:]),
            "line 5: the suite `evals/EVAL.yaml` is there twice",
        ),
        (
            WHOLE.replace('"verdict":"pass"', '"verdict":"great"', 1),
            "line 3: `samples[0].verdict`: expected `pass`, `borderline` or `fail`",
        ),
        (WHOLE + "<<<<<<< HEAD\n", "line 5: it is not valid JSON"),
        (WHOLE[:-40], "line 4: it is not valid JSON"),
        (
            '{"agentevalsBaseline":1,"x":' + "[" * 20_000 + "]" * 20_000 + "}",
            "line 1: it is nested more than 200 levels deep",
        ),
    ],
)
def test_file__damaged_is_never_half_read(damaged: str, words: str) -> None:
    with pytest.raises(Damaged) as caught:
        baseline_file_format.read_suites(damaged)
    assert str(caught.value).startswith(words)


def test_storable__neither_an_error_nor_what_depends_on_nobody_knows_what() -> None:
    assert baseline_file_format.why_not_storable(results.result()) == ""
    assert (
        baseline_file_format.why_not_storable(results.result(verdict=None))
        == "it ended in an error"
    )
    bare = replace(results.result(), fingerprint=None)
    assert (
        baseline_file_format.why_not_storable(bare)
        == "it has no fingerprint of its question, evaluators and agent"
    )
