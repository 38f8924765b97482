"""What changes the verdicts of a judge and should not: the order of criteria, filler in an answer,
and that the judge's own model gave the answer."""

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import replace
from typing import Literal

from agentevals_action.evaluators.judges.rubric import Rubric
from agentevals_action.judges.calibrate import JudgedAnswer, LabelledAnswer
from agentevals_action.judges.labels import answer_digest
from agentevals_action.model.result import TestResult
from agentevals_action.model.suite import Suite, Test

#: Filler: it adds length to an answer, and states nothing about any subject.
_FILLER = (
    "\n\nThere are several aspects to consider here, and each of them deserves attention. In "
    "general, it helps to look at the matter as a whole before one goes into details. With that "
    "in mind, the points above can be read together, in the order in which they are given."
)

Bias = Literal["order", "length", "own model"]
#: Two verdicts on one answer; None is unknown.
Pair = tuple[bool | None, bool | None]
#: Answers, and by their paths the suites in which the judges are asked about them.
Form = tuple[Sequence[LabelledAnswer], Mapping[str, Suite]]


def list_forms(
    answers: Sequence[LabelledAnswer], suites: Mapping[str, Suite], *, is_probed: bool
) -> Sequence[Form]:
    """The forms of answers: as they are; answers with labels of criteria, with the criteria in
    reverse; with filler. Unless `is_probed`, only pairs have another form: with filler."""
    criteria = [answer for answer in answers if any(label.criterion for label in answer.labels)]
    pairs = [answer for answer in answers if answer.labels[0].other is not None]
    in_reverse = {
        path: suite.with_tests(map(_reverse, suite.tests)) for path, suite in suites.items()
    }
    return (
        (answers, suites),
        (criteria if is_probed else (), in_reverse),
        ([*map(_with_filler, answers if is_probed else pairs)], suites),
    )


def _reverse(test: Test) -> Test:
    evaluators = (
        evaluator.model_copy(update={"rubrics": evaluator.rubrics[::-1]})
        if isinstance(evaluator, Rubric)
        else evaluator
        for evaluator in test.evaluators
    )
    return test.model_copy(update={"evaluators": tuple(evaluators)})


def _with_filler(answer: LabelledAnswer) -> LabelledAnswer:
    """An answer with filler; in a pair, the worse answer gets it and does not become better."""
    sample, (label, *_) = answer.sample, answer.labels
    if label.other is not None and label.passes:
        longer_other = label.model_copy(update={"other": f"{label.other}{_FILLER}"})
        return replace(answer, labels=(longer_other, *answer.labels[1:]))
    longer = {"role": "assistant", "content": f"{sample.candidate_answer}{_FILLER}"}
    messages = (*sample.output_messages, longer)
    return replace(answer, sample=replace(sample, output_messages=messages))


def probe_judges(
    judged: Sequence[Sequence[JudgedAnswer]], stored: Iterable[TestResult], suites: Iterable[Suite]
) -> Mapping[str, Mapping[Bias, Sequence[Pair]]]:
    """For each bias, by the keys of judges, the pairs of verdicts on an answer: on two of its
    forms, or people's verdict and the judge's. `judged` has the opinions on each form; `stored`
    results show which target gave an answer, and `suites` its model."""
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
    verdicts = [
        {answer.label.key: [opinion.passes for opinion in answer.opinions] for answer in form}
        for form in judged
    ]
    by_judge: dict[str, dict[Bias, list[Pair]]] = {}
    for answer in judged[0]:
        label = answer.label
        as_given, reordered, longer = (form.get(label.key, []) for form in verdicts)
        agent, judge = agents.get(label.key[:3]), models.get((label.suite, answer.target))
        is_own = agent is not None and agent == judge
        pairs: dict[Bias, Iterable[Pair]] = {
            "order": zip(as_given, reordered, strict=True) if label.criterion else (),
            "length": zip(as_given, longer, strict=True),
            "own model": [(label.passes, verdict) for verdict in as_given if is_own],
        }
        if label.other is not None:  # always asked in both orders
            del pairs["order"]
        by_bias = by_judge.setdefault(answer.key, {})
        for bias, of_bias in pairs.items():
            by_bias.setdefault(bias, []).extend(pair for pair in of_bias if None not in pair)
    return by_judge
