"""`pairwise`: a model says which answer to the same question is better, head's or base's."""

from collections.abc import Mapping, Sequence
from typing import Any, Literal, Self

from pydantic import Field, model_validator

from agentevals_action.errors import AttemptError
from agentevals_action.evaluators.json.objects import UnreadableReply
from agentevals_action.evaluators.judges.prompts import PromptedEvaluator, prompt_variables
from agentevals_action.evaluators.judges.replies import JudgeReplyModel, ask_judge, validate_reply
from agentevals_action.model.evaluator import Case, Mismatch, Task
from agentevals_action.model.result import EvaluatorResult, Score
from agentevals_action.validation.file_model import NonEmpty, Steps, errors_at

_FORM = '{"better": <"A", "B" or "equal">, "by": <"much" or "slightly">, "reasoning": <a string>}'
#: What a prompt reads of each answer, with `_a` or `_b` at its end.
_OF_ANSWER = ("answer", "tool_calls", "file_changes")
#: Fields that belong to a score, which a comparison does not give.
_OF_SCORE = ("weight", "required", "min_score", "negate")


class Pairwise(PromptedEvaluator):
    """A model compares head's answer with base's, in both orders. It scores no answer."""

    type = "pairwise"
    template = "pairwise.md.j2"
    asks = "criteria"
    of_agent = tuple(frozenset(f"{name}{end}" for name in _OF_ANSWER) for end in ("_a", "_b"))
    compares = True

    criteria: NonEmpty | None = Field(
        default=None,
        description="What makes an answer better; those of the test if missing.",
    )
    prompt: str | None = Field(
        default=None,
        description="The judge's prompt: a path, or the text, with {{answer_a}} and {{answer_b}}.",
    )

    @model_validator(mode="after")
    def _check_score(self) -> Self:
        problem = "a comparison gives no score to an answer, so this has no effect; remove it"
        problems: dict[Steps, str] = {
            (name,): problem for name in _OF_SCORE if name in self.model_fields_set
        }
        if problems:
            raise errors_at(problems)
        return self

    def check(self, test: Task) -> Sequence[Mismatch]:
        """A test in which nothing says what makes an answer better."""
        if self.prompt or self.criteria or test.criteria or test.expected_output:
            return ()
        problem = "nothing says what makes an answer better"
        return (Mismatch(None, problem, "write `criteria` in it, or in the test"),)

    def reads_criteria(self) -> bool:
        """Whether the criteria of the test are in its prompt."""
        return self.criteria is None and super().reads_criteria()

    async def evaluate(self, case: Case) -> Score:
        """1 if head's answer is much better in both orders, 0 if base's is, else 0.5, a tie. Its
        children are the results of the two orders; there are none if both prompts are equal.
        AttemptError if there is no answer of base, or a reply cannot be read."""
        if case.rival is None:
            raise AttemptError("evaluator", "there is no other answer to compare with")
        shared = prompt_variables(case)
        shared["criteria"] = self.criteria or shared["criteria"]
        prompts = [
            self.compose({**shared, **_answer(first, "_a"), **_answer(second, "_b")}, _FORM)
            for first, second in ((case, case.rival), (case.rival, case))
        ]
        if prompts[0] == prompts[1]:
            return Score(0.5, reasoning="the answers are equal")
        first, second = [
            await ask_judge(case.ask, self, prompt, _FORM, ("better",), read_reply)
            for prompt in prompts
        ]
        head_scores = {"A is head": first.value or 0.0, "A is base": 1 - (second.value or 0.0)}
        orders = tuple(
            EvaluatorResult(name=name, type=self.type, score=score, reasoning=reply.reasoning)
            for (name, score), reply in zip(head_scores.items(), (first, second), strict=True)
        )
        scores = {*head_scores.values()}
        value = scores.pop() if scores in ({1.0}, {0.0}) else 0.5
        return Score(value, children=orders, models=(*first.models, *second.models))


class PairReply(JudgeReplyModel):
    """A judge's object about the answers A and B."""

    better: Literal["A", "B", "equal"]
    by: Literal["much", "slightly"] | None = None
    reasoning: str | None = None


def read_reply(data: Mapping[str, Any]) -> Score:
    """How good A is against B in a judge's object: 1 much better, 0.75 slightly, 0.5 equal, 0.25
    slightly worse, 0 much worse. UnreadableReply if a field is missing or invalid."""
    reply = validate_reply(PairReply, data)
    if reply.better != "equal" and reply.by is None:
        raise UnreadableReply("`by` is missing; it is `much` or `slightly`")
    by = {"much": 0.5, "slightly": 0.25, None: 0.0}[reply.by]
    sign = {"A": 1, "B": -1, "equal": 0}[reply.better]
    return Score(0.5 + sign * by, reasoning=reply.reasoning or "")


def _answer(case: Case, end: str) -> Mapping[str, Any]:
    """What a prompt reads of an answer. The times of its calls differ between equal answers."""
    values = prompt_variables(case)
    for call in values["tool_calls"]:
        call.pop("duration_ms", None)
    return {f"{name}{end}": values[name] for name in _OF_ANSWER}
