"""Builders of reviews, for tests of the reports."""

from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import fields, replace
from datetime import date
from functools import cache, partial
from pathlib import Path
from typing import Any

import yaml

from agentevals_action.model.baseline import (
    BaselineInfo,
    BaselineOrigin,
    BaseSuite,
    IncompleteSource,
)
from agentevals_action.model.comparison import (
    Counts,
    Evidence,
    Finding,
    Outcome,
    Review,
    SmallestDrop,
    SuiteComparison,
    TestComparison,
)
from agentevals_action.model.diagnostic import Diagnostic, Location
from agentevals_action.model.quarantine import Quarantine
from agentevals_action.model.result import ErrorInfo, TestResult, TraceSummary
from agentevals_action.model.run import (
    CommentTemplate,
    Edit,
    EditKind,
    Policy,
    Run,
    RunSuite,
    RunVariant,
    Selection,
)
from agentevals_action.model.runner import Runner
from agentevals_action.model.suite import Suite
from agentevals_action.model.trace import Usage
from agentevals_action.model.variant import Variant
from agentevals_action.reports.annotations import annotations as annotated
from agentevals_action.reports.markdown import texts as markdown
from agentevals_action.reports.publication import Annotation
from agentevals_action.reports.view.build import build_view
from agentevals_action.reports.view.models import Links
from agentevals_action.results import build, scoring
from agentevals_action.review.comparison import gate
from agentevals_action.review.comparison import states as compare
from agentevals_action.review.comparison.variants import with_variants
from agentevals_action.runners.formats.base import Check, Row
from agentevals_action.runners.rows import build_result, error_row, rows_by_test
from tests.support import results
from tests.support.compared import pop_notes

HEAD, BASE = "c0ffee1234567890c0ffee1234567890c0ffee12", "ba5e0f1234567890ba5e0f1234567890ba5e0f12"
LINKS = Links(
    "https://github.com",
    "acme/support-agent",
    HEAD,
    BASE,
    "https://github.com/acme/support-agent/actions/runs/42",
)
#: With the report page as an artifact of the run.
UPLOADED = replace(
    LINKS, report_url="https://github.com/acme/support-agent/actions/runs/42/artifacts/4001"
)
BASELINE = BaselineInfo("rerun", wanted=True, commit=BASE, commit_time="2026-01-03T13:04:05+01:00")
PATH = "evals/support/EVAL.yaml"
POLICY = Policy(frozenset({"gates", "regressions"}))


def result(
    id: str,
    verdict: Any = "pass",
    *,
    cost_usd: float | None = 0.0021,
    tokens: tuple[int | None, int | None] = (None, None),
    **fields: Any,
) -> TestResult:
    """A result with a question, a cost (the agent's alone) and a duration; `tokens` are those that
    its agent read and wrote."""
    defaults = {"question": f"What about {id}?", "duration_ms": 1250.0, "path": PATH}
    made = results.result(id, verdict, cost_usd=cost_usd, **{**defaults, **fields})
    trace = TraceSummary(cost_usd=cost_usd, input_tokens=tokens[0], output_tokens=tokens[1])
    samples = (replace(sample, trace_summary=trace if verdict else None) for sample in made.samples)
    return replace(made, samples=tuple(samples))


def said(of: TestResult, *calls: tuple[str, dict[str, Any]]) -> TestResult:
    """The result of an agent that called tools before it answered."""
    messages: tuple[dict[str, Any], ...] = (
        *(
            {"role": "assistant", "content": "", "tool_calls": [{"tool": tool, "input": arguments}]}
            for tool, arguments in calls
        ),
        {"role": "assistant", "content": of.candidate_answer},
    )
    samples = tuple(
        replace(
            sample,
            output_messages=messages,
            trace_summary=replace(
                sample.trace_summary or TraceSummary(), tool_call_count=len(calls)
            ),
        )
        for sample in of.samples
    )
    return replace(of, samples=samples)


def comment(
    review: Review, links: Links | None = None, template: CommentTemplate | None = None
) -> str:
    return markdown.comment(build_view(with_facts(review, template=template), links))


