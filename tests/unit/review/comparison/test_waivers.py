"""What is waived and what is not: quarantine by both sides, acceptance of regressions alone, and
what the gate makes of it."""

from datetime import date

import pytest
from hypothesis import given
from hypothesis import strategies as st

from agentevals_action.model.baseline import BaselineInfo
from agentevals_action.model.comparison import (
    NOTHING,
    ChangeKind,
    Counts,
    Evidence,
    Finding,
    SuiteComparison,
    TestComparison,
)
from agentevals_action.model.diagnostic import Diagnostic, Location
from agentevals_action.model.quarantine import FILE, Acceptance, Quarantine, Quarantines
from agentevals_action.model.result import TestResult, Verdict
from agentevals_action.model.review import Decision, Outcome
from agentevals_action.model.run import Policy, RunSuite, Selection
from agentevals_action.review.comparison import compare, gate, waivers
from tests.support import results

PATH = "evals/EVAL.yaml"
DAY = date(2026, 3, 1)
RERUN = BaselineInfo("rerun", wanted=True, commit="b" * 40)
ADA = Acceptance("ada", "agentevals:accept")
NONE = Quarantines()
ON_PULL_REQUEST = frozenset({"gates", "regressions"})
EVERYTHING = frozenset({"gates", "regressions", "failures"})


def entry(
    *tests: str, suites: tuple[str, ...] = (), reason: str = "flaky", line: int = 2
) -> Quarantine:
    return Quarantine(tests, "grace", reason, DAY, suites, Location(FILE, line))


def alone(*tests: str) -> Quarantines:
    """Head's file decides, as in a run of suites as they are."""
    return Quarantines((entry(*tests),))


def suite(
    *pairs: tuple[TestResult, TestResult | None],
    path: str = PATH,
    evidence: dict[str, Evidence] | None = None,
) -> SuiteComparison:
    head, base = [head for head, _ in pairs], [base for _, base in pairs if base]
    facts = RunSuite(Selection(path, ()), "suite", tuple(row.eval_id for row in head))
    return compare.compare_suite(facts, head, base, evidence or {})


def decide(
    *suites: SuiteComparison,
    fail_on: frozenset[str] = ON_PULL_REQUEST,
    min_pass_rate: float | None = None,
) -> Decision:
    return gate.decide(Policy(fail_on, min_pass_rate), suites, RERUN)


def pair(
    id: str, head: Verdict | None, base: Verdict | None = "pass", **fields: tuple[str, ...]
) -> tuple[TestResult, TestResult]:
    gates = fields.get("gates", ())
    return results.result(id, head, **fields), results.result(id, base, gates=gates)  # type: ignore[arg-type]  # gates by name


def lost_gate(id: str) -> tuple[TestResult, TestResult]:
    return pair(id, "fail", gates=("safe",), failed=("safe",))


def marked(comparison: SuiteComparison, quarantines: Quarantines) -> list[str]:
    return [
        test.id for test in waivers.apply([comparison], quarantines)[0].tests if test.quarantine
    ]


@pytest.mark.parametrize(
    ("tests", "suites", "covered"),
    [
        (("refund-small",), (), True),
        (("refund-*",), (), True),
        (("*",), ("evals/**",), True),
        (("*",), ("evals",), True),
        (("*",), ("other/**",), False),
        (("Refund-*",), (), False),
        (("refund-*", "!refund-s*"), (), False),
        (("!refund-s*", "refund-*"), (), True),
        (("*",), ("evals/**", "!evals/EVAL.yaml"), False),
        (("!refund-small",), (), False),
    ],
)
def test_covers__globs_over_ids_and_paths(
    tests: tuple[str, ...], suites: tuple[str, ...], covered: bool
) -> None:
    found = waivers.entry_for([entry(*tests, suites=suites)], PATH, "refund-small")
    assert (found is not None) is covered
    assert waivers.entry_for([entry("case[1]")], PATH, "case[1]")  # by its own name


def test_apply__only_what_both_sides_have() -> None:
    both = suite(pair("a", "fail"), pair("b", "fail"), pair("c", "fail"))
    assert marked(both, Quarantines((entry("a", "b"),), (entry("b", "c"),))) == ["b"]


def test_apply__the_entry_is_the_base_s() -> None:
    quarantines = Quarantines((entry("a", reason="mine"),), (entry("a", reason="ours"),))
    (actual,) = waivers.apply([suite(pair("a", "fail"))], quarantines)
    assert actual.tests[0].quarantine == entry("a", reason="ours")


