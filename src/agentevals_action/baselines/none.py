"""No base results: there is nothing to compare with, or what there is could not be had; `info` says
which and why."""

from collections.abc import Sequence
from dataclasses import dataclass
from typing import ClassVar

from agentevals_action.model.comparison import BaselineInfo, BaseRun, Selection


@dataclass(frozen=True)
class NoBaseline:
    """Gives no results for any suite."""

    info: BaselineInfo

    reruns: ClassVar[bool] = False

    async def results(self, selections: Sequence[Selection]) -> BaseRun:  # noqa: ARG002
        """An empty run."""
        return BaseRun(self.info)
