"""Gives labelled answers to their judges, and measures how each judge agrees with people."""

import asyncio
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass, replace

from agentevals_action.errors import InvalidInput
from agentevals_action.evaluators.judges.pairwise import Pairwise
from agentevals_action.evaluators.judges.rubric import Rubric
from agentevals_action.execution.executor import SuiteExecutor
from agentevals_action.execution.fingerprint import Fingerprints
from agentevals_action.formatting import counted
from agentevals_action.judges.labels import answer_digest, list_measured
from agentevals_action.model.diagnostic import Diagnostic
from agentevals_action.model.evaluator import Evaluator
from agentevals_action.model.judge import (
    Agreement,
    CriterionCalibration,
    JudgeCalibration,
    Label,
)
from agentevals_action.model.result import (
    EvaluatorResult,
    Key,
    SampleResult,
    TestResult,
    preferred_sides,
)
from agentevals_action.model.suite import Suite, Test
from agentevals_action.model.usage import Spending
from agentevals_action.targets.message_texts import prompt_text

#: Counts of judgements. The rows are people's labels, the columns the judge's verdicts; pass is
#: before fail.
Table = Sequence[Sequence[float]]


@dataclass(frozen=True)
class Judgement:
    """One judgement of a labelled answer to a test: whether `people` and the `judge` let it pass.
    `answer` identifies what is labelled."""

    test: Key
    answer: object
    people: bool
    judge: bool


@dataclass(frozen=True)
class Measured:
    """The agreement of a judge with people; for readers also the `table` of all judgements, and the
    two-sided 95 % interval of kappa, None where kappa is unknown."""

    agreement: Agreement
    table: Table
    kappa_interval: tuple[float, float] | None


@dataclass(frozen=True)
class LabelledAnswer:
    """An answer to a test, with the labels that count; `other` is one that it is compared with."""

    test: Key
    sample: SampleResult
    labels: tuple[Label, ...]
    other: SampleResult | None = None


@dataclass(frozen=True)
class Opinion:
    """What a judge said about an answer once: whether it `passes`, None with an error as the
    `reason`, and the score of 0-1."""

    passes: bool | None
    score: float | None
    reason: str
    models: tuple[str, ...] = ()


@dataclass(frozen=True)
class JudgedAnswer:
    """A label, and the opinions of its judge about the same answer. `key` is that of the judge,
    `target` names its targets; `question`, `criteria` and `answer` are for readers."""

    label: Label
    question: str
    criteria: str
    answer: str
    key: str
    evaluator: Evaluator
    target: str
    opinions: tuple[Opinion, ...]

    @property
    def known(self) -> tuple[Opinion, ...]:
        """The opinions without errors."""
        return tuple(opinion for opinion in self.opinions if opinion.passes is not None)

    @property
    def differing(self) -> tuple[Opinion, ...]:
        """Those that contradict the label."""
        return tuple(each for each in self.known if each.passes != self.label.passes)


@dataclass(frozen=True)
class MeasuredJudge:
    """What was measured of one judge: its entry in the file, the figures of all its labels and of
    each criterion, and the judged answers."""

    calibration: JudgeCalibration
    measured: Measured
    criteria: Mapping[str, Measured]
    answers: tuple[JudgedAnswer, ...]


def find_answers(
    labels: Iterable[Label], stored: Iterable[TestResult]
) -> tuple[LabelledAnswer, ...]:
    """The answers of labels, with those that labels name by a digest from `stored` results.
    InvalidInput, with the location of each, if one is not there."""
    by_digest = {answer_digest(sample): sample for row in stored for sample in row.samples}
    found: dict[tuple[Key, str], list[Label]] = {}
    errors: list[Diagnostic] = []
    for label in labels:
        if label.answer is None and label.digest not in by_digest:
            problem = "no result has the answer with this digest"
            errors.append(Diagnostic(label.places["digest"], problem, "name its file: `--results`"))
        found.setdefault(((label.suite, label.test), label.digest), []).append(label)
    if errors:
        number = counted(len(errors), "labelled answer")
        raise InvalidInput(f"{number} could not be found", errors=list(map(str, errors)))
    return tuple(
        LabelledAnswer(
            test,
            _sample(own[0].answer, by_digest.get(digest)),
            tuple(own),
            None if own[0].other is None else _sample(own[0].other, None),
        )
        for (test, digest), own in found.items()
    )