def test_apply__a_suite_that_moved_is_known_by_where_it_was() -> None:
    selection = Selection("slack/EVAL.yaml", (), base_path="strict/EVAL.yaml")
    facts = RunSuite(selection, "suite", ("a",))
    moved = compare.compare_suite(facts, [results.result("a", "fail")], ())
    slack = entry("*", suites=("slack/**",))
    assert marked(moved, Quarantines((slack,), (slack,))) == []
    assert marked(moved, Quarantines((slack,), (entry("*", suites=("strict/**",)),))) == ["a"]


def test_pending__what_head_has_and_base_has_not_like_that() -> None:
    kept, longer = entry("a"), entry("b", reason="still flaky", line=7)
    assert waivers.not_on_base(Quarantines((kept, longer), (entry("a", line=9), entry("b")))) == (
        Diagnostic(
            Location(FILE, 7),
            "this quarantine is not on the base like this, so it does not hold in this review",
            "it takes effect once it is merged",
        ),
    )
    assert waivers.not_on_base(Quarantines((kept, longer))) == ()


def test_accepting__is_no_matter_where_nothing_regressed() -> None:
    assert not waivers.needs_acceptance([suite(pair("a", "pass"), lost_gate("b"), pair("c", None))])
    assert waivers.needs_acceptance([suite(pair("a", "pass"), pair("b", "fail"))])


def test_accepting__a_test_that_failed_in_every_fresh_sample_without_proof() -> None:
    unproven = Evidence(Finding.UNDECIDED, Counts(5, 5), Counts(0, 3))
    actual = suite(pair("a", "fail"), evidence={"a": unproven})
    assert gate.decide(Policy(ON_PULL_REQUEST), [actual], RERUN).outcome is Outcome.INCONCLUSIVE
    assert waivers.needs_acceptance([actual])
    accepted = waivers.apply([actual], NONE, ADA)
    assert gate.decide(Policy(ON_PULL_REQUEST), accepted, RERUN).outcome is Outcome.PASSED
    held = waivers.apply([actual], alone("a"))
    assert gate.decide(Policy(ON_PULL_REQUEST), held, RERUN).outcome is Outcome.PASSED


@pytest.mark.parametrize(
    ("base", "head"), [(Counts(4, 5), Counts(0, 3)), (Counts(5, 5), Counts(1, 4))]
)
def test_undecided__does_not_block_if_a_sample_contradicts(base: Counts, head: Counts) -> None:
    """A flaky test must not block each pull request."""
    open_test = {"a": Evidence(Finding.UNDECIDED, base, head)}
    actual = suite(pair("a", "fail"), evidence=open_test)
    assert gate.decide(Policy(ON_PULL_REQUEST), [actual], RERUN).outcome is Outcome.PASSED


def test_accepting__never_a_required_gate() -> None:
    (actual,) = waivers.apply([suite(lost_gate("a"), pair("b", "fail"))], NONE, ADA)
    assert [test.accepted_by for test in actual.tests] == ["", "ada"]
    decision = decide(actual)
    assert decision.outcome is Outcome.FAILED
    assert decision.reasons == ("1 test regressed and failed a required gate",)
    assert decision.waived == ("1 regression accepted by @ada (label `agentevals:accept`)",)
    assert decide(actual, fail_on=frozenset({"regressions"})).outcome is Outcome.FAILED


def test_accepting__a_gate_that_failed_on_base_too_still_blocks() -> None:
    head = results.result("a", "fail", gates=("safe",), failed=("safe",))
    base = results.result("a", "borderline", gates=("safe",), failed=("safe",))
    (actual,) = waivers.apply([suite((head, base))], NONE, ADA)
    assert actual.tests[0].accepted_by == "ada"
    assert decide(actual).reasons == ("1 test failed a required gate",)


def test_quarantine__an_error_and_what_could_not_be_confirmed_do_not_count() -> None:
    unconfirmed = Evidence(Finding.ERROR, NOTHING, NOTHING)
    compared = suite(
        pair("a", None),
        pair("b", "fail"),
        pair("c", "fail", None),
        pair("d", "pass"),
        evidence={"b": unconfirmed},
    )
    assert decide(compared).outcome is Outcome.INCONCLUSIVE
    (actual,) = waivers.apply([compared], alone("a", "b", "c"))
    decision = decide(actual)
    assert decision.outcome is Outcome.PASSED
    assert decision.waived == (
        "3 tests in quarantine do not count (2 fail, 1 in error): owner grace, until 2026-03-01, flaky",
    )


def test_quarantine__a_suite_without_tests_is_still_inconclusive() -> None:
    assert decide(*waivers.apply([suite()], alone("*"))).outcome is Outcome.INCONCLUSIVE


