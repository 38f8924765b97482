"""Gives labelled answers to their judges, and reads the opinions of the judges."""

import asyncio
from collections.abc import Callable, Collection, Iterable, Mapping, Sequence
from dataclasses import dataclass, replace

from agentevals_action.evaluators.judges.pairwise import Pairwise
from agentevals_action.evaluators.judges.rubric import Rubric
from agentevals_action.execution.executor import SuiteExecutor
from agentevals_action.execution.fingerprint import Fingerprints
from agentevals_action.judges.labels import answer_digest, list_measured
from agentevals_action.model.diagnostic import Diagnostic
from agentevals_action.model.evaluator import Evaluator
from agentevals_action.model.judge import Label
from agentevals_action.model.result import (
    EvaluatorResult,
    Key,
    SampleResult,
    TestResult,
    by_path,
    preferred_sides,
)
from agentevals_action.model.suite import Suite, Test
from agentevals_action.model.trace import Spending
from agentevals_action.results.build import last_question
from agentevals_action.suites.checkout import require_valid


@dataclass(frozen=True)
class LabelledAnswer:
    """An answer to a test, with the labels that count."""

    test: Key
    sample: SampleResult
    labels: tuple[Label, ...]


@dataclass(frozen=True)
class Opinion:
    """What a judge said about an answer once: whether it `passes`, None with an error as the
    `reason`, and the score of 0-1."""

    passes: bool | None
    score: float | None = None
    reason: str = ""
    models: tuple[str, ...] = ()


@dataclass(frozen=True)
class JudgedAnswer:
    """A label, and the opinions of its judge about the same answer. `key` identifies the
    judge, `type` is its type, `target` names its targets; `question`, `criteria` and `answer` are
    for readers."""

    label: Label
    opinions: tuple[Opinion, ...]
    key: str = ""
    type: str = ""
    target: str = ""
    question: str = ""
    criteria: str = ""
    answer: str = ""

    @property
    def known(self) -> tuple[Opinion, ...]:
        """The opinions without errors."""
        return tuple(opinion for opinion in self.opinions if opinion.passes is not None)

    @property
    def differing(self) -> tuple[Opinion, ...]:
        """The opinions that contradict the label."""
        return tuple(opinion for opinion in self.known if opinion.passes != self.label.passes)


def find_answers(
    labels: Iterable[Label], stored: Iterable[TestResult]
) -> tuple[LabelledAnswer, ...]:
    """The answers of labels; an answer that a label names by its digest is from `stored` results.
    InvalidInput, with the location of each, if answers are missing."""
    samples = {
        answer_digest(sample): replace(sample, spent=Spending())  # by the agent
        for row in stored
        for sample in row.samples
    }
    answers: dict[tuple[str, ...], LabelledAnswer] = {}
    errors: list[Diagnostic] = []
    for label in labels:
        sample = samples.get(label.digest) if label.answer is None else _sample(label.answer)
        if sample is None:
            problem = "no result has the answer with this digest"
            errors.append(Diagnostic(label.places["digest"], problem, "name its file: `--results`"))
            continue
        key = label.key[:3]
        answer = answers.get(key) or LabelledAnswer(key[:2], sample, ())
        answers[key] = replace(answer, labels=(*answer.labels, label))
    require_valid((), errors)
    return tuple(answers.values())


def _sample(text: str) -> SampleResult:
    message = {"role": "assistant", "content": text}
    return SampleResult(candidate_answer=text, output_messages=(message,))


def select_judges(answers: Iterable[LabelledAnswer], suites: Iterable[Suite]) -> Sequence[Suite]:
    """The tests with labels; the evaluators of a test are the judges that its labels are about,
    with their paths in results as names."""
    names: dict[Key, dict[str, None]] = {}
    for answer in answers:
        judges = dict.fromkeys(label.evaluator for label in answer.labels)
        names[answer.test] = names.get(answer.test, {}) | judges
    selected = (
        suite.with_tests(
            _with_judges(test, names[suite.path, test.id])
            for test in suite.tests
            if (suite.path, test.id) in names
        )
        for suite in suites
    )
    return [suite for suite in selected if suite.tests]


def _with_judges(test: Test, names: Collection[str]) -> Test:
    measured = list_measured(test)
    judges = [measured[name].model_copy(update={"name": name}) for name in names]
    # A prompt may read the criteria of the test's own rubric.
    rubrics = (evaluator for evaluator in test.evaluators if evaluator.origin == "rubrics")
    read = [rubric for rubric in rubrics if rubric.name not in names]
    return test.model_copy(update={"evaluators": (*judges, *read)})