def _sample(text: str | None, stored: SampleResult | None) -> SampleResult:
    if text is None and stored:
        return replace(stored, spent=Spending())  # of the agent
    message = {"role": "assistant", "content": text or ""}
    return SampleResult(candidate_answer=text or "", output_messages=(message,))


class LabelledJudges:
    """The judges that the labels of answers are about, by test and by their paths in results."""

    def __init__(self, answers: Iterable[LabelledAnswer]) -> None:
        self._paths: dict[Key, dict[str, None]] = {}
        for answer in answers:
            own = self._paths.setdefault(answer.test, {})
            own |= dict.fromkeys(label.evaluator for label in answer.labels)

    def select(self, suites: Sequence[Suite]) -> Sequence[Suite]:
        """The tests with labels, each with these judges as its evaluators."""
        found = [suite.with_tests(self._reduced(suite)) for suite in suites]
        return [suite for suite in found if suite.tests]

    def _reduced(self, suite: Suite) -> Iterable[Test]:
        for test in suite.tests:
            if paths := self._paths.get((suite.path, test.id)):
                judges = [list_measured(test)[path] for path in paths]
                # A prompt may read the criteria of the test's own rubric.
                read = [each for each in test.evaluators if each.origin == "rubrics"]
                others = [each for each in read if each not in judges]
                yield test.model_copy(update={"evaluators": (*judges, *others)})

    async def ask(
        self,
        answers: Iterable[LabelledAnswer],
        suites: Mapping[str, Suite],
        executor: Callable[[Suite], SuiteExecutor],
        fingerprints: Fingerprints,
        samples: int,
        done: Callable[[Sequence[SampleResult]], None],
    ) -> Sequence[JudgedAnswer]:
        """The opinions of each judge about each of its answers, or about other forms of them,
        `samples` times; `suites` are the selected ones by their paths. `done` receives what an
        answer led to."""

        async def ask_about(answer: LabelledAnswer) -> Sequence[JudgedAnswer]:
            suite = suites[answer.test[0]]
            test = next(test for test in suite.tests if test.id == answer.test[1])
            scored, kind = await _judge(executor(suite), test, answer, samples)
            done(scored)
            paths = list(self._paths[answer.test])
            judged = []
            for label in answer.labels:
                evaluator = test.evaluators[paths.index(label.evaluator)]
                place = kind.index(evaluator)
                targets = suite.find_judges(evaluator, suite.find_agent(test))
                judged.append(
                    JudgedAnswer(
                        label,
                        prompt_text(test.input),
                        _criteria(test, evaluator, label),
                        _shown_answer(answer),
                        fingerprints.judge_key(suite, test, evaluator),
                        evaluator,
                        ", ".join(target.name for target in targets),
                        tuple(
                            _read_preference(each, found, label)
                            if answer.other
                            else read_opinion(each, found, evaluator, label.criterion)
                            for each in scored
                            for found in (each.evaluator_results[place : place + 1] or (None,))
                        ),
                    )
                )
            return judged

        async with asyncio.TaskGroup() as tasks:
            running = [tasks.create_task(ask_about(answer)) for answer in answers]
        return [judged for task in running for judged in task.result()]


async def _judge(
    executor: SuiteExecutor, test: Test, answer: LabelledAnswer, samples: int
) -> tuple[Sequence[SampleResult], Sequence[Evaluator]]:
    """What the judges say so many times, and the evaluators that these are."""
    if answer.other is None:
        return await executor.score(test.id, [answer.sample] * samples), test.scoring
    compared = [
        await executor.compare(test.id, (answer.sample, answer.other), number)
        for number in range(samples)
    ]
    return compared, test.comparing


def _shown_answer(answer: LabelledAnswer) -> str:
    other = f"\n\nor:\n{answer.other.candidate_answer}" if answer.other else ""
    return f"{answer.sample.candidate_answer}{other}"


