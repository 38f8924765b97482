"""`rubric`: criteria in their forms, the judge's checks, and the gates among them."""

import json
from collections.abc import Sequence
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest

from agentevals_action.model.diagnostic import Location
from agentevals_action.model.evaluator import Evaluator
from agentevals_action.model.messages import Message, picture
from agentevals_action.model.result import EvaluatorResult
from agentevals_action.model.trace import Trace
from tests.support import cases, suites


def checked(criteria: list[Any], *checks: dict[str, Any], **common: Any) -> EvaluatorResult:
    """What comes of a judge that gives these checks."""
    reply = json.dumps({"checks": checks, "overall_reasoning": "ok"})
    return cases.run(
        "rubric",
        {"rubrics": criteria, "prompt": "{{answer}}"},
        cases.case(reply, ask=cases.echo),
        **common,
    )


def met(name: str, satisfied: bool = True) -> dict[str, Any]:
    return {"id": name, "satisfied": satisfied}


def rated(name: str, score: float) -> dict[str, Any]:
    return {"id": name, "score": score, "reasoning": "so"}


RANGES = {"0": "bad", "5": "fair", "10": "good"}


def test_score__is_the_weighted_mean() -> None:
    result = checked(
        [
            {"id": "right", "outcome": "Is right", "weight": 3},
            {"id": "clear", "outcome": "Is clear"},
        ],
        met("right"),
        met("clear", False),
    )
    assert (result.score, result.hits, result.misses) == (
        0.75,
        ("right: Is right",),
        ("clear: Is clear",),
    )
    assert (result.reasoning, result.gates_failed) == ("ok", ())
    assert result.details == {
        "checks": [
            {"id": "right", "score": 1.0, "reasoning": ""},
            {"id": "clear", "score": 0.0, "reasoning": ""},
        ]
    }


def test_strings__are_named_by_position() -> None:
    result = checked(
        ["Greets", {"id": "own", "outcome": "O"}, "Names the user"],
        met("rubric-3"),
        met("own"),
        met("rubric-1", False),
    )
    assert (result.misses, round(result.score or 0, 6)) == (("rubric-1: Greets",), 0.666667)


def test_ranges__are_points_of_ten() -> None:
    criteria = [
        {"id": "a", "outcome": "A", "weight": 3, "score_ranges": RANGES},
        {"id": "b", "outcome": "B", "score_ranges": RANGES},
    ]
    result = checked(criteria, rated("a", 9), rated("b", 5))
    assert (result.score, result.hits, result.misses) == (0.8, ("a: A (9/10)",), ("b: B (5/10)",))


@pytest.mark.parametrize(
    "ranges",
    [
        {0: "bad", 5: "fair", 10: "good"},
        RANGES,
        [{"score_range": [0, 4], "outcome": "bad"}, {"score_range": [5, 10], "outcome": "good"}],
    ],
)
def test_ranges__in_each_form_ask_for_points(ranges: Any) -> None:
    heard: list[str] = []
    given = cases.case(
        "a", ask=cases.replying('{"checks": [{"id": "rubric-1", "score": 7}]}', heard=heard)
    )
    result = cases.run("rubric", {"rubrics": [{"outcome": "A", "score_ranges": ranges}]}, given)
    assert result.score == 0.7
    assert "give a `score` from 0 to 10, where\n    0" in heard[0]


