"""`llm_judge`: a model grades the answer, 0-1, by a prompt of the suite or the packaged one."""

from collections.abc import Mapping, Sequence
from typing import Any

from agentevals_action.entries.reading import to_data
from agentevals_action.errors import AttemptError
from agentevals_action.evaluators.base import Case
from agentevals_action.evaluators.judges.ask import ask_judge
from agentevals_action.evaluators.judges.prompts import PromptedOptions, prompt_variables
from agentevals_action.evaluators.judges.replies import read_score
from agentevals_action.model.result import Score
from agentevals_action.model.suite import Evaluator, Test

_PACKAGED = "llm_judge.md.j2"
_FORM = '{"score": <a number from 0 to 1>, "hits": [<strings>], "misses": [<strings>], "reasoning": <a string>}'


class LlmJudge(PromptedOptions):
    """A model reads the answer and gives a score from 0 to 1; its `target` names the model, else
    the judge target does."""

    type = "llm_judge"
    aliases = ("llm_grader", "llm_rubric")

    async def evaluate(self, case: Case, evaluator: Evaluator) -> Score:
        """The judge's score; AttemptError when it gives none."""
        variables = prompt_variables(case, _rubrics(case.test))
        if self.prompt is None and not (variables["criteria"] or case.test.expected_output):
            raise AttemptError(
                "evaluator",
                "there are neither criteria nor an expected output to grade by",
                "Write `criteria`, or a `prompt`.",
            )
        prompt = self.compose(_PACKAGED, variables, _FORM)
        return await ask_judge(case.ask, evaluator, prompt, _FORM, ("score",), read_score)


def _rubrics(test: Test) -> Sequence[Mapping[str, Any]]:
    """The test's own `rubrics`, as a prompt may show them."""
    own = (
        to_data(evaluator.options) for evaluator in test.evaluators if evaluator.origin == "rubrics"
    )
    return [criterion for options in own for criterion in options.get("rubrics", ())]