def _read_preference(sample: SampleResult, result: EvaluatorResult | None, label: Label) -> Opinion:
    """Whether the judge prefers the first answer in both orders, much or slightly. Where it prefers
    none in both, it is not right, whatever people prefer."""
    if result is None or result.score is None:
        error = result.error if result else sample.error
        return Opinion(None, None, error.message if error else "there is no score")
    sides = preferred_sides(result)
    passes = 1 in sides if sides in ({1}, {-1}) else not label.passes
    reason = "; ".join(order.reasoning for order in result.evaluator_results if order.reasoning)
    models = result.judge.models if result.judge else ()
    return Opinion(passes, result.score, reason or result.reasoning, models)


def _criteria(test: Test, evaluator: Evaluator, label: Label) -> str:
    """What is asked about the answer to a test."""
    if isinstance(evaluator, Pairwise) and evaluator.criteria:
        return evaluator.criteria
    criteria = evaluator.rubrics if isinstance(evaluator, Rubric) else ()
    asked = [each.outcome for each in criteria if label.criterion in ("", each.name)]
    return "; ".join(asked) or test.criteria or ""


def read_opinion(
    sample: SampleResult, result: EvaluatorResult | None, evaluator: Evaluator, criterion: str
) -> Opinion:
    """What the result of a judge says about the answer, or about one criterion."""
    if result is None or result.passed is None:
        error = result.error if result else sample.error
        return Opinion(None, None, error.message if error else "there is no score")
    models = result.judge.models if result.judge else ()
    if not criterion or not isinstance(evaluator, Rubric):
        reason = result.reasoning or "; ".join(result.misses or result.hits)
        return Opinion(result.passed, result.score, reason, models)
    asked = next(each for each in evaluator.rubrics if each.name == criterion)
    for check in result.details["checks"]:
        if check["id"] == criterion:
            is_hit = asked.is_hit(check["score"])
            return Opinion(is_hit, check["score"], check["reasoning"], models)
    return Opinion(None, None, "the judge left out the criterion")


def measure_judges(
    answers: Iterable[JudgedAnswer], measure: Callable[[Sequence[Judgement]], Measured]
) -> tuple[MeasuredJudge, ...]:
    """What the opinions without errors show of each judge that gave some; `measure` computes it
    (`statistics.measure`)."""
    by_judge: dict[str, list[JudgedAnswer]] = {}
    for answer in answers:
        by_judge.setdefault(answer.key, []).append(answer)
    return tuple(
        _measure_judge(tuple(own), measure)
        for own in by_judge.values()
        if any(each.known for each in own)
    )


def _measure_judge(
    answers: tuple[JudgedAnswer, ...], measure: Callable[[Sequence[Judgement]], Measured]
) -> MeasuredJudge:
    first, measured = answers[0], measure(_judgements(answers))
    names = sorted({each.label.criterion for each in answers if each.known} - {""})
    criteria = {
        name: measure(_judgements(each for each in answers if each.label.criterion == name))
        for name in names
    }
    repeated = [each.known for each in answers if len(each.known) > 1]
    unstable = [len({opinion.passes for opinion in own}) > 1 for own in repeated]
    models = {model for each in answers for own in each.known for model in own.models}
    calibration = JudgeCalibration(
        **dict(measured.agreement),
        key=first.key,
        models=tuple(sorted(models)),
        type=first.evaluator.type,
        evaluators=tuple(sorted({each.label.evaluator for each in answers})),
        target=first.target,
        unstable=round(sum(unstable) / len(unstable), 4) if unstable else None,
        criteria=tuple(
            CriterionCalibration(id=name, **dict(own.agreement)) for name, own in criteria.items()
        ),
    )
    return MeasuredJudge(calibration, measured, criteria, answers)


def _judgements(answers: Iterable[JudgedAnswer]) -> Sequence[Judgement]:
    return [
        Judgement(label.key[:2], label.key, label.passes, bool(opinion.passes))
        for answer in answers
        for label in [answer.label]
        for opinion in answer.known
    ]


def verdicts_of(key: str, rows: Iterable[TestResult]) -> Sequence[bool]:
    """The verdicts of a judge in stored results, without those of a confirmation."""

    def walk(results: Iterable[EvaluatorResult]) -> Iterable[EvaluatorResult]:
        for result in results:
            yield result
            yield from walk(result.evaluator_results)

    return [
        result.passed
        for row in rows
        for sample in row.main_samples
        for result in walk(sample.evaluator_results)
        if result.judge and result.judge.key == key and result.passed is not None
    ]