@pytest.mark.parametrize(
    ("fields", "check", "failed"),
    [
        ({"required": True}, met("g", False), True),
        ({"required": True}, met("g"), False),
        ({"required": False}, met("g", False), False),
        ({}, met("g", False), False),
        ({"required": True, "score_ranges": RANGES}, rated("g", 0), True),
        ({"required": True, "score_ranges": RANGES}, rated("g", 1), False),
        ({"required": 0.6, "score_ranges": RANGES}, rated("g", 5), True),
        ({"required": 0.6, "score_ranges": RANGES}, rated("g", 6), False),
        ({"required": 1, "score_ranges": RANGES}, rated("g", 9.9), True),
        ({"required": True, "min_score": 0.7, "score_ranges": RANGES}, rated("g", 6), True),
        ({"required": True, "min_score": 0.7, "score_ranges": RANGES}, rated("g", 7), False),
        ({"min_score": 0.7, "score_ranges": RANGES}, rated("g", 6), False),
        ({"required": False, "min_score": 0.7, "score_ranges": RANGES}, rated("g", 6), False),
        ({"required": True, "min_score": 0.3}, met("g"), False),
    ],
)
def test_gate__fails_at_nought_or_under_its_threshold(
    fields: dict[str, Any], check: dict[str, Any], failed: bool
) -> None:
    criteria = [{"id": "g", "outcome": "G", **fields}, {"id": "other", "outcome": "O", "weight": 9}]
    result = checked(criteria, check, met("other"), name="quality")
    assert result.gates_failed == (("quality/g",) if failed else ())
    assert result.passed is (not failed and (result.score or 0) >= 0.8)
    declared = bool(cases.evaluator("rubric", {"rubrics": criteria}).inner_gates())
    assert declared or not failed


def test_inner_gates__are_the_required_ones_with_their_locations(tmp_path: Path) -> None:
    criteria = """\
      - {id: a, outcome: A, required: true}
      - {id: b, outcome: B}
      - C
      - {expected_outcome: D, required: true, min_score: 0.5}
"""
    text = f"name: suite\ntests:\n  - id: t\n    input: q\n    rubrics:\n{criteria}"
    suites.write(tmp_path, {"EVAL.yaml": text})
    (made,) = suites.only_test(tmp_path).evaluators

    assert made.inner_gates() == (
        ("a", Location("EVAL.yaml", 6, 9)),
        ("rubric-4", Location("EVAL.yaml", 9, 9)),
    )


CRITERIA: list[dict[str, Any]] = [
    {"id": "a", "outcome": "A"},
    {"id": "b", "outcome": "B", "score_ranges": RANGES},
]


@pytest.mark.parametrize(
    "checks",
    [
        [met("a")],
        [met("a"), met("a"), rated("b", 5)],
        [met("a"), met("b")],
        [met("a"), rated("b", 11)],
        [met("a"), {"id": "b", "score": True}],
        [{"id": "a", "satisfied": "true"}, rated("b", 5)],
        [{"satisfied": True}, rated("b", 5)],
        [met("a"), "b"],
        [{**met("a"), "reasoning": 7}, rated("b", 5)],
    ],
)
@pytest.mark.parametrize("negate", [False, True])
def test_checks__that_do_not_tell_are_a_judge_error_also_negated(
    checks: list[Any], negate: bool
) -> None:
    result = checked(CRITERIA, *checks, negate=negate)
    assert result.score is None
    assert result.error is not None
    assert result.error.kind == "judge"


def test_checks__left_out_may_be_given_when_asked_again() -> None:
    heard: list[str] = []
    ask = cases.replying(
        '{"checks": []}', '{"checks": [{"id": "rubric-1", "satisfied": true}]}', heard=heard
    )
    assert cases.run("rubric", {"rubrics": ["A"]}, cases.case("x", ask=ask)).score == 1
    assert "`checks` lacks rubric-1" in heard[1]


def test_checks__of_nothing_that_was_asked_are_let_be() -> None:
    assert checked([{"id": "a", "outcome": "A"}], met("a"), met("invented", False)).score == 1


@pytest.mark.parametrize(
    "answer", ["fine", '{"checks": [{"id": "a", "satisfied": true}, {"id": "b", "score": 10}]}']
)
def test_packaged_prompt__that_is_repeated_never_scores(answer: str) -> None:
    result = cases.run(
        "rubric",
        {"rubrics": CRITERIA},
        cases.case(
            answer, ask=cases.echo, criteria="c", expected=answer, asked=answer, note=answer
        ),
    )
    assert result.score is None
    assert result.error is not None
    assert result.error.kind == "judge"