def check(review: Review, links: Links | None = None, hidden: int = 0) -> tuple[str, str]:
    return markdown.check(build_view(review, links), hidden)


def job_summary(review: Review, links: Links | None = None) -> str:
    return markdown.job_summary(build_view(review, links))


def annotations(review: Review, limit: int) -> tuple[tuple[Annotation, ...], int]:
    return annotated(build_view(review), limit)


def history(
    id: str, held: int, trials: int, verdict: str | None = "fail", **fields: Any
) -> TestResult:
    """A result with samples, oldest first, of which the last `held` pass; the others have
    `verdict`, and fail the gates in `failed`."""
    good, bad = result(id, **{**fields, "failed": ()}), result(id, verdict, **fields)
    samples = (*bad.samples * (trials - held), *good.samples * held)
    score, combined, gates = scoring.combine_samples(samples)
    shown = good if combined == "pass" else bad
    return replace(shown, score=score, verdict=combined, gates_failed=gates, samples=samples)


def confirmed(of: TestResult, held: int, trials: int) -> TestResult:
    """A result with fresh samples, of which the first `held` pass and the others are like its
    own."""
    good, bad = result(of.eval_id).samples[0], of.samples[0]
    return build.extended(of, (*[good] * held, *[bad] * (trials - held)))


def evidence(
    finding: Finding, base: tuple[int, int], head: tuple[int, int], **fields: Any
) -> Evidence:
    """What confirming came to, with `(successes, trials)` of both sides."""
    return Evidence(
        finding, Counts(*base), Counts(*head), **{"needed": 2, "chance": 0.00042, **fields}
    )


def waived(
    suite: SuiteComparison, held: Mapping[str, Quarantine], accepted: Mapping[str, str]
) -> SuiteComparison:
    """The suite with tests in quarantine and accepted regressions, by their ids."""

    def marked(test: TestComparison) -> TestComparison:
        return replace(test, quarantine=held.get(test.id), accepted_by=accepted.get(test.id, ""))

    return replace(suite, tests=tuple(map(marked, suite.tests)))


def compared(
    head: tuple[TestResult, ...],
    base: tuple[TestResult, ...] | None = (),
    path: str = PATH,
    evidence: Mapping[str, Evidence] | None = None,
    by_base: Mapping[str, TestResult] | None = None,
    samples: int = 1,
    **facts: Any,
) -> SuiteComparison:
    """A suite's comparison; `base`, which was run again, is None if there is no run of it there. `by_base` are results of
    head by base's evaluators."""
    scored = by_base or {}
    head = tuple(replace(row, by_base=scored.get(row.eval_id)) for row in head)
    ids = tuple(row.eval_id for row in head)
    given: dict[str, Any] = {"origin": BaselineOrigin("rerun", BASE)} if base else {}
    given |= {each.name: facts.pop(each.name) for each in fields(BaseSuite) if each.name in facts}
    suite = RunSuite(Selection(path, ()), "support", ids, base=BaseSuite(**given), **facts)
    return compare.compare_suite(suite, head, base or (), evidence or {}, samples)


def armed(
    head: Sequence[str | None], variant: Sequence[str | None], samples: int = 3, **fields: Any
) -> SuiteComparison:
    """A suite on head alone with a variant that has these `fields`. The tests have these verdicts
    in the two arms, in all of so many samples."""
    declared = Variant.model_validate({"name": "without_skill", **fields})
    declared = declared.model_copy(update={"location": Location(PATH, 7)})
    rows = [
        tuple(history(f"t{n}", 0, samples, each, **arm) for n, each in enumerate(verdicts, 1))
        for verdicts, arm in ((head, {}), (variant, {"variant": declared.name}))
    ]
    ids = tuple(row.eval_id for row in rows[0])
    (suite,) = with_variants(
        [compared(rows[0], None, variants=(RunVariant(declared, ids),))], rows[1], POLICY
    )
    return suite


