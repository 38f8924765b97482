"""`rubric`: a model checks the answer against criteria, all in one call."""

from collections import Counter
from collections.abc import Mapping, Sequence
from typing import Annotated, Any, ClassVar

from msgspec import Meta

from agentevals_action.entries.entry import Before, Checked
from agentevals_action.entries.reading import to_data
from agentevals_action.evaluators.base import Case
from agentevals_action.evaluators.judges.ask import ask_judge
from agentevals_action.evaluators.judges.criteria import Criterion
from agentevals_action.evaluators.judges.prompts import PromptedOptions, prompt_variables
from agentevals_action.evaluators.judges.replies import UnreadableReply, read_number, read_text
from agentevals_action.model.diagnostic import Location
from agentevals_action.model.result import Score
from agentevals_action.model.suite import Evaluator
from agentevals_action.results.scoring import weighted_mean

_MOST = 1_000  # criteria: all of them go into one prompt
_PACKAGED = "rubric.md.j2"
_FORM = '{"checks": [{"id": <its id>, "satisfied": <true or false>, "score": <0 to 10, where asked for>, "reasoning": <a string>}, …]}'


def _few(criteria: Any) -> Any:
    if isinstance(criteria, list | tuple) and len(criteria) > _MOST:
        raise ValueError(
            f"there are more than {_MOST:,} criteria; split them, as each rubric is asked about in one prompt"
        )
    return criteria


def _identified(criteria: tuple[Criterion, ...]) -> tuple[Criterion, ...]:
    """The criteria with an id each: `rubric-N` by position where none is given."""
    if not criteria:
        raise ValueError(
            "the list is empty, so there is nothing to judge by; write at least one criterion"
        )
    named = tuple(
        criterion.identified(f"rubric-{position}") for position, criterion in enumerate(criteria, 1)
    )
    for name, count in Counter(criterion.id for criterion in named).items():
        if count > 1:
            raise ValueError(f"{count} criteria have the id {name!r}; give each its own")
    return named


class Rubric(PromptedOptions):
    """A model checks each criterion as met or not, or from 0 to 10 where it has `score_ranges`; the
    score is their weighted mean."""

    type = "rubric"
    aliases = ("rubrics",)
    spellings: ClassVar[Mapping[str, tuple[str, ...]]] = {"rubrics": ("criteria",)}

    rubrics: Annotated[
        Annotated[tuple[Criterion, ...], Before(_few), Checked(_identified)],
        Meta(
            description="The criteria: plain strings, or objects with `outcome` and how much it counts.",
            extra_json_schema={"minItems": 1, "maxItems": _MOST},
        ),
    ]

    async def evaluate(self, case: Case, evaluator: Evaluator) -> Score:
        """The weighted mean of the criteria; AttemptError when the judge leaves one out."""
        variables = prompt_variables(case, [to_data(criterion) for criterion in self.rubrics])

        def read(data: Mapping[str, Any]) -> Score:
            return read_checks(data, self.rubrics)

        return await ask_judge(
            case.ask, evaluator, self.compose(_PACKAGED, variables, _FORM), _FORM, ("checks",), read
        )

    def doubts(self) -> Sequence[tuple[str, str, str]]:
        """As for every prompt, and thresholds of criteria that are no gates."""
        alone = [
            criterion.name
            for criterion in self.rubrics
            if criterion.min_score is not None and not criterion.is_gate
        ]
        problem = f"has a `min_score` without `required` ({', '.join(alone)}), which gates nothing"
        return (
            *super().doubts(),
            *((("rubrics", problem, "write `required: true` beside it"),) if alone else ()),
        )

    def inner_gates(self) -> Sequence[tuple[str, Location | None]]:
        """The required criteria, by id."""
        return tuple(
            (criterion.name, criterion.location) for criterion in self.rubrics if criterion.is_gate
        )


def read_checks(data: Mapping[str, Any], criteria: Sequence[Criterion]) -> Score:
    """The score of a judge's `checks`; UnreadableReply when a criterion is missing or given twice,
    or a check is not of its type."""
    checks = _by_id(data["checks"])
    missing = [criterion.name for criterion in criteria if criterion.name not in checks]
    if missing:
        raise UnreadableReply(f"`checks` leaves out {', '.join(missing)}")
    scored = [(criterion, _score_of(checks[criterion.name], criterion)) for criterion in criteria]
    return Score(
        value=weighted_mean([(score, criterion.weight) for criterion, score in scored]),
        hits=tuple(criterion.told(score) for criterion, score in scored if criterion.is_hit(score)),
        misses=tuple(
            criterion.told(score) for criterion, score in scored if not criterion.is_hit(score)
        ),
        reasoning=read_text(data.get("overall_reasoning"), "overall_reasoning"),
        details={"checks": [_detail(criterion.name, score, checks) for criterion, score in scored]},
        gates_failed=tuple(
            criterion.name for criterion, score in scored if not criterion.holds(score)
        ),
    )


def _detail(name: str, score: float, checks: Mapping[str, Mapping[str, Any]]) -> Mapping[str, Any]:
    return {
        "id": name,
        "score": score,
        "reasoning": read_text(checks[name].get("reasoning"), f"reasoning of {name}"),
    }


def _by_id(checks: Any) -> Mapping[str, Mapping[str, Any]]:
    if not isinstance(checks, list) or not all(isinstance(check, Mapping) for check in checks):
        raise UnreadableReply("`checks` must be a list of objects")
    found: dict[str, Mapping[str, Any]] = {}
    for check in checks:
        name = check.get("id")
        if not isinstance(name, str):
            raise UnreadableReply("each of `checks` needs the `id` of its criterion, a string")
        if name in found:
            raise UnreadableReply(f"`checks` has {name[:100]!r} twice")
        found[name] = check
    return found


def _score_of(check: Mapping[str, Any], criterion: Criterion) -> float:
    if criterion.score_ranges:
        return read_number(check.get("score"), f"score of {criterion.name}", 0, 10) / 10
    satisfied = check.get("satisfied")
    if not isinstance(satisfied, bool):
        raise UnreadableReply(f"`satisfied` of {criterion.name} must be true or false")
    return float(satisfied)
