"""What is gathered of faults and warnings when there are very many, or very long ones."""

from agentevals_action.model.diagnostic import Diagnostic, Location
from agentevals_action.suites.files.diagnostics import (
    ENOUGH,
    Findings,
    Unreadable,
    nearest,
)


def at(line: int) -> Location:
    return Location("EVAL.yaml", line)


def test_faults__the_same_again_is_one() -> None:
    findings = Findings()
    for _ in range(3):
        findings.error(at(1), "wrong")
        findings.unreadable(Unreadable(Diagnostic(at(1), "wrong")))

    assert findings.error_count == len(findings.errors) == 1


def test_enough__is_said_where_reading_stops() -> None:
    findings = Findings()
    for line in range(1, ENOUGH + 1):
        assert not findings.are_enough(at(line))
        findings.error(at(line), "wrong")

    assert findings.are_enough(at(5_000))
    assert "the tests from here on were not read" in findings.errors[-1].problem


def test_fault__of_a_very_long_name_is_cut() -> None:
    findings = Findings()
    findings.error(at(1), "the name " + "x" * 100_000, "y" * 100_000)

    assert len(str(findings.errors[0])) < 2_100


def test_nearest__does_not_look_for_a_very_long_word() -> None:
    assert nearest("contians", ["contains"]) == "contains"
    assert nearest("contians" * 20, ["contains" * 20]) is None
