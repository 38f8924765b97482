"""What changes the verdicts of a judge and should not: the order of criteria, filler in an answer,
and whose answer it is."""

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Literal

from agentevals_action.evaluators.judges.rubric import Rubric
from agentevals_action.judges.calibrate import JudgedAnswer, LabelledAnswer
from agentevals_action.judges.labels import answer_digest
from agentevals_action.model.result import TestResult
from agentevals_action.model.suite import Suite, Test

#: It adds length to an answer, and says nothing about any subject.
_FILLER = (
    "\n\nThere are several aspects to consider here, and each of them deserves attention. In "
    "general, it helps to look at the matter as a whole before one goes into details. With that "
    "in mind, the points above can be read together, in the order in which they are given."
)

#: `own model` and `other models` are those of the answers; people's verdicts are compared.
Bias = Literal["order", "length", "own model", "other models"]
#: Answers, and by their paths the suites in which the judges are asked about them.
Form = tuple[Sequence[LabelledAnswer], Mapping[str, Suite]]


@dataclass(frozen=True)
class Flips:
    """Pairs of verdicts on one answer: how many were `compared`, and how many turned."""

    compared: int
    to_pass: int
    to_fail: int


def list_forms(answers: Sequence[LabelledAnswer], suites: Mapping[str, Suite]) -> Sequence[Form]:
    """The answers as they are; those with labels of criteria, which are in reverse; all with
    filler."""
    in_reverse = {
        path: suite.with_tests(map(_reverse, suite.tests)) for path, suite in suites.items()
    }
    return (
        (answers, suites),
        ([each for each in answers if any(own.criterion for own in each.labels)], in_reverse),
        ([*map(_with_filler, answers)], suites),
    )


def _reverse(test: Test) -> Test:
    evaluators = (
        each.model_copy(update={"rubrics": each.rubrics[::-1]})
        if isinstance(each, Rubric)
        else each
        for each in test.evaluators
    )
    return test.model_copy(update={"evaluators": tuple(evaluators)})


def _with_filler(answer: LabelledAnswer) -> LabelledAnswer:
    sample = answer.sample
    longer = {"role": "assistant", "content": f"{sample.candidate_answer}{_FILLER}"}
    messages = (*sample.output_messages, longer)
    return replace(answer, sample=replace(sample, output_messages=messages))


def probe_judges(
    judged: Sequence[Sequence[JudgedAnswer]],
    stored: Iterable[TestResult],
    suites: Iterable[Suite],
) -> Mapping[str, Mapping[Bias, Flips]]:
    """The biases of judges by their keys. `judged` has the opinions on each of the forms; `stored`
    results show which target gave an answer, and `suites` its model."""
    first, reordered, longer = judged
    models = {
        (suite.path, name): target.priced_model()
        for suite in suites
        for name, target in suite.targets.targets.items()
    }
    agents = {
        (row.eval_path, row.eval_id, answer_digest(sample)): models.get((row.eval_path, row.target))
        for row in stored
        for sample in row.samples
    }
    probes: dict[str, Mapping[Bias, Flips]] = {}
    for key in dict.fromkeys(each.key for each in first):
        own = [each for each in first if each.key == key]
        verdicts: dict[bool, list[tuple[bool, bool | None]]] = {True: [], False: []}
        for each in own:
            agent = agents.get(each.label.key[:3])
            judge = models.get((each.label.suite, each.target))
            if agent and judge:
                pairs = [(each.label.passes, opinion.passes) for opinion in each.opinions]
                verdicts[agent == judge] += pairs
        probes[key] = {
            "order": _turned((each for each in own if each.label.criterion), reordered),
            "length": _turned(own, longer),
            "own model": _count(verdicts[True]),
            "other models": _count(verdicts[False]),
        }
    return probes


def _turned(before: Iterable[JudgedAnswer], after: Iterable[JudgedAnswer]) -> Flips:
    opinions = {each.label.key: each.opinions for each in after}
    return _count(
        (old.passes, new.passes)
        for each in before
        for old, new in zip(each.opinions, opinions[each.label.key], strict=True)
    )


def _count(verdicts: Iterable[tuple[bool | None, bool | None]]) -> Flips:
    """The flips among pairs of verdicts; those that are unknown do not count."""
    pairs = [pair for pair in verdicts if None not in pair]
    return Flips(len(pairs), pairs.count((False, True)), pairs.count((True, False)))
