"""The errors and warnings of a file when there are very many, or very long ones."""

from agentevals_action.model.diagnostic import Diagnostic, Location
from agentevals_action.suites.documents.diagnostics import (
    MAX_ERRORS,
    DiagnosticCollector,
    Unreadable,
)


def at(line: int) -> Location:
    return Location("EVAL.yaml", line)


def test_errors__each_is_listed_once() -> None:
    collector = DiagnosticCollector()
    for _ in range(3):
        collector.error(at(1), "wrong")
        collector.unreadable(Unreadable(Diagnostic(at(1), "wrong")))

    assert collector.error_count == len(collector.errors) == 1


def test_warnings__one_that_is_repeated_has_the_first_location() -> None:
    collector = DiagnosticCollector()
    for line in (3, 2, 5):
        collector.warn(at(line), "odd")

    assert collector.warnings == (Diagnostic(at(2), "odd"),)


def test_error_limit__is_an_error_where_reading_stops() -> None:
    collector = DiagnosticCollector()
    for line in range(1, MAX_ERRORS + 1):
        assert not collector.error_limit_reached(at(line))
        collector.error(at(line), "wrong")

    assert collector.error_limit_reached(at(5_000))
    assert "the tests from here on were not read" in collector.errors[-1].problem


def test_error__of_a_very_long_name_is_cut() -> None:
    collector = DiagnosticCollector()
    collector.error(at(1), "the name " + "x" * 100_000, "y" * 100_000)

    assert len(str(collector.errors[0])) < 2_100
