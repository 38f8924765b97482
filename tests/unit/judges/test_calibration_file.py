"""`calibration.json`: written and read."""

import json
from datetime import date
from pathlib import Path

import pytest

from agentevals_action.judges.calibration_file import parse_calibration, write_calibration
from agentevals_action.model.judge import Calibration, Estimate, JudgeCalibration


def judge() -> JudgeCalibration:
    known = {
        "models": ("judge-2026-01-01",),
        "type": "llm_judge",
        "evaluators": ("is-right",),
        "target": "judge",
        "passes": 30,
        "fails": 9,
        "tests": 39,
        "agreement": Estimate(value=0.9, low=0.81),
        "sensitivity": Estimate(value=0.9, low=0.76),
        "specificity": Estimate(value=1.0, low=0.72),
        "kappa": None,
        "unstable": None,
    }
    return JudgeCalibration.model_validate(known)


def calibration(*digits: str) -> Calibration:
    judges = {digit * 64: judge() for digit in digits}
    return Calibration(day=date(2026, 1, 2), samples=1, judges=judges)


def test_file__is_read_as_it_was_written_and_sorted(tmp_path: Path) -> None:
    file, other = tmp_path / "calibration.json", tmp_path / "other.json"
    write_calibration(file, calibration("b", "a"))
    write_calibration(other, calibration("a", "b"))
    assert file.read_bytes() == other.read_bytes()
    content = parse_calibration(file.read_bytes())
    assert content.errors == ()
    assert content.calibration == calibration("a", "b")
    assert content.calibration.judges["b" * 64].specificity == Estimate(value=1.0, low=0.72)


def written(**fields: object) -> bytes:
    data = calibration("a").model_dump(mode="json")
    return json.dumps(data | fields).encode()


KEY = b"a" * 64
FAULTS = {
    b"": "1:1: this is not valid JSON",
    b"[1]": "1:1: this calibration is a list; write it again",
    b'{"version": 1,\n "version": 1}': "2:2: the key 'version' is repeated",
    written(version=2): "1:13: `version` is the number 2; write 1",
    written(day="never"): "`day` is the text 'never'; write a day as YYYY-MM-DD",
    written(samples=0): "`samples` is the number 0; write a number that is 1 or more",
    calibration("a", "b").model_dump_json().encode().replace(b"b" * 64, KEY): "is repeated",
    written(floor=0.7): "the field `floor` of this calibration is unknown",
    written().replace(b"0.72", b"1.72"): ".specificity.low` is the number 1.72",
    written().replace(b"0.72", b"NaN"): "this is not valid JSON",
    written().replace(b"a" * 64, b"a"): "`judges.a` is the text 'a'",
}


@pytest.mark.parametrize(("data", "error"), FAULTS.items(), ids=range(len(FAULTS)))
def test_file__with_a_fault(data: bytes, error: str) -> None:
    content = parse_calibration(data, "agents/calibration.json")
    assert content.calibration is None
    (found,) = content.errors
    assert str(found).startswith("agents/calibration.json:1:") or error.startswith("2:2")
    assert error in str(found)
