"""What fresh samples said of a verdict that fell, and how often a gate held, in plain words."""

from collections.abc import Mapping

from agentevals_action.formatting import counted, percent
from agentevals_action.model.comparison import Change, Evidence, Finding, History, TestComparison
from agentevals_action.model.result import TestResult

_THIN = 5  # samples of base under which its history says little
_FLAKY = 0.2  # share of base's samples that fell, from which it is itself the trouble

_WORDS = {Change.UNDECIDED: "undecided"}


def word(change: Change) -> str:
    """A change as people are told of it: a test that stays open is `undecided`, as `inconclusive`
    is an outcome."""
    return _WORDS.get(change, change.value)


def words(test: TestComparison) -> str:
    """What confirming came to, in one line; empty where nothing had to be confirmed. What it holds
    of messages is untrusted."""
    evidence = test.evidence
    if evidence is None:
        return ""
    if evidence.finding is Finding.ERROR:
        return f"got worse, and could not be confirmed{f': {evidence.reason}' if evidence.reason else ''}"
    if evidence.chance is None:
        return ""
    told = _TOLD[evidence.finding](evidence)
    return f"{told}; {evidence.reason}" if evidence.reason else told


def chance(probability: float) -> str:
    """A probability of 0-1 with one digit that counts, never as 0."""
    return "under 0.0001" if probability < 0.0001 else f"{probability:.1g}"


def rates(test: TestComparison) -> Mapping[str, str]:
    """Required gates that now hold and now fail, on head or (when they failed on head) on base: how
    often they held on both sides."""
    head = test.head
    return (
        {
            gate: told
            for gate in dict.fromkeys(gate.name for gate in head.gates)
            if (told := _rate(test, head, gate))
        }
        if head
        else {}
    )


def unsteady(test: TestComparison) -> tuple[str, ...]:
    """Required gates that failed in some samples of head, and not in most."""
    head = test.head
    if head is None or len(head.samples) < 2:
        return ()
    names = dict.fromkeys(gate for sample in head.samples for gate in sample.gates_failed)
    return tuple(gate for gate in names if gate not in head.gates_failed)


def _rate(test: TestComparison, head: TestResult, gate: str) -> str:
    here, there = _history(head, gate), _history(test.base, gate)
    if not (_mixed(here) or (gate in head.gates_failed and _mixed(there))):
        return ""
    on_head = f"held in {here.successes} of {counted(here.trials, 'sample')} on head"
    return f"{on_head}, in {there.successes} of {there.trials} on base" if there.trials else on_head


def _history(result: TestResult | None, gate: str) -> History:
    """How often a gate held; nothing for a side that does not declare it."""
    if result is None or all(gate != known.name for known in result.gates):
        return History(0, 0)
    told = [sample for sample in result.samples if sample.verdict]
    return History(sum(gate not in sample.gates_failed for sample in told), len(told))


def _mixed(history: History) -> bool:
    return 0 < history.failures < history.trials


def _sides(evidence: Evidence) -> str:
    base, head = evidence.base, evidence.head
    return f"held in {base.successes} of {counted(base.trials, 'sample')} on base, in {head.successes} of {head.trials} fresh ones on head"


def _borne_out(evidence: Evidence) -> str:
    needed = f"{counted(evidence.needed, 'failure')} needed; " if evidence.needed else ""
    return f"{_sides(evidence)} ({needed}chance {chance(evidence.chance or 0.0)} if nothing had changed)"


def _not_borne_out(evidence: Evidence) -> str:
    base, head = evidence.base, evidence.head
    return (
        f"fell, then held in {head.successes} of {counted(head.trials, 'fresh sample')} on head ({percent(head.rate)}); "
        f"on base in {base.successes} of {base.trials} ({percent(base.rate)})"
    )


def _undecided(evidence: Evidence) -> str:
    return f"{_sides(evidence)}: {_why(evidence)}"


def _why(evidence: Evidence) -> str:
    base, head = evidence.base, evidence.head
    if evidence.needed is not None:
        return f"{counted(evidence.needed, 'failure')} would make a regression, {head.failures} of {head.trials} failed"
    if base.trials < _THIN:
        return "base has too few samples to tell"
    if base.failures >= _FLAKY * base.trials:
        return "base itself is too flaky to tell"
    return "so few fresh samples cannot tell; `confirm` allows more"


_TOLD = {
    Finding.REGRESSED: _borne_out,
    Finding.CLEARED: _not_borne_out,
    Finding.UNDECIDED: _undecided,
}