async def ask_judges(
    answers: Iterable[LabelledAnswer],
    suites: Mapping[str, Suite],
    executor: Callable[[Suite], SuiteExecutor],
    fingerprints: Fingerprints,
    samples: int,
    done: Callable[[Sequence[SampleResult]], None],
) -> Sequence[JudgedAnswer]:
    """The opinions of each judge about each of its answers, `samples` times; `suites` are the
    selected suites by path. `done` receives the samples with the opinions about an answer."""

    async def ask_about(answer: LabelledAnswer) -> Sequence[JudgedAnswer]:
        suite = suites[answer.test[0]]
        test = next(test for test in suite.tests if test.id == answer.test[1])
        scored = await _judge(executor(suite), answer, samples)
        done(scored)
        judged = []
        for label in answer.labels:
            evaluator = next(judge for judge in test.evaluators if judge.name == label.evaluator)
            targets = suite.find_judges(evaluator, suite.find_agent(test))
            judged.append(
                JudgedAnswer(
                    label,
                    tuple(_opinion(sample, evaluator, label) for sample in scored),
                    fingerprints.judge_key(suite, test, evaluator),
                    evaluator.type,
                    ", ".join(target.name for target in targets),
                    last_question(test),
                    _criteria(test, evaluator, label),
                    "\n\nor:\n".join(filter(None, (answer.sample.candidate_answer, label.other))),
                )
            )
        return judged

    async with asyncio.TaskGroup() as tasks:
        running = [tasks.create_task(ask_about(answer)) for answer in answers]
    return [judged for task in running for judged in task.result()]


async def _judge(
    executor: SuiteExecutor, answer: LabelledAnswer, samples: int
) -> Sequence[SampleResult]:
    """What the judges say about an answer, `samples` times."""
    test, other = answer.test[1], answer.labels[0].other
    if other is None:
        return await executor.score(test, [answer.sample] * samples)
    pair = (answer.sample, _sample(other))
    return [await executor.compare(test, pair, number) for number in range(samples)]


def _criteria(test: Test, evaluator: Evaluator, label: Label) -> str:
    """What is asked about the answer to a test."""
    if isinstance(evaluator, Pairwise) and evaluator.criteria:
        return evaluator.criteria
    criteria = evaluator.rubrics if isinstance(evaluator, Rubric) else ()
    asked = [rubric.outcome for rubric in criteria if label.criterion in ("", rubric.name)]
    return "; ".join(asked) or test.criteria or ""


def read_opinion(
    sample: SampleResult, result: EvaluatorResult | None, evaluator: Evaluator, criterion: str
) -> Opinion:
    """What the result of a judge says about the answer, or about one criterion."""
    if result is None or result.passed is None:
        error = result.error if result else sample.error
        return Opinion(None, reason=error.message if error else "there is no score")
    models = result.judge.models if result.judge else ()
    if not criterion or not isinstance(evaluator, Rubric):
        reason = result.reasoning or "; ".join(result.misses or result.hits)
        return Opinion(result.passed, result.score, reason, models)
    asked = next(rubric for rubric in evaluator.rubrics if rubric.name == criterion)
    for check in result.details["checks"]:
        if check["id"] == criterion:
            is_hit = asked.is_hit(check["score"])
            return Opinion(is_hit, check["score"], check["reasoning"], models)
    return Opinion(None, reason="the judge left out the criterion")


def _opinion(sample: SampleResult, evaluator: Evaluator, label: Label) -> Opinion:
    """What a judge says about the answer of a label. A pairwise judge lets the first answer pass if
    it prefers this answer in both orders, much or slightly. A judge that does not prefer the same
    answer in both orders is wrong, whatever people prefer."""
    result = by_path(sample.evaluator_results).get(evaluator.name)
    opinion = read_opinion(sample, result, evaluator, label.criterion)
    if result is None or opinion.passes is None or not evaluator.compares:
        return opinion
    sides = preferred_sides(result)
    passes = 1 in sides if sides in ({1}, {-1}) else not label.passes
    reasons = "; ".join(order.reasoning for order in result.evaluator_results if order.reasoning)
    return replace(opinion, passes=passes, reason=reasons or opinion.reason)


def verdicts_of(key: str, rows: Iterable[TestResult]) -> Sequence[bool]:
    """The verdicts of a judge in stored results, without samples of a confirmation."""
    return [
        result.passed
        for row in rows
        for sample in row.main_samples
        for result in by_path(sample.evaluator_results).values()
        if result.judge and result.judge.key == key and result.passed is not None
    ]