def test_describe__entries_apart_and_on_one_line() -> None:
    quarantines = Quarantines((entry("a", reason="one\n  two"), entry("*")))
    (actual,) = waivers.apply([suite(pair("a", "fail"), pair("b", "pass"))], quarantines)
    assert [line.partition(": ")[2] for line in waivers.describe([actual], "x")] == [
        "owner grace, until 2026-03-01, one two",
        "owner grace, until 2026-03-01, flaky",
    ]


IDS = ["a", "b", "c"]
VERDICTS: st.SearchStrategy[Verdict | None] = st.sampled_from(["pass", "borderline", "fail", None])
TESTS = st.tuples(VERDICTS, VERDICTS, st.booleans())
SUITES = st.dictionaries(st.sampled_from(IDS), TESTS, min_size=1)
ENTRIES = st.lists(
    st.sets(st.sampled_from(IDS), min_size=1).map(lambda ids: entry(*sorted(ids))), max_size=2
).map(tuple)
QUARANTINES = st.builds(Quarantines, ENTRIES, st.none() | ENTRIES)
ACCEPTANCES = st.none() | st.just(ADA)
FAIL_ON = st.sets(st.sampled_from(sorted(EVERYTHING))).map(frozenset)
#: From fine to worst; what is waived never makes it worse.
SEVERITY = [Outcome.PASSED, Outcome.INCONCLUSIVE, Outcome.FAILED]


Drawn = tuple[Verdict | None, Verdict | None, bool]


def made(tests: dict[str, Drawn]) -> SuiteComparison:
    """A suite of tests by id: verdict of head, verdict of base, whether a gate failed on head."""
    gated: dict[bool, dict[str, tuple[str, ...]]] = {
        True: {"gates": ("safe",), "failed": ("safe",)},
        False: {},
    }
    return suite(
        *(
            pair(id, "fail" if failed else head, base, **gated[failed])
            for id, (head, base, failed) in tests.items()
        )
    )


def without(test: TestComparison) -> tuple[object, ...]:
    return (test.id, test.change, test.head, test.base, test.gates_lost)


@given(SUITES, QUARANTINES, ACCEPTANCES, FAIL_ON)
def test_apply__marks_and_changes_nothing_else(
    tests: dict[str, Drawn],
    quarantines: Quarantines,
    acceptance: Acceptance | None,
    fail_on: frozenset[str],
) -> None:
    before = made(tests)
    (after,) = waivers.apply([before], quarantines, acceptance)
    assert [without(test) for test in after.tests] == [without(test) for test in before.tests]
    assert (after.head, after.base) == (before.head, before.base)
    assert waivers.apply([after], quarantines, acceptance) == (after,)
    for test in after.tests:
        assert not (test.quarantine and test.accepted_by)
        assert not test.accepted_by or (
            test.change is ChangeKind.REGRESSED and acceptance and not test.gates_lost
        )
        if test.quarantine:
            sides = [quarantines.head] + (
                [quarantines.base] if quarantines.base is not None else []
            )
            assert all(any(test.id in one.tests for one in side) for side in sides)


@given(SUITES, QUARANTINES, ACCEPTANCES, FAIL_ON)
def test_decide__is_what_it_would_be_without_the_tests_in_quarantine(
    tests: dict[str, Drawn],
    quarantines: Quarantines,
    acceptance: Acceptance | None,
    fail_on: frozenset[str],
) -> None:
    (after,) = waivers.apply([made(tests)], quarantines, acceptance)
    out = {test.id for test in after.tests if test.quarantine}
    decision = decide(after, fail_on=fail_on, min_pass_rate=0.5)
    left = {id: drawn for id, drawn in tests.items() if id not in out}
    if not left:
        assert decision.outcome is Outcome.PASSED
        return
    expected = decide(
        *waivers.apply([made(left)], NONE, acceptance), fail_on=fail_on, min_pass_rate=0.5
    )
    assert (decision.outcome, decision.reasons) == (expected.outcome, expected.reasons)
    assert bool(decision.waived) == bool(out or expected.waived)


@given(SUITES, FAIL_ON)
def test_decide__accepting_takes_back_regressions_alone(
    tests: dict[str, Drawn], fail_on: frozenset[str]
) -> None:
    before = made(tests)
    strict, lenient = (
        decide(before, fail_on=fail_on),
        decide(*waivers.apply([before], NONE, ADA), fail_on=fail_on),
    )
    assert SEVERITY.index(lenient.outcome) <= SEVERITY.index(strict.outcome)
    others = decide(before, fail_on=fail_on - {"regressions"})
    if others.outcome is Outcome.FAILED:
        assert lenient.outcome is Outcome.FAILED
    assert {reason for reason in lenient.reasons if "error" in reason} == {
        reason for reason in strict.reasons if "error" in reason
    }
