"""Which judges decide by a floor and a calibration."""

import math
from dataclasses import replace
from datetime import date
from typing import Any

import pytest

from agentevals_action.model.judge import (
    ALL_DECIDE,
    Calibration,
    Floor,
    JudgeCalibration,
    JudgeRule,
    read_floor,
)
from agentevals_action.model.result import EvaluatorResult, JudgeRecord

KEY = "a" * 64
JUDGE = JudgeRecord(key=KEY, models=("m-1",))
SPECIFICITY = Floor("specificity", 0.7)


def estimate(low: float, value: float = 0.9) -> dict[str, float]:
    return {"value": value, "low": low}


def calibrated(key: str = KEY, **fields: Any) -> Calibration:
    """A calibration of one judge, every bound of which is 0.8."""
    judge = JudgeCalibration.model_validate(
        {
            "models": ["m-1", "m-2"],
            "type": "llm_judge",
            "evaluators": ["kind"],
            "target": "judge",
            "passes": 30,
            "fails": 10,
            "tests": 40,
            "unstable": None,
            **{
                name: estimate(0.8) for name in ("agreement", "sensitivity", "specificity", "kappa")
            },
            **fields,
        }
    )
    return Calibration(day=date(2026, 1, 1), samples=1, judges={key: judge})


#: The calibration, the judge, the floor, and words of the reason; empty if the judge decides.
STANDINGS: dict[str, tuple[Calibration | None, JudgeRecord, tuple[Floor, ...], str]] = {
    "no floor": (None, JUDGE, (), ""),
    "no calibration": (None, JUDGE, (SPECIFICITY,), "there is no `calibration.json`"),
    "above": (calibrated(), JUDGE, (SPECIFICITY,), ""),
    "at the floor": (calibrated(specificity=estimate(0.7)), JUDGE, (SPECIFICITY,), ""),
    "under": (
        calibrated(specificity=estimate(0.5249)),
        JUDGE,
        (SPECIFICITY,),
        "its specificity is at least 0.52 (95 %), under the floor of 0.7; label ",
    ),
    "just under": (
        calibrated(specificity=estimate(0.6999)),
        JUDGE,
        (SPECIFICITY,),
        "at least 0.69 (95 %)",
    ),
    "the value is under, too": (
        calibrated(specificity=estimate(0.3, 0.6)),
        JUDGE,
        (SPECIFICITY,),
        "correct its prompt by its mistakes",
    ),
    "not known": (
        calibrated(specificity=None),
        JUDGE,
        (SPECIFICITY,),
        "its specificity is not known from so few labels; label failing answers",
    ),
    "all labels agree": (
        calibrated(specificity=estimate(0.6, 1.0), fails=6),
        JUDGE,
        (SPECIFICITY,),
        "label 3 more failing answers",
    ),
    "passing answers": (
        calibrated(sensitivity=estimate(0.6, 1.0), passes=6),
        JUDGE,
        (Floor("sensitivity", 0.7),),
        "label 3 more passing answers",
    ),
    "a second condition": (
        calibrated(kappa=estimate(0.1)),
        JUDGE,
        (SPECIFICITY, Floor("kappa", 0.4)),
        "its kappa is at least 0.10 (95 %), under the floor of 0.4; label more answers",
    ),
    "a bound below 0": (
        calibrated(kappa=estimate(-0.031)),
        JUDGE,
        (Floor("kappa", 0.4),),
        "its kappa is at least -0.04",
    ),
    "far above the labels": (
        calibrated(specificity=estimate(0.6, 1.0)),
        JUDGE,
        (Floor("specificity", 0.9999),),
        "label more failing answers",
    ),
    "another key": (
        calibrated(key="b" * 64),
        JUDGE,
        (SPECIFICITY,),
        "it is not calibrated with its present prompt, parameters and target",
    ),
    "another model": (
        calibrated(),
        JudgeRecord(key=KEY, models=("m-1", "m`9`")),
        (SPECIFICITY,),
        "`m9` judged, and `m-1` and `m-2` was calibrated",
    ),
    "no reply": (calibrated(), JudgeRecord(key=KEY), (SPECIFICITY,), ""),
}


@pytest.mark.parametrize("name", STANDINGS)
def test_judge__decides_or_is_advisory(name: str) -> None:
    calibration, judge, floor, words = STANDINGS[name]
    reason = JudgeRule(floor, calibration).why_advisory(judge)
    assert words in reason
    assert bool(words) is bool(reason)


#: The same of a judge of pairs, where `fail-on` names `pairwise`.
OF_PAIRS: dict[str, tuple[Calibration | None, tuple[Floor, ...], str]] = {
    "calibrated": (calibrated(length=estimate(0.8)), (), ""),
    "no calibration": (None, (), "there is no `calibration.json`"),
    "as often wrong as right": (
        calibrated(type="pairwise", agreement=estimate(0.49)),
        (),
        "its agreement is at least 0.49 (95 %), under the floor of 0.5; label 1 more pair in",
    ),
    "likes length": (
        calibrated(length=estimate(0.799)),
        (),
        "filler turns up to 21% of its verdicts (95 %), over the limit of 20%",
    ),
    "not asked with filler": (calibrated(), (), "not known whether filler turns its verdicts"),
    "under the floor": (
        calibrated(length=estimate(0.8), specificity=estimate(0.6)),
        (SPECIFICITY,),
        "its specificity is at least 0.60",
    ),
}


