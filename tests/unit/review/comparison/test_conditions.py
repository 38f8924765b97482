"""What a condition (`must`) of a variant comes to, from the results of both arms."""

from collections.abc import Mapping, Sequence
from dataclasses import replace
from typing import Any

import pytest

from agentevals_action.model.comparison import (
    ChangeKind,
    Outcome,
    SuiteComparison,
    TestComparison,
    VariantComparison,
)
from agentevals_action.model.quarantine import Quarantine
from agentevals_action.model.result import SampleResult, TestResult
from agentevals_action.model.run import Policy, RunSuite, RunVariant, Selection
from agentevals_action.model.variant import Variant
from agentevals_action.results.build import extended, with_samples
from agentevals_action.review.comparison.variants import with_variants
from tests.support import results

PASS, FAIL = SampleResult(score=1.0, verdict="pass"), SampleResult(score=0.0, verdict="fail")
ERROR = results.result(verdict=None).samples[0]
SAMPLES = {"+": PASS, "-": FAIL, "!": ERROR}
ABSENT = "none"
QUARANTINE = Quarantine.model_validate(
    {"tests": ("*",), "owner": "ada", "reason": "flaky", "expires": "2099-01-01"}
)


def row(id: str, samples: str, fresh: str = "", declared: str = "", **fields: Any) -> TestResult:
    """A row by its samples, those of its confirmation, and those of the declared arm in it."""
    made = with_samples(results.result(id), [SAMPLES[each] for each in samples])
    made = extended(made, [SAMPLES[each] for each in fresh])
    return replace(made, declared=tuple(SAMPLES[each] for each in declared), **fields)


def compared(
    must: str | None,
    arms: Sequence[tuple[str, str]],
    *,
    fresh: Sequence[tuple[str, str]] = (),
    confirm: int = 6,
    quarantined: Sequence[int] = (),
    problem: str = "",
    copies: int = 1,
    head: Mapping[str, Any] = {},
) -> VariantComparison:
    """The comparison of a suite with a variant: of each test the samples as declared and in the
    variant, and their fresh ones. `copies` variants are alike."""
    names = [f"t{number}" for number in range(len(arms))]
    listed, rows = [], []
    for number, (name, (declared, variant)) in enumerate(zip(names, arms, strict=True)):
        on_head = None if declared == ABSENT else row(name, declared, **head)
        quarantine = QUARANTINE if number in quarantined else None
        listed.append(TestComparison(name, ChangeKind.NEW, on_head, None, quarantine=quarantine))
        if variant != ABSENT:
            again = fresh[number] if fresh else ("", "")
            made = row(name, variant, again[1], again[0], variant="v0", unconfirmed=problem)
            rows += [replace(made, variant=f"v{copy}") for copy in range(copies)]
    runs = tuple(
        RunVariant(
            Variant.model_validate({"name": f"v{copy}", "target": "other", "must": must}),
            tuple(names),
        )
        for copy in range(copies)
    )
    path = results.result().eval_path
    suite = SuiteComparison(
        RunSuite(Selection(path, ()), "suite", tuple(names), variants=runs),
        tuple(listed),
        None,
        None,
    )
    policy = Policy(frozenset({"gates"}), confirm=confirm)
    return with_variants([suite], rows, policy)[0].variants[0]


WORSE, ALIKE, BETTER = ("---", "+++"), ("+-+", "-++"), ("+++", "---")
HURTS: Any = {"arms": [WORSE] * 3, "fresh": [WORSE] * 3}