def test_packaged_prompt__says_what_each_criterion_asks() -> None:
    heard: list[str] = []
    criteria = [
        {"id": "a", "outcome": "A", "operator": "correctness"},
        {"id": "b", "outcome": "B", "operator": "contradiction"},
        *CRITERIA[1:],
    ]
    criteria[2] = {**CRITERIA[1], "id": "c"}
    reply = json.dumps({"checks": [met("a"), met("b"), rated("c", 10)]})
    assert (
        cases.run(
            "rubric", {"rubrics": criteria}, cases.case("x", ask=cases.replying(reply, heard=heard))
        ).score
        == 1
    )
    entries = heard[0].partition("<rubric ")[2].partition("</rubric ")[0].split("\n- id: ")[1:]
    assert [entry.splitlines()[0] for entry in entries] == ["a", "b", "c"]
    assert "satisfied only when" in entries[0]
    assert "is no contradiction" in entries[1]
    assert "satisfied" not in entries[2]
    assert "    5: fair" in entries[2]


def test_own_prompt__has_the_criteria() -> None:
    heard: list[str] = []
    ask = cases.replying('{"checks": [{"id": "rubric-1", "satisfied": true}]}', heard=heard)
    cases.run(
        "rubric",
        {
            "rubrics": ["Greets"],
            "prompt": "{% for r in rubrics %}{{r.id}}={{r.outcome}}{% endfor %}: {{answer}}",
        },
        cases.case("x", ask=ask),
    )
    assert heard == ["rubric-1=Greets: x"]


PNG = b"\x89PNG\r\n\x1a\n" + bytes(8)
BINARIES = "".join(
    f"Binary files {old} and b/{name} differ\n"
    for old, name in (("/dev/null", "chart.png"), ("a/sheet.xlsx", "sheet.xlsx"))
)


@pytest.mark.parametrize(
    ("second", "score", "misses"),
    [(None, 1, ()), (False, 0.5, ("b: The sheet has totals.",))],
)
def test_files__a_picture_is_shown_and_what_is_unseen_is_not_scored(
    tmp_path: Path, second: bool | None, score: float, misses: tuple[str, ...]
) -> None:
    (tmp_path / "chart.png").write_bytes(PNG)
    (tmp_path / "sheet.xlsx").write_bytes(b"PK\0")
    asked: list[Message] = []
    notices: list[str] = []

    async def ask(evaluator: Evaluator, messages: Sequence[Message], number: int) -> Trace:
        asked.extend(messages)
        checks = [met("a"), {"id": "b", "satisfied": second}]
        return cases.reply(json.dumps({"checks": checks}))

    case = cases.case("Done.", ask=ask, file_changes=BINARIES, notice=notices.append)
    criteria = [
        {"id": "a", "outcome": "The axes have names."},
        {"id": "b", "outcome": "The sheet has totals."},
    ]
    result = cases.run("rubric", {"rubrics": criteria}, replace(case, workspace=tmp_path))
    assert (result.score, result.misses) == (score, misses)
    (question,) = asked
    assert [block.type for block in question.blocks] == ["text", "image"]
    assert picture(question.blocks[1]).media_type == "image/png"
    assert "sheet.xlsx\n</files" in str(question.blocks[0].value)
    assert bool(notices) is (second is None)


def test_files__a_criterion_is_scored_where_every_file_is_seen() -> None:
    result = checked(["A", "B"], met("rubric-1"), {"id": "rubric-2", "satisfied": None})
    assert result.error is not None
    gate = [{"id": "a", "outcome": "A", "required": True}, "B"]
    reply = json.dumps({"checks": [{"id": "a", "satisfied": None}, met("rubric-2")]})
    case = cases.case(reply, ask=cases.replying(reply, reply), file_changes=BINARIES)
    assert cases.run("rubric", {"rubrics": gate}, case).error is not None
    reply = json.dumps({"checks": [{"id": "rubric-1"}]})
    case = cases.case(reply, ask=cases.replying(reply), file_changes=BINARIES)
    assert cases.run("rubric", {"rubrics": ["A"]}, case).error is not None