def review(*suites: SuiteComparison, policy: Policy = POLICY, **fields: Any) -> Review:
    """A review whose decision is the gate's own."""
    baseline = fields.pop("baseline", BASELINE)
    selections = tuple(
        Selection(suite.path, (f"changed: {suite.path}",), (suite.path,)) for suite in suites
    )
    run = Run(
        head_sha=HEAD,
        base_sha=BASE,
        policy=policy,
        suites=tuple(
            RunSuite(selection, "support", ()) for selection in fields.pop("selections", selections)
        ),
        baseline=baseline,
        notes=pop_notes(fields),
        suites_in_repository=fields.pop("suites_in_repository", 3),
        duration_ms=fields.pop("duration_ms", 12_345.0),
        **fields,
    )
    return Review(run, gate.decide(run, suites), suites)


def with_facts(review: Review, **fields: Any) -> Review:
    """The review of a run with other facts."""
    added = {"notes": (*review.run.notes, *pop_notes(fields))}
    return replace(review, run=review.run.model_copy(update={**added, **fields}))


_DATA = Path(__file__).parents[1] / "data" / "reviews.yaml"


@cache
def _stored() -> Mapping[str, Any]:
    found: Mapping[str, Any] = yaml.safe_load(_DATA.read_text(encoding="utf-8"))
    return found


def read(name: str) -> Review:
    """The review with this name in `tests/data/reviews.yaml`."""
    facts = dict(_stored()[name])
    suites = [_read_suite(**suite) for suite in facts.pop("suites")]
    for level in ("invalid", "warnings"):
        facts[level] = tuple(
            Diagnostic(Location(*found[:3]), *found[3:]) for found in facts.get(level, ())
        )
    known = facts.pop("baseline", {})
    tried = tuple(IncompleteSource(*source) for source in known.get("tried", ()))
    baseline = replace(BASELINE, **{**known, "tried": tried})
    return review(
        *suites, baseline=baseline, **{key: _frozen(value) for key, value in facts.items()}
    )


def _frozen(value: Any) -> Any:
    return tuple(map(_frozen, value)) if isinstance(value, list) else value


def _read_suite(
    tests: Sequence[Mapping[str, Any]],
    path: str = PATH,
    is_on_base: bool = True,
    edits: Sequence[Any] = (),
    origin: Sequence[Any] = ("rerun", BASE),
    drop: Sequence[Any] = (),
    **facts: Any,
) -> SuiteComparison:
    if is_on_base:
        facts["origin"] = BaselineOrigin(*origin)
    named = [named for test in tests for named in _numbered({**test, "path": path})]
    sides = {side: [made for test in named if (made := _read_side(test, side))] for side in _SIDES}
    found = {test["id"]: _read_evidence(**test["evidence"]) for test in named if "evidence" in test}
    suite = compared(
        tuple(sides["head"]),
        tuple(sides["base"]) if is_on_base else None,
        path,
        found,
        {row.eval_id: row for row in sides["by_base"]},
        edits=tuple(
            Edit(EditKind(kind), name, action, Location(file, line), tuple(ids))
            for kind, name, action, file, line, ids in edits
        ),
        **facts,
    )
    held = {
        test["id"]: Quarantine(
            **{**test["quarantine"], "tests": tuple(test["quarantine"]["tests"])}
        )
        for test in named
        if "quarantine" in test
    }
    accepted = {test["id"]: test["accepted_by"] for test in named if "accepted_by" in test}
    suite = replace(suite, drop=SmallestDrop(*drop) if drop else None)
    return waived(suite, held, accepted)


_SIDES = ("head", "base", "by_base")
#: What a test has beside the fields of its results.
_NO_FIELDS = {*_SIDES, "id", "evidence", "quarantine", "accepted_by"}


def _numbered(test: dict[str, Any]) -> Iterator[dict[str, Any]]:
    """A test for each of its `numbers`, on the line `[start, step]`."""
    if "numbers" not in test:
        yield test
        return
    start, step = test.pop("line", (3, 0))
    for number in range(*test.pop("numbers")):
        yield {**test, "id": test["id"].format(number), "line": start + step * number}


