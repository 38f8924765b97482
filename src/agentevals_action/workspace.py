"""The folders that agents work in: made, hooked, reset, compared, put away. (Skeleton by the lead: helper 5 fills it.)"""

from collections.abc import Callable, Hashable, Mapping, Sequence
from pathlib import Path

from agentevals_action.model.suite import Suite, Test


class Attempt:
    """A folder that an agent works in for one sample."""

    path: Path

    async def changes(self) -> str:
        raise NotImplementedError

    async def leave(self, failed: bool) -> None:
        raise NotImplementedError


class Workspaces:
    """The workspaces of one run."""

    def __init__(
        self, scratch: Path, environment: Mapping[str, str], withheld: Sequence[str], run_id: str, notice: Callable[[str], None], keep: Path | None = None
    ) -> None:
        pass

    def lane(self, suite: Suite, test: Test) -> Hashable | None:
        return None

    async def enter(self, suite: Suite, test: Test, sample: int) -> Attempt:
        raise NotImplementedError

    async def close(self) -> None:
        pass
