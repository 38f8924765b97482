"""Compared suites and the decision about them, for tests of the pure part of a review."""

from typing import Any

from agentevals_action.model.baseline import BaselineInfo
from agentevals_action.model.comparison import Decision, Evidence, SuiteComparison
from agentevals_action.model.result import TestResult
from agentevals_action.model.run import Level, Note, Policy, Run, RunSuite, Selection
from agentevals_action.model.run import notes as run_notes
from agentevals_action.review.comparison import gate
from agentevals_action.review.comparison.states import compare_suite
from tests.support import results

PATH = "evals/EVAL.yaml"
RERUN = BaselineInfo("rerun", wanted=True, commit="b" * 40)
ON_PULL_REQUEST = frozenset({"gates", "regressions"})

#: The results of a test on head and on base.
Pair = tuple[TestResult, TestResult | None]


def pair(id: str, head: str | None, base: str | None = "pass", **fields: Any) -> Pair:
    """A test with these verdicts; base declares the gates of head, and none of them failed."""
    on_base: Any = base
    on_head: Any = head
    gates = fields.get("gates", ())
    return results.result(id, on_head, **fields), results.result(id, on_base, gates=gates)


def lost_gate(id: str) -> Pair:
    """A test whose gate held on base and failed on head."""
    return pair(id, "fail", gates=("safe",), failed=("safe",))


def suite(
    *pairs: Pair, path: str = PATH, evidence: dict[str, Evidence] | None = None, **fields: Any
) -> SuiteComparison:
    """A compared suite; `fields` are those of `RunSuite`."""
    head, base = [head for head, _ in pairs], [base for _, base in pairs if base]
    selection = fields.pop("selection", Selection(path, ()))
    facts = RunSuite(selection, "suite", tuple(row.eval_id for row in head), **fields)
    return compare_suite(facts, head, base, evidence or {})


#: The names of tests for the levels of notes.
_LEVELS = {
    "refused": Level.REFUSED,
    "invalid": Level.ERROR,
    "problems": Level.PROBLEM,
    "warnings": Level.WARNING,
    "notices": Level.NOTICE,
}


def pop_notes(fields: dict[str, Any]) -> tuple[Note, ...]:
    """The notes in the fields of a run, which may have a list for each level."""
    return tuple(
        note for name, level in _LEVELS.items() for note in run_notes(level, fields.pop(name, ()))
    )


def decide(
    *suites: SuiteComparison, fail_on: frozenset[str] = ON_PULL_REQUEST, **fields: Any
) -> Decision:
    """The decision; `fields` are those of `Run` or of `Policy`."""
    of_run = {"notes": pop_notes(fields)}
    of_run |= {name: fields.pop(name) for name in Run.model_fields.keys() & fields.keys()}
    run = Run(head_sha="", policy=Policy(fail_on, **fields), baseline=RERUN)
    return gate.decide(run.model_copy(update=of_run), suites)
