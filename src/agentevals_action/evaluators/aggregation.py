"""Pure: how the scores of several evaluators become one, as a suite asks for it (specification,
section 3, composite)."""

from collections.abc import Mapping, Sequence
from typing import Annotated, Any, Literal, Self, get_args

from msgspec import Meta, field

from agentevals_action.entries.entry import Before, Entry, Shown, Written
from agentevals_action.model.result import BORDERLINE_SCORE, PASS_SCORE
from agentevals_action.results.scoring import reaches, weighted_mean
from agentevals_action.suites.files.validation_errors import Refusal, Steps, gathered

Kind = Literal["weighted_average", "minimum", "maximum", "safety_gate", "all_or_nothing"]
KINDS: tuple[Kind, ...] = get_args(Kind)
#: Those that take a weighted mean, and so care about weights.
WEIGHING: frozenset[Kind] = frozenset(("weighted_average", "safety_gate", "all_or_nothing"))

#: The fields that only some aggregators have, and what to write where they do not belong.
_FIELDS: Mapping[str, tuple[frozenset[Kind], str]] = {
    "weights": (WEIGHING, "remove it, since this takes no mean, or write another `type`"),
    "required": (
        frozenset(("safety_gate",)),
        "write `type: safety_gate`, or mark the evaluators themselves as `required`",
    ),
    "threshold": (
        frozenset(("all_or_nothing",)),
        "write `type: all_or_nothing`, or `required: 0.7` at the evaluator for a gate at 0.7",
    ),
}
#: What AgentV has for an aggregator beside these, and what to write.
_ELSEWHERE: Mapping[str, str] = {
    "threshold": "write `type: assert-set` with `threshold`",
    **dict.fromkeys(
        ("code_judge", "code_grader", "script", "llm_judge", "llm_grader", "llm_rubric"),
        "let an evaluator grade the whole",
    ),
}
_KIND_SCHEMA = {
    "type": "string",
    "anyOf": [
        {"enum": list(KINDS)},
        {"pattern": f"^({'|'.join(kind.replace('_', '[-_]') for kind in KINDS)})$"},
    ],
}


def closes_gate(score: float) -> bool:
    """Whether a score of what a `safety_gate` requires closes it: when it is under 0.6."""
    return not reaches(score, BORDERLINE_SCORE)


def enough_pass(passed: Sequence[bool], share: float) -> float:
    """1 when the fraction that passed reaches the share (over 0 and up to 1), else 0; at least one
    item."""
    return float(reaches(sum(passed) / len(passed), share))


def _meant(word: str, known: Sequence[str]) -> str:
    import difflib  # late: nobody misspells most of the time

    if near := difflib.get_close_matches(word, known, n=1):
        return f"did you mean `{near[0]}`?"
    return f"write {'one of ' if len(known) > 1 else ''}{', '.join(f'`{name}`' for name in known)}"


def _read_kind(value: Any) -> Any:
    key = value.replace("-", "_") if isinstance(value, str) else value
    if not isinstance(key, str) or key in KINDS:
        return key
    if key in _ELSEWHERE:
        raise ValueError(f"the aggregator {value!r} of AgentV is not supported; {_ELSEWHERE[key]}")
    raise ValueError(f"there is no aggregator {value[:100]!r}; {_meant(key, KINDS)}")


class Aggregator(Entry):
    """How the scores of the evaluators inside become one."""

    type: Annotated[
        Annotated[Kind, Before(_read_kind), Shown(_KIND_SCHEMA)],
        Meta(
            description="`weighted_average`, `minimum`, `maximum`, `safety_gate` (those in `required` must reach 0.6, or the test fails), "
            "`all_or_nothing` (one under `threshold` makes it 0)."
        ),
    ] = "weighted_average"
    weights: Annotated[
        dict[str, Annotated[float, Meta(ge=0)]],
        Meta(description="Weights by name, 0 or more; they win over the `weight` of an evaluator."),
    ] = field(default_factory=dict)
    required: Annotated[
        tuple[str, ...],
        Meta(
            description="For `safety_gate`: names of the evaluators that run first and must reach 0.6."
        ),
    ] = ()
    threshold: Annotated[
        float,
        Meta(
            gt=0,
            le=1,
            description="For `all_or_nothing`: the score that each must reach, over 0 and up to 1.",
        ),
    ] = PASS_SCORE

    def completed(self, written: Written) -> Self:
        """Itself; ValueError or Refused when its fields do not belong together."""
        gathered(
            Refusal(
                (name,), written.data[name], said=f"it does not belong to `{self.type}`; {advice}"
            )
            for name, (kinds, advice) in _FIELDS.items()
            if name in written.data and self.type not in kinds
        )
        if self.type == "safety_gate" and not self.required:
            raise ValueError(
                "a `safety_gate` without `required` holds nothing back; name the evaluators that must reach 0.6"
            )
        return self

    def unknown(self, names: Sequence[str]) -> Sequence[Refusal]:
        """A refusal of each name in `weights` and `required` that is none of these."""
        written: list[tuple[Steps, str]] = [(("weights", name), name) for name in self.weights]
        written += [(("required", index), name) for index, name in enumerate(self.required)]
        return [
            Refusal(
                steps, name, said=f"there is no evaluator `{name}` in it; {_meant(name, names)}"
            )
            for steps, name in written
            if name not in names
        ]

    def combine(self, scores: Sequence[tuple[float, float]]) -> float:
        """One score of at least one (score, weight) pair, scores 0-1; the gate of a `safety_gate`
        is taken to be open.

        `all_or_nothing` is 0 when a score is under `threshold`. Those that weigh give the weighted
        mean, else."""
        values = [score for score, _ in scores]
        if self.type == "minimum":
            return min(values)
        if self.type == "maximum":
            return max(values)
        if self.type == "all_or_nothing" and not all(
            reaches(value, self.threshold) for value in values
        ):
            return 0.0
        return weighted_mean(scores)
