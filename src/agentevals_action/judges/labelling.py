"""Which answers a person labels next, and how many labels a judge still needs."""

from collections import Counter, defaultdict
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from itertools import chain
from typing import Any

from agentevals_action.evaluators.judges.llm_judge import LlmJudge
from agentevals_action.evaluators.judges.rubric import Rubric
from agentevals_action.execution.fingerprint import Fingerprints
from agentevals_action.judges.calibrate import Opinion, read_opinion
from agentevals_action.judges.labels import (
    answer_digest,
    list_judges,
    question_digest,
    text_digest,
)
from agentevals_action.model.judge import Floor, Labels, more_labels
from agentevals_action.model.result import SampleResult, TestResult, as_declared, by_path
from agentevals_action.model.suite import Suite, Test
from agentevals_action.results.build import asks_same

#: Characters of an answer that a label file has as text; of a longer answer it has the digest.
MAX_TEXT = 20_000


@dataclass(frozen=True)
class Task:
    """An answer to label, about which the `judge` (its path in results) is asked; `criterion` is
    one of the criteria of a rubric, empty for another judge."""

    suite: Suite
    test: Test
    sample: SampleResult
    judge: str
    evaluator: LlmJudge | Rubric
    criterion: str

    @property
    def opinion(self) -> Opinion:
        """What the judge says about the answer."""
        result = by_path(self.sample.evaluator_results).get(self.judge)
        return read_opinion(self.sample, result, self.evaluator, self.criterion)

    def entry(self, verdict: str, who: str) -> Mapping[str, Any]:
        """The entry of a label file, with the text of the answer if judges read nothing else."""
        text, digest = self.sample.candidate_answer, answer_digest(self.sample)
        is_text = len(text) <= MAX_TEXT and text_digest(text) == digest
        return {
            **({} if self.suite.path.endswith(".yaml") else {"suite": self.suite.path}),
            "test": self.test.id,
            **({"answer": text} if is_text else {"digest": digest}),
            "question": question_digest(self.test),
            "evaluator": self.judge,
            **({"criterion": self.criterion} if self.criterion else {}),
            "label": verdict,
            "who": who,
        }


def list_tasks(
    suites: Sequence[Suite],
    rows: Iterable[TestResult],
    labels: Labels,
    who: str,
    *,
    every_answer: bool = False,
) -> Sequence[Task]:
    """The answers that a person has not labelled yet, those that a judge fails first, without
    answers to a question that has changed since. Each test has one answer, because answers to the
    same question are no independent observations, or with `every_answer` all."""
    tests = {(suite.path, test.id): (suite, test) for suite in suites for test in suite.tests}
    answers = [
        [*_tasks(*tests[row.key], sample)]
        for row in as_declared(rows)
        if row.key in tests and asks_same(row, tests[row.key][1])
        for sample in row.samples
        if sample.output_messages
    ]
    answers.sort(key=lambda tasks: all(task.opinion.passes is not False for task in tasks))
    done = {
        (*label.key[:2], *label.key[3:], label.digest if every_answer else "")
        for label in labels.valid
        if label.who == who
    }
    tasks_by_subject = dict[tuple[str, ...], Task]()
    for task in chain.from_iterable(answers):
        answer = answer_digest(task.sample) if every_answer else ""
        about = (task.suite.path, task.test.id, task.judge, task.criterion, answer)
        tasks_by_subject.setdefault(about, task)
    return [task for about, task in tasks_by_subject.items() if about not in done]


def _tasks(suite: Suite, test: Test, sample: SampleResult) -> Iterator[Task]:
    for path, judge in list_judges(test).items():
        criteria = [rubric.name for rubric in judge.rubrics] if isinstance(judge, Rubric) else [""]
        for criterion in criteria:
            yield Task(suite, test, sample, path, judge, criterion)


def describe_labels(
    suites: Sequence[Suite], labels: Labels, floors: Sequence[Floor]
) -> Iterator[str]:
    """How many labels of which class each judge has, and how many more each floor needs at least,
    if the judge agrees with all of them."""
    fingerprints = Fingerprints()
    keys = {
        (suite.path, test.id, path): fingerprints.judge_key(suite, test, judge)
        for suite in suites
        for test in suite.tests
        for path, judge in list_judges(test).items()
    }
    counts: dict[str, Counter[bool]] = defaultdict(Counter)
    for label in labels.counted:
        if label.other is None:
            counts[keys[label.suite, label.test, label.evaluator]][label.passes] += 1
    for key, path in {key: path for (_, _, path), key in keys.items()}.items():
        passes, fails = counts[key][True], counts[key][False]
        has = f"`{path}` has {passes} pass, {fails} fail"
        sizes = {"sensitivity": passes, "specificity": fails, "agreement": passes + fails}
        for floor in floors:
            more = more_labels(1.0, sizes.get(floor.metric, 0), floor.least)
            if floor.metric in sizes and more != 0:
                kind = {"sensitivity": " pass", "specificity": " fail"}.get(floor.metric, "")
                has += f"; {floor} needs at least {more or 'a thousand'} more{kind}"
        yield has
