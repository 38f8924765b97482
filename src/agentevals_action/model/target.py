"""Configured targets, and the choice of a target for a test or a judge."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any, ClassVar

from agentevals_action.model.diagnostic import Location
from agentevals_action.model.validation.file_model import TargetModel


@dataclass(frozen=True)
class Price:
    """US dollars per million tokens. Where a price of cached input is None, that of `input`
    applies. Calls with more than `max_prompt` input tokens have other prices, which are unknown."""

    input: float
    output: float
    cached_input: float | None = None
    cache_write: float | None = None
    max_prompt: int | None = None


class TargetTraits(TargetModel):
    """The properties of a target that the options of every provider declare.

    `is_model`: it can judge without a `judge_target`. `is_defined`: its definition determines its
    replies, so that they can be cached. `deterministic`: it always answers the same, at no cost.
    `stores_answers`: they are in a file, which is read before the first program starts.
    `runs_programs`: a call runs a program in the workspace, or in the checkout without one."""

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


@dataclass(frozen=True)
class Target:
    """One entry of a targets file, `extends` applied, `${{ }}` not yet resolved.

    `options` is the provider's own validated part (may still hold `${{ NAME }}` in its strings),
    `definition` the whole entry as written, for fingerprints. `variables` are the names it needs.
    With `is_model` it can judge. `timeout_seconds` and `max_concurrency` are None when the
    target sets none, `requests_per_minute` likewise; `retries` counts repetitions after the first
    call. `cache_key` are globs (relative to the repository root) of the files that what is behind
    the target is made of."""

    name: str
    provider: str
    options: TargetTraits
    definition: Mapping[str, Any]
    location: Location
    is_model: bool = False
    judge_target: str | None = None
    variables: tuple[str, ...] = ()
    max_concurrency: int | None = None
    retries: int = 2
    timeout_seconds: float | None = None
    price: Price | None = None
    requests_per_minute: int | None = None
    cache_key: tuple[str, ...] = ()
    files: tuple[str, ...] = ()


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


def _first(*ways: tuple[str, str | None]) -> Choice:
    return next((Choice(name, reason) for reason, name in ways if name), Choice())
