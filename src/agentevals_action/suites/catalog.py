"""What a suite may name, handed in by the caller: evaluator types, providers, and the user's
overrides."""

from collections.abc import Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from agentevals_action.evaluators import base as evaluators
from agentevals_action.targets import base as providers


@dataclass(frozen=True)
class Catalog:
    """`evaluators` by canonical name and every alias, `providers` by name, both with `_` for `-`.

    `targets_file` (absolute) takes the place of the search for `.agentv/targets.yaml`; `target` and
    `judge_target` are the user's overrides; with `strict`, warnings are faults. What was read from
    targets files is kept in `cache` for the other suites."""

    evaluators: Mapping[str, type[evaluators.EvaluatorOptions]]
    providers: Mapping[str, type[providers.ProviderOptions]]
    targets_file: Path | None = None
    target: str | None = None
    judge_target: str | None = None
    strict: bool = False
    cache: dict[Any, Any] = field(default_factory=dict)
