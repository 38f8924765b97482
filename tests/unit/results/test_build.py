"""Results of tests, and those that are extended by the fresh samples of a confirmation."""

from base64 import b64encode
from dataclasses import replace
from pathlib import Path

import pytest

from agentevals_action.model.result import Fingerprint, SampleResult, TestResult
from agentevals_action.model.trace import Spending
from agentevals_action.results.build import extended, test_result, with_suite_samples
from agentevals_action.results.summary import summarise
from tests.support import suites

test_result.__test__ = False  # type: ignore[attr-defined]  # pytest: not a test case

PASS = SampleResult(score=1.0, verdict="pass")
PRINT = Fingerprint(question="q", grading="g", agent="a")


def failing(*gates: str) -> SampleResult:
    return SampleResult(score=1.0, verdict="fail", gates_failed=gates)


def first(sample: SampleResult) -> TestResult:
    return TestResult(
        timestamp="",
        eval_id="test",
        dataset="suite",
        eval_path="EVAL.yaml",
        score=sample.score,
        verdict=sample.verdict,
        gates_failed=sample.gates_failed,
        samples=(sample,),
    )


@pytest.mark.parametrize(
    ("fresh", "gates"),
    [
        ([failing("a"), PASS, PASS], ()),
        ([failing("a"), failing("a"), PASS], ("a",)),
        # Each sample fails a gate, and no gate fails in most of them.
        ([failing("a"), failing("b"), failing("c")], ("a", "b", "c")),
        ([failing("a"), failing("b"), PASS, PASS], ()),
        # Too few to decide: the first sample counts too.
        ([failing("a")], ("a",)),
    ],
)
def test_extended__the_majority_of_the_fresh_samples_decides_about_gates(
    fresh: list[SampleResult], gates: tuple[str, ...]
) -> None:
    result = extended(first(failing("a")), fresh)
    assert result.gates_failed == gates
    assert (result.verdict == "fail") == bool(gates)
    assert len(result.fresh_samples) == len(fresh)


def test_suite_samples__count_in_what_the_test_spent_and_nowhere_else() -> None:
    result = extended(first(PASS), [PASS])
    fails = replace(failing("a"), score=0.0, spent=Spending(cost_usd=0.5, replies=2))
    taken = with_suite_samples(result, [fails, fails])
    assert taken == replace(result, suite_samples=(fails, fails), spent=taken.spent)
    assert (taken.spent.cost_usd, taken.spent.replies) == (1.0, 4)
    paid, free = (summarise("EVAL.yaml", "suite", [row], 1) for row in (taken, result))
    assert paid == replace(free, spent=taken.spent)


def test_test_result__names_the_files_and_images_of_a_question(tmp_path: Path) -> None:
    text = """\
name: support
tests:
  - id: seen
    input:
      - role: user
        content:
          - {type: text, value: What is this?}
          - {type: image, value: photos/cat.png}
          - {type: image, value: "data:image/png;base64,iVBORw0KGgo="}
          - {type: file, value: policy.md}
    assert: [{type: contains, value: a}]
"""
    files = {"EVAL.yaml": text, "policy.md": "Be kind.", "photos/cat.png": "x"}
    suite = suites.load_valid(suites.write(tmp_path, files))
    (test,) = suite.tests
    result = test_result(suite, test, (PASS,), 1.0, PRINT)
    named = ["What is this?", "[image: photos/cat.png]", "[image]", "[file: policy.md]"]
    assert result.question.splitlines() == named
    (message,) = result.input_messages
    assert [part["value"] for part in message["content"]] == [
        "What is this?",
        "photos/cat.png (not shown: too large, or no PNG, JPEG, GIF or WebP)",
        "data:image/png;base64,iVBORw0KGgo=",
        "policy.md",
    ]


def test_test_result__keeps_the_pictures_of_a_question_that_fit(tmp_path: Path) -> None:
    text = """\
name: support
input: [{role: user, content: [{type: image, value: first.png}]}]
tests:
  - id: seen
    input: [{role: user, content: [{type: image, value: big.png}, {type: image, value: a.gif}]}]
    assert: [{type: contains, value: a}]
"""
    data = {
        "first.png": b"\x89PNG\r\n\x1a\n" + bytes(3 * 90_000),
        "big.png": b"\x89PNG\r\n\x1a\n" + bytes(3 * 60_000),
        "a.gif": b"GIF89a",
    }
    for name, content in data.items():
        (tmp_path / name).write_bytes(content)
    suite = suites.load_valid(suites.write(tmp_path, {"EVAL.yaml": text}))
    result = test_result(suite, suite.tests[0], (PASS,), 1.0, PRINT)
    shown = [part["value"] for message in result.input_messages for part in message["content"]]
    assert shown[0] == f"data:image/png;base64,{b64encode(data['first.png']).decode()}"
    assert shown[1].startswith("big.png (not shown: too large")
    assert shown[2] == f"data:image/gif;base64,{b64encode(data['a.gif']).decode()}"


def test_test_result__keeps_all_messages_of_a_test_that_has_several(tmp_path: Path) -> None:
    text = """\
name: support
tests:
  - {id: one, input: Alone, assert: [{type: contains, value: a}]}
  - id: several
    input:
      - {role: system, content: Be brief.}
      - {role: user, content: [{type: text, value: Is it}, {type: text, value: open?}]}
    assert: [{type: contains, value: a}]
"""
    suite = suites.load_valid(suites.write(tmp_path, {"EVAL.yaml": text}))
    single, several = (test_result(suite, test, (PASS,), 1.0, PRINT) for test in suite.tests)
    assert (single.question, single.input_messages) == ("Alone", ())
    assert several.question == "Is it\nopen?"
    assert several.input_messages == (
        {"role": "system", "content": "Be brief."},
        {"role": "user", "content": "Is it\nopen?"},
    )
