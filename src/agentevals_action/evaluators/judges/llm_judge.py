"""`llm_judge`: a model scores the answer from 0 to 1."""

from collections.abc import Sequence
from dataclasses import replace
from functools import partial

from agentevals_action.errors import AttemptError
from agentevals_action.evaluators.judges.produced_files import find_produced_files
from agentevals_action.evaluators.judges.prompts import prompt_variables
from agentevals_action.evaluators.judges.replies import ask_judge, read_score
from agentevals_action.evaluators.judges.rubric import Rubric
from agentevals_action.evaluators.judges.votes import VotingEvaluator, list_values
from agentevals_action.model.evaluator import Case
from agentevals_action.model.result import Score

_FORM = (
    '{"score": <a number from 0 to 1>, "hits": [<strings>], "misses": [<strings>], '
    '"reasoning": <a string>}'
)


class LlmJudge(VotingEvaluator):
    """A model reads the answer and gives a score from 0 to 1; `target` names the model, otherwise
    it is the judge target."""

    type = "llm_judge"
    template = "llm_judge.md.j2"

    async def evaluate(self, case: Case) -> Score:
        """The judge's score; AttemptError if its reply has none."""
        rubrics = [
            criterion.model_dump()
            for evaluator in case.evaluators
            if evaluator.origin == "rubrics" and isinstance(evaluator, Rubric)
            for criterion in evaluator.rubrics
        ]
        pictures, _ = find_produced_files(case)
        variables = prompt_variables(case, rubrics)
        if self.prompt is None and not (variables["criteria"] or case.test.expected_output):
            raise AttemptError(
                "evaluator",
                "there are neither criteria nor an expected output to score by",
                "Write `criteria`, or a `prompt`.",
            )
        prompt = self.compose(variables, _FORM)
        judge = partial(ask_judge, case.ask, self, prompt, _FORM, ("score",), read_score, pictures)
        return await self.vote(judge)

    def combine(self, judgements: Sequence[Score]) -> Score:
        """The score of the vote, with the reasons of the median judgement."""
        value, median = self.aggregate_scores(list_values(judgements), self.is_good)
        return replace(judgements[median], value=value)
