"""What is waived and what is not: quarantine by both sides, acceptance of regressions alone, and
what the gate makes of it."""

from dataclasses import replace
from datetime import date

import pytest
from hypothesis import given
from hypothesis import strategies as st

from agentevals_action.model.baseline import BaseSuite
from agentevals_action.model.comparison import (
    NOTHING,
    Counts,
    Evidence,
    Finding,
    Outcome,
    SuiteComparison,
)
from agentevals_action.model.diagnostic import Diagnostic, Location
from agentevals_action.model.quarantine import FILE, Acceptance, Quarantine, Quarantines
from agentevals_action.model.result import SKIPPED, ErrorInfo, Verdict
from agentevals_action.model.run import Selection
from agentevals_action.review.comparison import waivers
from tests.support import results
from tests.support.compared import ON_PULL_REQUEST, PATH, decide, lost_gate, pair, suite

DAY = date(2026, 3, 1)
ADA = Acceptance("ada", "agentevals:accept")
NONE = Quarantines()


def entry(
    *tests: str, suites: tuple[str, ...] = (), reason: str = "flaky", line: int = 2
) -> Quarantine:
    return Quarantine(
        tests=tests,
        owner="grace",
        reason=reason,
        expires=DAY,
        suites=suites,
        location=Location(FILE, line),
    )


def alone(*tests: str) -> Quarantines:
    """Head's file decides, as in a run of suites as they are."""
    return Quarantines((entry(*tests),))


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
    moved = suite((results.result("a", "fail"), None), selection=selection)
    slack = entry("*", suites=("slack/**",))
    assert marked(moved, Quarantines((slack,), (slack,))) == []
    assert marked(moved, Quarantines((slack,), (entry("*", suites=("strict/**",)),))) == ["a"]


def test_not_on_base__what_head_has_and_base_has_not_like_that() -> None:
    kept, longer = entry("a"), entry("b", reason="still flaky", line=7)
    assert waivers.not_on_base(Quarantines((kept, longer), (entry("a", line=9), entry("b")))) == (
        Diagnostic(
            Location(FILE, 7),
            "this quarantine is not on the base like this, so it does not hold in this review",
            "it takes effect once it is merged",
        ),
    )
    assert waivers.not_on_base(Quarantines((kept, longer))) == ()


def test_acceptance__is_needed_only_where_something_regressed() -> None:
    assert not waivers.needs_acceptance([suite(pair("a", "pass"), lost_gate("b"), pair("c", None))])
    assert waivers.needs_acceptance([suite(pair("a", "pass"), pair("b", "fail"))])


@pytest.mark.parametrize(
    ("base", "head", "outcome"),
    [
        (Counts(5, 5), Counts(0, 3), Outcome.INCONCLUSIVE),
        # A flaky test must not block each pull request.
        (Counts(4, 5), Counts(0, 3), Outcome.PASSED),
        (Counts(5, 5), Counts(1, 4), Outcome.PASSED),
    ],
)
def test_decide__an_undecided_test_blocks_unless_a_sample_contradicts(
    base: Counts, head: Counts, outcome: Outcome
) -> None:
    actual = suite(pair("a", "fail"), evidence={"a": Evidence(Finding.UNDECIDED, base, head)})
    assert decide(actual).outcome is outcome
    assert waivers.needs_acceptance([actual]) == (outcome is Outcome.INCONCLUSIVE)
    for waived in (waivers.apply([actual], NONE, ADA), waivers.apply([actual], alone("a"))):
        assert decide(*waived).outcome is Outcome.PASSED


def test_acceptance__never_of_a_required_gate() -> None:
    (actual,) = waivers.apply([suite(lost_gate("a"), pair("b", "fail"))], NONE, ADA)
    assert [test.accepted_by for test in actual.tests] == ["", "ada"]
    decision = decide(actual)
    assert decision.outcome is Outcome.FAILED
    assert decision.reasons == ("1 test regressed and failed a required gate",)
    assert decision.waived == ("1 regression accepted by @ada (label `agentevals:accept`)",)
    assert decide(actual, fail_on=frozenset({"regressions"})).outcome is Outcome.FAILED


def test_acceptance__holds_where_base_is_invalid_or_a_required_test_skips_itself() -> None:
    broken = Diagnostic(Location("evals/EVAL.yaml", 1), "bad")
    skipped = replace(results.result("a", None), error=ErrorInfo(kind=SKIPPED, message="later"))
    for actual in (
        suite(
            (results.result("a", "fail"), None),
            (results.result("b"), None),
            base=BaseSuite(broken=broken),
        ),
        suite((skipped, results.result("a", gates=("safe",))), pair("b", "pass")),
    ):
        assert decide(actual).outcome is Outcome.INCONCLUSIVE
        assert waivers.needs_acceptance([actual])
        decision = decide(*waivers.apply([actual], NONE, ADA))
        assert decision.outcome is Outcome.PASSED
        assert decision.waived == ("1 test accepted by @ada (label `agentevals:accept`)",)


def test_acceptance__a_gate_that_failed_on_base_too_still_blocks() -> None:
    head = results.result("a", "fail", gates=("safe",), failed=("safe",))
    base = results.result("a", "borderline", gates=("safe",), failed=("safe",))
    (actual,) = waivers.apply([suite((head, base))], NONE, ADA)
    assert actual.tests[0].accepted_by == "ada"
    assert decide(actual).reasons == ("1 test failed a required gate",)


def test_quarantine__an_error_and_what_could_not_be_confirmed_do_not_count() -> None:
    unconfirmed = Evidence(Finding.ERROR, NOTHING, NOTHING)
    tests = (pair("a", None), pair("b", "fail"), pair("c", "fail", None), pair("d", "pass"))
    compared = suite(*tests, evidence={"b": unconfirmed})
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
FAIL_ON = st.sets(st.sampled_from(sorted({*ON_PULL_REQUEST, "failures"}))).map(frozenset)
#: From fine to worst; what is waived never makes it worse.
SEVERITY = [Outcome.PASSED, Outcome.INCONCLUSIVE, Outcome.FAILED]


Drawn = tuple[Verdict | None, Verdict | None, bool]


def made(tests: dict[str, Drawn]) -> SuiteComparison:
    """A suite of tests by id: verdict of head, verdict of base, whether a gate failed on head."""
    safe = {"gates": ("safe",), "failed": ("safe",)}
    return suite(
        *(
            pair(id, "fail", base, **safe) if failed else pair(id, head, base)
            for id, (head, base, failed) in tests.items()
        )
    )


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
