"""The results of confirmations, and how often gates held, in plain words."""

from collections.abc import Mapping

from agentevals_action.formatting import counted
from agentevals_action.model.comparison import ChangeKind, Counts, Evidence, Finding, TestComparison
from agentevals_action.model.result import TestResult

_FEW_SAMPLES = 5  # of base, below which its history proves little
_FLAKY_SHARE = 0.2  # of base's samples that failed, from which base itself is flaky


def change_word(change: ChangeKind) -> str:
    """The word for a change: an open test is `undecided`, because `inconclusive` is an outcome."""
    return "undecided" if change is ChangeKind.UNDECIDED else change.value


def describe(test: TestComparison) -> str:
    """The result of a confirmation in one line (`passed 5 of 5 on base, 0 of 5 on head, p =
    0.002`); empty if there was none. The numbers are samples (of head, fresh samples); `p` is the
    probability of so many failures if nothing had changed.

    It may contain untrusted messages."""
    evidence = test.evidence
    if evidence is None:
        return ""
    reason = evidence.reason
    if evidence.finding is Finding.ERROR:
        return f"got worse, and could not be confirmed{f': {reason}' if reason else ''}"
    if evidence.chance is None:
        return ""
    # A borderline test keeps its verdict by another borderline sample, which is no pass.
    passes = test.base is not None and test.base.verdict == "pass"
    words = _DESCRIPTIONS[evidence.finding](evidence, "passed" if passes else "held in")
    return f"{words}; {reason}" if reason else words


def probability(value: float) -> str:
    """A probability of 0-1 with one significant digit, never shown as 0: `p = 0.002`."""
    return "p < 0.0001" if value < 0.0001 else f"p = {value:.1g}"


def gate_rates(test: TestComparison) -> Mapping[str, str]:
    """How often required gates held, for gates that hold in some samples and fail in others.

    A gate that always fails on head is included if it held in some samples of base."""
    head = test.head
    rates: dict[str, str] = {}
    for gate in dict.fromkeys(gate.name for gate in head.gates) if head else ():
        on_head, on_base = _gate_history(head, gate), _gate_history(test.base, gate)
        failed = head is not None and gate in head.gates_failed
        if not (_is_mixed(on_head) or (failed and _is_mixed(on_base))):
            continue
        rates[gate] = f"held in {on_head.successes} of {counted(on_head.trials, 'sample')} on head"
        if on_base.trials:
            rates[gate] += f", in {on_base.successes} of {on_base.trials} on base"
    return rates


def has_unsteady_gate(test: TestComparison) -> bool:
    """Whether a required gate failed in some samples of head, but not in most."""
    head = test.head
    if head is None or len(head.samples) < 2:
        return False
    failed = {gate for sample in head.samples for gate in sample.gates_failed}
    return not failed.issubset(head.gates_failed)


def _gate_history(result: TestResult | None, gate: str) -> Counts:
    if result is None or all(gate != record.name for record in result.gates):
        return Counts(0, 0)
    scored = [sample for sample in result.samples if sample.verdict]
    return Counts(sum(gate not in sample.gates_failed for sample in scored), len(scored))


def _is_mixed(history: Counts) -> bool:
    return 0 < history.failures < history.trials


def _counts(history: Counts, side: str) -> str:
    return f"{history.successes} of {history.trials} on {side}"


def _sides(evidence: Evidence) -> str:
    return f"{_counts(evidence.base, 'base')}, {_counts(evidence.head, 'head')}"


def _confirmed(evidence: Evidence, verb: str) -> str:
    return f"{verb} {_sides(evidence)}, {probability(evidence.chance or 0.0)}"


def _cleared(evidence: Evidence, verb: str) -> str:
    on_head, on_base = _counts(evidence.head, "head"), _counts(evidence.base, "base")
    return f"dropped, then {verb} {on_head}, {on_base}"


def _undecided(evidence: Evidence, verb: str) -> str:
    base, head = evidence.base, evidence.head
    if evidence.needed is not None:
        needed = counted(evidence.needed, "failure")
        why = f"a regression needs {needed}, {head.failures} of {head.trials} failed"
    elif base.trials < _FEW_SAMPLES:
        why = "base has too few samples to decide"
    elif base.failures >= _FLAKY_SHARE * base.trials:
        why = "base itself is too flaky to decide"
    else:
        why = "these are too few fresh samples to decide; `confirm` allows more"
    return f"{verb} {_sides(evidence)}: {why}"


_DESCRIPTIONS = {
    Finding.REGRESSED: _confirmed,
    Finding.CLEARED: _cleared,
    Finding.UNDECIDED: _undecided,
}
