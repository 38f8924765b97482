"""Which answers a person labels next, and how many labels a judge still needs."""

import math
from collections import Counter, defaultdict
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import Any, Literal

from agentevals_action.evaluators.judges.llm_judge import LlmJudge
from agentevals_action.evaluators.judges.rubric import Criterion, Rubric
from agentevals_action.execution.fingerprint import Fingerprints
from agentevals_action.judges.calibrate import Opinion, read_opinion
from agentevals_action.judges.labels import (
    answer_digest,
    list_judges,
    list_measured,
    question_digest,
    text_digest,
)
from agentevals_action.model.judge import Label, Labels
from agentevals_action.model.judge_rule import Floor
from agentevals_action.model.result import SampleResult, TestResult, as_declared, by_path
from agentevals_action.model.suite import Suite, Test
from agentevals_action.results.build import asks_same

#: Characters of an answer that a label file has as text; of a longer one it has the digest.
MAX_TEXT = 20_000
#: The probability that a one-sided 95 % bound does not hold.
_ERROR = 0.05
#: The labels that a metric is computed from, if it is those of one class.
CLASSES: Mapping[str, Literal["pass", "fail"]] = {"sensitivity": "pass", "specificity": "fail"}


@dataclass(frozen=True)
class Task:
    """An answer to label: what the `judge` (its path in results) is asked about it, or about one
    `criterion` of its rubric."""

    suite: Suite
    test: Test
    sample: SampleResult
    judge: str
    evaluator: LlmJudge | Rubric
    criterion: Criterion | None = None

    @property
    def opinion(self) -> Opinion:
        """What the judge says about it."""
        result = by_path(self.sample.evaluator_results).get(self.judge)
        criterion = self.criterion.name if self.criterion else ""
        return read_opinion(self.sample, result, self.evaluator, criterion)

    def label(self, verdict: Literal["pass", "fail"], who: str) -> Label:
        """A label for it, as a file has it: with the text of the answer if the judge reads nothing
        else of it."""
        text, digest = self.sample.candidate_answer, answer_digest(self.sample)
        is_text = len(text) <= MAX_TEXT and text_digest(text) == digest
        fields: dict[str, Any] = {"answer": text} if is_text else {"digest": digest}
        fields["question"] = question_digest(self.test)
        if self.criterion:
            fields["criterion"] = self.criterion.name
        return Label(test=self.test.id, evaluator=self.judge, label=verdict, who=who, **fields)

    def resolved(self, label: Label) -> Label:
        """Its label as it is read."""
        found = {"suite": self.suite.path, "digest": answer_digest(self.sample)}
        return label.model_copy(update=found)


def list_tasks(
    suites: Sequence[Suite],
    rows: Iterable[TestResult],
    labels: Labels,
    who: str,
    *,
    every_answer: bool = False,
) -> tuple[Sequence[Task], int]:
    """What a person has not labelled yet, answers that a judge fails first; and the number of rows
    that are left out because the test asks another question by now.

    Of each test it is `every_answer`, or one that has labels already or that a judge fails: answers
    to the same question are no independent observations."""
    tests = {(suite.path, test.id): (suite, test) for suite in suites for test in suite.tests}
    labelled = {label.digest for label in labels.valid}
    answers: list[Sequence[Task]] = []
    stale = 0
    for row in as_declared(rows):
        suite, test = tests.get(row.key, (None, None))
        if suite is None or test is None or not list_judges(test):
            continue
        if not asks_same(row, test):
            stale += 1
            continue
        samples = {answer_digest(each): each for each in row.samples if each.output_messages}
        own = [[*_tasks(suite, test, sample)] for sample in samples.values()]
        own.sort(key=lambda tasks: (answer_digest(tasks[0].sample) not in labelled, _passes(tasks)))
        answers += own if every_answer else own[:1]
    answers.sort(key=_passes)
    done = {_about(label, every_answer) for label in labels.valid if label.who == who}
    return [
        task
        for tasks in answers
        for task in tasks
        if _about(task.resolved(task.label("pass", who)), every_answer) not in done
    ], stale


def _tasks(suite: Suite, test: Test, sample: SampleResult) -> Iterator[Task]:
    for path, judge in list_judges(test).items():
        for criterion in judge.rubrics if isinstance(judge, Rubric) else (None,):
            yield Task(suite, test, sample, path, judge, criterion)


def _passes(tasks: Sequence[Task]) -> bool:
    """Whether no judge fails the answer."""
    return all(task.opinion.passes is not False for task in tasks)


def _about(label: Label, every_answer: bool) -> tuple[str, ...]:
    """What a label is about; of one answer to each test, whatever the answer is."""
    suite, test, digest, *judge = label.key
    return (suite, test, digest if every_answer else "", *judge)


def count_labels(
    suites: Sequence[Suite], labels: Labels, fingerprints: Fingerprints
) -> Mapping[str, Counter[str]]:
    """The number of labels that count, by the key of the judge and by class (`pass`, `fail`)."""
    tests = {(suite.path, test.id): (suite, test) for suite in suites for test in suite.tests}
    counts: dict[str, Counter[str]] = defaultdict(Counter)
    for label in labels.counted:
        suite, test = tests[label.suite, label.test]
        key = fingerprints.judge_key(suite, test, list_measured(test)[label.evaluator])
        counts[key]["pass" if label.passes else "fail"] += 1
    return counts


def missing_labels(counts: Counter[str], floor: Floor) -> int:
    """How many more labels a floor needs at least, if the judge agrees with all of them: the lower
    bound of Clopper and Pearson (1934) of n hits of n is 0.05^(1/n). Kappa needs some of each
    class."""
    if floor.metric == "kappa":
        return int(not counts["pass"]) + int(not counts["fail"])
    least = math.ceil(math.log(_ERROR) / math.log(floor.least))
    known = CLASSES.get(floor.metric)
    return max(0, least - (counts[known] if known else counts.total()))