@pytest.mark.parametrize("name", OF_PAIRS)
def test_judge_of_pairs__decides_or_is_advisory(name: str) -> None:
    calibration, floor, words = OF_PAIRS[name]
    reason = JudgeRule(floor, calibration, pairs=True).why_pairs_advisory(JUDGE)
    assert words in reason
    assert bool(words) is bool(reason)


def test_judge_of_pairs__has_no_condition_if_it_decides_nothing() -> None:
    assert JudgeRule().why_pairs_advisory(JUDGE) == ""
    assert JudgeRule(pairs=True).why_advisory(JUDGE) == ""


def test_judge__without_a_calibration_for_a_reason() -> None:
    assert JudgeRule((SPECIFICITY,), problem="it is gone").why_advisory(JUDGE) == "it is gone"


@pytest.mark.parametrize(("share", "labels", "more"), [(1.0, 6, 3), (1.0, 0, 9), (0.9, 10, 4)])
def test_more_labels__reach_the_bound_of_clopper_and_pearson(
    share: float, labels: int, more: int
) -> None:
    found = calibrated(specificity=estimate(0.5, share), fails=labels)
    reason = JudgeRule((SPECIFICITY,), found).why_advisory(JUDGE)
    assert f"label {more} more failing answers" in reason
    right, total = round(share * labels) + more, labels + more
    tail = sum(
        math.comb(total, count) * 0.7**count * 0.3 ** (total - count)
        for count in range(right, total + 1)
    )
    assert tail <= 0.05


FLOORS = {
    "specificity:0.7": Floor("specificity", 0.7),
    "kappa: .4": Floor("kappa", 0.4),
    **dict.fromkeys(
        (
            *("", "0.7", "specificity", "specificity:1", "specificity:0", "specificity:1.5"),
            *("specificity:-0.5", "specificity:nan", "accuracy:0.7", "specificity:0,7"),
            *("specificity=0.7", "Specificity:0.7", "specificity:1e-1"),
        )
    ),
}


@pytest.mark.parametrize("text", FLOORS)
def test_floor__as_it_is_written(text: str) -> None:
    if expected := FLOORS[text]:
        assert read_floor(text) == expected
        return
    with pytest.raises(ValueError, match="write `metric:number`"):
        read_floor(text)


def judged(**fields: Any) -> EvaluatorResult:
    return EvaluatorResult(name="judge", type="llm_judge", score=0.0, judge=JUDGE, **fields)


def inside(*children: EvaluatorResult, **fields: Any) -> EvaluatorResult:
    return EvaluatorResult(
        name="all", type="composite", score=0.5, evaluator_results=children, **fields
    )


PLAIN = EvaluatorResult(name="word", type="contains", score=1.0)
UNWEIGHTED = replace(PLAIN, weight=0.0)
NOW, BEFORE = "it is below", "there was no calibration"
ADVISORY = JudgeRule((SPECIFICITY,), problem=NOW)
#: A stored result, the rule, and the result by it; None if it is not known.
STORED: dict[str, tuple[EvaluatorResult, JudgeRule, EvaluatorResult | None]] = {
    "a check": (PLAIN, ADVISORY, PLAIN),
    "advisory now": (judged(), ADVISORY, judged(advisory=NOW)),
    "for another reason": (judged(advisory=BEFORE), ADVISORY, judged(advisory=NOW)),
    "it decides now": (judged(advisory=BEFORE), ALL_DECIDE, judged()),
    "inside, advisory now": (inside(PLAIN, judged()), ADVISORY, None),
    "inside, it decides now": (inside(PLAIN, judged(advisory=BEFORE)), ALL_DECIDE, None),
    "inside, it still decides": (inside(PLAIN, judged()), ALL_DECIDE, inside(PLAIN, judged())),
    "inside, for another reason": (
        inside(judged(advisory=BEFORE), advisory=BEFORE),
        ADVISORY,
        inside(judged(advisory=NOW), advisory=NOW),
    ),
    "inside, behind one without weight": (
        inside(UNWEIGHTED, judged(advisory=BEFORE), advisory=BEFORE),
        ADVISORY,
        inside(UNWEIGHTED, judged(advisory=NOW), advisory=NOW),
    ),
    "deep inside": (inside(inside(PLAIN, judged())), ADVISORY, None),
}


@pytest.mark.parametrize("name", STORED)
def test_stored_result__by_another_rule(name: str) -> None:
    stored, rule, expected = STORED[name]
    assert rule.stand_again(stored) == expected
