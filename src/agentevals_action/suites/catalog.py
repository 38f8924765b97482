"""The settings of a user that decide how suites are read."""

from collections.abc import Mapping
from dataclasses import dataclass, field
from pathlib import Path

from agentevals_action.suites.targets_file import TargetsFile


@dataclass(frozen=True)
class Catalog:
    """`targets_file` (absolute) replaces the search for `.agentv/targets.yaml`; `target` and
    `judge_target` are the user's overrides. `environ` are the variables of the step, `allowed` the
    names of those that suites may use. With `strict`, warnings are errors. `targets_files` are
    those that were read: all suites of a checkout share them."""

    targets_file: Path | None = None
    target: str | None = None
    judge_target: str | None = None
    environ: Mapping[str, str] = field(default_factory=dict)
    allowed: frozenset[str] = frozenset()
    strict: bool = False
    targets_files: dict[Path, TargetsFile] = field(default_factory=dict)
