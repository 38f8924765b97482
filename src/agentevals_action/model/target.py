"""Configured targets, and the choice of a target for a test or a judge."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import Annotated, Any, ClassVar

from pydantic import (
    AfterValidator,
    Field,
)

from agentevals_action.model.diagnostic import Location
from agentevals_action.model.validation.file_model import (
    Computed,
    ListOf,
    NonEmpty,
    TargetModel,
    spelled,
)

_Dollars = Annotated[float, Field(ge=0)]


class Price(TargetModel):
    """US dollars per million tokens. Where a price of cached input is None, that of `input`
    applies. Calls with more than `max_prompt` input tokens have other prices, which are unknown."""

    noun = "price"

    input: _Dollars
    output: _Dollars
    cached_input: _Dollars | None = None
    cache_write: _Dollars | None = None
    max_prompt: Computed[int | None] = None


class TargetTraits(TargetModel):
    """The properties of a target that the options of every provider declare.

    `is_model`: it can judge without a `judge_target`. `is_defined`: its definition determines its
    replies, so that they can be cached. `deterministic`: it always answers the same, at no cost.
    `stores_answers`: they are in a file, which is read before the first program starts.
    `runs_programs`: a call runs a program in the workspace, or in the checkout without one."""

    noun = "target"

    is_model: ClassVar[bool] = False
    is_defined: ClassVar[bool] = False
    deterministic: ClassVar[bool] = False
    stores_answers: ClassVar[bool] = False
    runs_programs: ClassVar[bool] = False

    def variables(self) -> Sequence[str]:
        """Names of the variables that it needs in addition to those in `${{ }}`."""
        return ()

    def priced_model(self) -> str | None:
        """The model whose price per token is that of the answers, if the definition names it."""
        return None


def _refuse_batching(value: bool) -> bool:
    if value:
        raise ValueError("it is not supported: each test is a separate call; leave it out")
    return value


class Target(TargetModel):
    """One entry of a targets file, `extends` applied, `${{ }}` not yet resolved.

    `options` is the provider's own validated part (may still contain `${{ NAME }}` in its strings),
    `definition` the whole entry as written, for fingerprints. `variables` are the names it needs.
    With `is_model` it can judge. `timeout_seconds` and `max_concurrency` are None when the
    target sets none, `requests_per_minute` likewise; `retries` counts repetitions after the first
    call. `cache_key` are globs (relative to the repository root) of the files that what is behind
    the target is made of. `files` are those of its command."""

    noun = "target"

    name: NonEmpty
    provider: NonEmpty
    extends: NonEmpty | None = spelled("extends", "use_target", default=None)
    judge_target: NonEmpty | None = spelled("judge_target", "grader_target", default=None)
    max_concurrency: Annotated[int, Field(ge=1)] | None = spelled(
        "max_concurrency", "workers", default=None
    )
    retries: Annotated[int, Field(ge=0, le=10)] = spelled("retries", "max_retries", default=2)
    timeout_seconds: Annotated[float, Field(gt=0)] | None = None
    price: Price | None = None
    requests_per_minute: Annotated[int, Field(ge=1)] | None = None
    provider_batching: Annotated[bool, AfterValidator(_refuse_batching)] = False
    cache_key: ListOf[NonEmpty] = ()

    options: Computed[TargetTraits] = TargetTraits()
    definition: Computed[Mapping[str, Any]] = Field(default_factory=dict)
    location: Computed[Location] = Location("")
    is_model: Computed[bool] = False
    variables: Computed[tuple[str, ...]] = ()
    files: Computed[tuple[str, ...]] = ()


@dataclass(frozen=True)
class Choice:
    """Which target, by name, and the reason in a word; both empty when nothing names one."""

    name: str | None = None
    reason: str = ""


@dataclass(frozen=True)
class TargetTable:
    """The targets that a suite sees. `path` is the targets file, relative to the repository, None
    where there is none.

    `agent_override` and `judge_override` are the user's inputs."""

    path: str | None = None
    targets: Mapping[str, Target] = field(default_factory=dict)
    agent_override: str | None = None
    judge_override: str | None = None

    def get(self, name: str | None) -> Target | None:
        """The target of this name; None if there is none, or no name."""
        return self.targets.get(name or "")

    def agent(self, wanted: str | None) -> str | None:
        """Name of the agent's target: override, choice of the test or its suite, `default`; None if
        there is none."""
        return self.agent_choice(wanted).name

    def agent_choice(self, wanted: str | None) -> Choice:
        """The same with its reason: `input`, `suite`, `default`."""
        default = "default" if "default" in self.targets else None
        return _first(
            ("input", self.agent_override),
            ("suite", wanted),
            ("default", default),
        )

    def judge(self, evaluator_target: str | None, agent: str | None) -> str | None:
        """Name of the judge's target: the evaluator's, override, the agent's `judge_target`, the
        agent if a model; else None."""
        return self.judge_choice(evaluator_target, agent).name

    def judge_choice(self, evaluator_target: str | None, agent: str | None) -> Choice:
        """The same with its reason: `evaluator`, `input`, `judge_target`, `agent`."""
        target = self.get(agent)
        named = target.judge_target if target else None
        itself = target.name if target and target.is_model else None
        return _first(
            ("evaluator", evaluator_target),
            ("input", self.judge_override),
            ("judge_target", named),
            ("agent", itself),
        )


def _first(*choices: tuple[str, str | None]) -> Choice:
    return next((Choice(name, reason) for reason, name in choices if name), Choice())
