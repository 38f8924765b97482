"""What a store of base results is to a review."""

from collections.abc import Sequence
from typing import Protocol

from agentevals_action.model.comparison import BaseRun, Selection


class Baseline(Protocol):
    """Gives the base's results for the selected suites; what it cannot give it says in the run's `problems`, it does not raise."""

    @property
    def reruns(self) -> bool:
        """Whether the base's suites are run now."""
        ...

    async def results(self, selections: Sequence[Selection]) -> BaseRun:
        """Results by the suite's path on head."""
        ...