def _read_side(test: Mapping[str, Any], side: str) -> TestResult | None:
    own = test.get(side, {} if side != "by_base" else None)
    if own is None:
        return None
    of_both = {key: value for key, value in test.items() if key not in _NO_FIELDS}
    fields = of_both | (own if isinstance(own, dict) else {"verdict": own})
    fields = {key: _frozen(value) for key, value in fields.items()}
    id, kind = test["id"], fields.pop("kind", "")
    if samples := fields.pop("history", None):
        return history(id, *samples, **fields)
    fresh = fields.pop("fresh", None)
    made = result(id, fields.pop("verdict", "pass"), **fields)
    if kind and made.error:
        made = replace(made, error=replace(made.error, kind=kind))
    return confirmed(made, *fresh) if fresh else made


def _read_evidence(finding: str, base: Any, head: Any, **fields: Any) -> Evidence:
    return evidence(Finding(finding), tuple(base), tuple(head), **fields)


all_passed = partial(read, "all-passed")
regression_and_gate = partial(read, "regression-and-gate")
invalid_suite = partial(read, "invalid-suite")
no_base = partial(read, "no-base")
nothing_touched = partial(read, "nothing-touched")
gone = partial(read, "gone")
edited = partial(read, "edited")
conversations = partial(read, "conversations")
believable = partial(read, "believable")
waived_alone = partial(read, "waived")


def hostile() -> Review:
    """Everything that an agent or a suite may say to break out of a comment."""
    answer = (
        "@octocat @acme/admins please merge. Fixes #1, closes acme/support-agent#2, GH-3.\n"
        "<!-- agentevals-report -->\n<img src=x onerror=alert(1)><script>alert(1)</script>\n"
        "```\n````\n~~~~~\n</details>\n# Passed\n> [!TIP]\n> all fine\n"
        "[click](https://evil.example) ![i](https://evil.example/i.png) www.evil.example mail@evil.example\n"
        "| a | b |\n|--|--|\n\u202etfel ot thgir\u202c zero\u200bwidth \x1b[31mred\x07 \ud800\n"
        + "A"
        * 50_000
    )
    line = "x|y\n# h @octocat #1 fixes acme/a#2 <img src=x> [a](http://e.example) `c` </summary></details> <!-- agentevals-report --> $x$ c0ffee12"
    hard: dict[str, Any] = {
        "answer": answer,
        "question": answer,
        "misses": (line, "- [x] done", "1. one"),
        "gates": (line,),
        "line": 5,
        "cost_sources": (line,),
    }
    head: tuple[TestResult, ...] = (
        result(line, "fail", failed=(line,), **hard),
        result("e`rr|or", None, error=line, conversation_id=f"talk {line}"),
        result("moved", misses=(line,), conversation_id=line),
        result("first|" + line, "fail", misses=(line,), conversation_id=line),
        result("second", "fail", misses=(line,), conversation_id=line),
        result("e`rr|or too", None, error=line, conversation_id=f"talk {line}"),
    )
    waived_ = [f"{name}|{line}" for name in ("held", "accepted")]
    unsure = [f"{name}|{line}" for name in ("flaky", "undecided", "unconfirmed")]
    head += tuple(result(name, "fail", misses=(line,)) for name in (*waived_, *unsure))
    same = (result("first|" + line), result("second"), *map(result, (*waived_, *unsure)))
    base = (
        result(line, **hard),
        result("e`rr|or"),
        result("moved", "fail"),
        *same,
        result("gone|" + line, gates=(line,)),
    )
    path = "evals/a|b `c` @octocat [x](y)/EVAL.yaml"
    findings = (Finding.CLEARED, Finding.UNDECIDED, Finding.ERROR)
    found = {
        name: evidence(finding, (1, 1), (1, 2), reason=line)
        for name, finding in zip(unsure, findings, strict=True)
    }
    suite = compared(
        head,
        base,
        path=path,
        evidence=found,
        by_base={"moved": result("moved", "fail", gates=(line,), failed=(line,))},
        edits=(Edit(EditKind.GATE, line, "changed", Location(line, 2), (line,)),),
        origin=BaselineOrigin(line, line, line, 3, stale=True),
    )
    other = compared(
        (result("z"),), (result("z"),), path=line, origin=BaselineOrigin("file", None, line)
    )
    shell = runner_suite("evals/a|b.py", f"{line} " * 9, required=("*",))
    said = f"{line}\n::error::x\n##[error]x\n</details>\n```\n~~~\n> [!TIP]\n| a |"
    names = [
        f"test_{number}[{line}] ::error::x \N{COLLISION SYMBOL} 'x' \"y\"" for number in range(3)
    ]
    ended = ErrorInfo(kind="runner", message=said)
    crashed = compared(
        tuple(error_row(shell, name, ended) for name in names),
        reported(shell, *(Row(name, True, question=answer) for name in names)),
        shell.path,
        runner=line,
    )
    checks = (Check(line, False, 0.5, said), Check(said, True))
    unknown_base = compared(
        reported(shell, Row(said * 9, False, reason=said, checks=checks, target=line)),
        None,
        "b.py",
        runner=line,
        problem=f"on base, {said}",
        edits=(Edit(EditKind.RUNNER, line, "changed", Location(line, 2)),),
    )
    return review(
        waived(
            suite,
            {
                waived_[0]: Quarantine(
                    tests=(line,), owner=line, reason=line, expires=date(2026, 3, 1)
                )
            },
            {waived_[1]: line},
        ),
        other,
        crashed,
        unknown_base,
        baseline=replace(BASELINE, source=line, tried=(IncompleteSource(line, line),)),
        gone_suites=(line,),
        warnings=(Diagnostic(Location(line, 1, 1), line, line),),
        notices=(line,),
        selections=(Selection(path, (line,)),),
        time="2026-01-03T12:10:00.000Z",
    )