#: The condition, what is compared, the outcome.
OUTCOMES: dict[str, tuple[str | None, dict[str, Any], Outcome | None]] = {
    "no condition": (None, {"arms": [WORSE] * 3}, None),
    "help that is shown": ("help", {"arms": [BETTER] * 3}, Outcome.PASSED),
    "help that is not shown": ("help", {"arms": [ALIKE] * 3}, Outcome.FAILED),
    "help that is not shown, and a test that could not be scored": (
        "help",
        {"arms": [*[ALIKE] * 3, ("+++", "++!")]},
        Outcome.INCONCLUSIVE,
    ),
    "help that is shown by the tests that are left": (
        "help",
        {"arms": [*[BETTER] * 3, ("+++", ABSENT)]},
        Outcome.PASSED,
    ),
    "help that is not shown beside a test in quarantine": (
        "help",
        {"arms": [*[ALIKE] * 3, ("+++", "++!")], "quarantined": [3]},
        Outcome.FAILED,
    ),
    "help that tests in quarantine alone show": (
        "help",
        {"arms": [*[ALIKE] * 3, *[BETTER] * 3], "quarantined": [3, 4, 5]},
        Outcome.FAILED,
    ),
    "nothing is scored in both arms": (
        "help",
        {"arms": [("+++", "!"), (ABSENT, "+++")]},
        Outcome.INCONCLUSIVE,
    ),
    "too little is scored to show anything": (
        "not-hurt",
        {"arms": [("+", "+"), *[("+", "!")] * 4]},
        Outcome.INCONCLUSIVE,
    ),
    "no harm": ("not-hurt", {"arms": [ALIKE] * 3}, Outcome.PASSED),
    "no harm, and a test that could not be scored": (
        "not-hurt",
        {"arms": [*[ALIKE] * 3, ("+++", "!")]},
        Outcome.INCONCLUSIVE,
    ),
    "harm that is confirmed": ("not-hurt", HURTS, Outcome.FAILED),
    "harm that fresh samples do not show": (
        "not-hurt",
        {**HURTS, "fresh": [ALIKE] * 3},
        Outcome.PASSED,
    ),
    "harm without fresh samples": ("not-hurt", {"arms": [WORSE] * 3}, Outcome.INCONCLUSIVE),
    "harm whose confirmation could not be completed": (
        "not-hurt",
        {**HURTS, "fresh": [ALIKE, ALIKE, ("", "")], "problem": "the model is gone"},
        Outcome.INCONCLUSIVE,
    ),
    "harm where one sample decides": (
        "not-hurt",
        {"arms": [WORSE] * 3, "confirm": 0},
        Outcome.FAILED,
    ),
    "harm that is shown for one condition": (
        "not-hurt",
        {"arms": [WORSE] * 5, "fresh": [("-", "+")] * 5},
        Outcome.FAILED,
    ),
    "harm that is too weak for two conditions": (
        "not-hurt",
        {"arms": [WORSE] * 5, "fresh": [("-", "+")] * 5, "copies": 2},
        Outcome.PASSED,
    ),
}


@pytest.mark.parametrize("name", OUTCOMES)
def test_outcome__of_a_condition(name: str) -> None:
    must, given, outcome = OUTCOMES[name]
    assert compared(must, **given).outcome is outcome


def test_tests__lists_and_reasons() -> None:
    found = compared(
        None, [("+", "+"), ("-", "-"), ("+", "-"), ("-", "+"), ("+", "!"), (ABSENT, "+")]
    )
    lists = {
        (declared, variant): [test.id for test in found.with_passes(declared, variant)]
        for declared in (True, False)
        for variant in (True, False)
    }
    assert lists == {
        (True, True): ["t0"],
        (False, False): ["t1"],
        (True, False): ["t2"],
        (False, True): ["t3"],
    }
    assert [(test.id, test.reason) for test in found.not_scored] == [
        ("t4", "in `v0`: connection refused"),
        ("t5", "as declared: it has no result"),
    ]


def test_first__is_by_the_samples_of_the_run_alone() -> None:
    found = compared("not-hurt", [WORSE] * 3, fresh=[ALIKE] * 3)
    assert found.first
    assert (found.first.samples, found.first.declared, found.first.variant) == (3, 0, 1)


def test_first__the_turns_of_a_conversation_are_one_test() -> None:
    found = compared("help", [("++-", "---"), ("+++", "---")], head={"conversation_id": "talk"})
    assert found.first
    assert found.first.pairs == 1
    assert found.first.declared == pytest.approx(2 / 3)


@pytest.mark.parametrize("skill", [True, False])
def test_first__without_the_skill_whether_it_is_opened_does_not_count(skill: bool) -> None:
    evaluators = (
        results.evaluated("says", 1.0),
        replace(results.evaluated("opens", 0.0), type="skill_trigger"),
    )
    sample = SampleResult(score=0.5, verdict="fail", evaluator_results=evaluators)
    head = with_samples(results.result("t"), [sample])
    run = RunVariant(Variant(name="v", target="other", skill=skill), ("t",))
    path = results.result().eval_path
    suite = SuiteComparison(
        RunSuite(Selection(path, ()), "suite", ("t",), variants=(run,)),
        (TestComparison("t", ChangeKind.NEW, head, None),),
        None,
        None,
    )
    rows = [row("t", "+", variant="v")]
    found = with_variants([suite], rows, Policy(frozenset()))[0].variants[0]
    assert found.first
    assert found.first.declared == (0 if skill else 1)