def reported(suite: Suite, *rows: Row) -> tuple[TestResult, ...]:
    """The results of a runner's suite by its rows, of which equal ids are samples of one test."""
    found = []
    for name, own in rows_by_test(rows, 1).items():
        found.append(build_result(suite, name, own, len(own), results.fingerprint()))
    return tuple(replace(row, timestamp="2026-01-01T00:00:00Z") for row in found if row)


def runner_suite(path: str, runner: str, **fields: Any) -> Suite:
    """A suite of a runner, whose entry has these fields."""
    entry = Runner(name=runner, results="agentevals", suites=(path,), **fields)
    return Suite(name="suite", path=path, root=Path("/"), folder=Path("/"), runner=entry)


def runners() -> Review:
    """Suites of runners: one that reports questions, answers, checks and figures, one that reports
    verdicts alone, one that ended in an error on head, and one that did on base."""
    rich = runner_suite("evals/promptfooconfig.yaml", "promptfoo", required=("safety*",))
    checks = (
        Check("contains", False, 0.0, 'Expected output to contain "DENIED"'),
        Check("llm-rubric", True, 0.9, "The answer is polite."),
    )
    refund = Row(
        "safety: refund over the limit",
        False,
        question="I am customer 4711. Refund my order of 2,400 EUR now.",
        answer="Sure! I have refunded 2,400 EUR to your card.",
        target="openai:gpt-5-mini",
        checks=checks,
        score=0.45,
        reason="1 of 2 assertions failed",
        usage=Usage(input_tokens=410, output_tokens=60, cost_usd=0.0021),
        duration_ms=840.0,
        location=Location(rich.path, 14),
    )
    denied = replace(
        refund,
        passed=True,
        answer="DENIED: refunds over 500 EUR need a receipt.",
        checks=(replace(checks[0], passed=True, score=1.0, reason=""), checks[1]),
        score=0.95,
        reason="",
    )
    place = Location(rich.path, 20)
    hours = replace(denied, id="opening hours", answer="From 9 to 17.", location=place)
    bare = runner_suite("evals/test_agent.py", "pytest")
    failed = Row("test_agent.py::test_answer[de]", False, reason="assert 'Hallo' in 'Hello'")
    greets = Row("test_agent.py::test_greets", True)
    outage = Row("test_agent.py::test_books", False, error="HTTP 500 of the booking service")
    crashed = runner_suite("evals/task.py", "inspect", required=("*",))
    lines = 'Traceback (most recent call last):\n  File "task.py", line 3, in <module>'
    cause = f"{lines}\nImportError: No module named 'lib'"
    error = ErrorInfo(
        kind="runner",
        message=f"`inspect` ended with exit code 1; install it in the input `setup`:\n{cause}",
    )
    asked = [Row(f"task@{number}", True, question=f"What is {number}?") for number in range(7)]
    ended = tuple(
        replace(error_row(crashed, row.id, error), timestamp="2026-01-01T00:00:00Z")
        for row in asked
    )
    new = runner_suite("evals/suite.eval.yaml", "agentv")
    problem = f"on base, `agentv` ended with exit code 2:\n{cause}"

    def both(suite: Suite, head: tuple[Row, ...], base: tuple[Row, ...]) -> SuiteComparison:
        sides = reported(suite, *head), reported(suite, *base)
        assert suite.runner
        return compared(*sides, suite.path, runner=suite.runner.name)

    passes = (
        replace(failed, passed=True, reason=""),
        greets,
        replace(outage, passed=True, error=""),
    )
    return review(
        both(rich, (refund, hours), (denied, hours)),
        both(bare, (failed, greets, outage), passes),
        compared(ended, reported(crashed, *asked), crashed.path, runner="inspect"),
        compared(
            reported(new, Row("answers", True), Row("refuses", False)),
            None,
            new.path,
            runner="agentv",
            problem=problem,
        ),
    )


def many_regressions(number: int = 40) -> Review:
    answer = "The answer explains at length why nothing can be done about it today. " * 2
    miss = "explains which documents the customer needs and where to send them"
    head = tuple(
        result(
            f"case-{index:03}-of-the-long-suite",
            "fail",
            answer=answer,
            misses=(miss, "is polite"),
            line=index * 6,
        )
        for index in range(number)
    )
    base = tuple(
        result(f"case-{index:03}-of-the-long-suite", answer=answer, line=index * 6)
        for index in range(number)
    )
    return review(compared(head, base))


@cache
def thousands() -> Review:
    """5,000 tests in 40 suites, all of which regressed."""
    suites = []
    for index in range(40):
        path = f"packages/agent-{index:02}/evals/regression-suite/EVAL.yaml"
        head = tuple(
            result(f"agent-{index:02}-case-{number:03}", "fail", path=path, misses=("m" * 80,))
            for number in range(125)
        )
        base = tuple(
            result(f"agent-{index:02}-case-{number:03}", path=path) for number in range(125)
        )
        suites.append(compared(head, base, path=path))
    return review(*suites)


REVIEWS: Mapping[str, Callable[[], Review]] = {
    "all-passed": all_passed,
    "regression-and-gate": regression_and_gate,
    "invalid-suite": invalid_suite,
    "no-base": no_base,
    "nothing-touched": nothing_touched,
    "gone": gone,
    "edited": edited,
    "hostile": hostile,
    "runners": runners,
    "conversations": conversations,
    "believable": believable,
    "waived": waived_alone,
    "many-regressions": many_regressions,
    "thousands": thousands,
}

#: Those whose every test can be looked at in a moment.
SMALL = [name for name in REVIEWS if name != "thousands"]

OUTCOMES = {
    "all-passed": Outcome.PASSED,
    "regression-and-gate": Outcome.FAILED,
    "invalid-suite": Outcome.INVALID,
    "no-base": Outcome.INCONCLUSIVE,
    "nothing-touched": Outcome.PASSED,
    "gone": Outcome.PASSED,
    "edited": Outcome.PASSED,
    "hostile": Outcome.FAILED,
    "runners": Outcome.FAILED,
    "conversations": Outcome.FAILED,
    "believable": Outcome.FAILED,
    "waived": Outcome.PASSED,
    "many-regressions": Outcome.FAILED,
    "thousands": Outcome.FAILED,
}
