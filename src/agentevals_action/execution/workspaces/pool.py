"""The folders that agents work in over one run: which tests share one, what each attempt is given,
the end of all."""

import re
from collections.abc import Callable, Hashable, Mapping
from pathlib import Path
from typing import TYPE_CHECKING

from agentevals_action.errors import AttemptError
from agentevals_action.model.suite import Suite, Test

if TYPE_CHECKING:
    from agentevals_action.execution.workspaces.folder import Attempt, Folder, Run

_NAME = 60  # characters of a test's id in the name of a folder that is kept


class Workspaces:
    """The folders of one run, in a folder of its own below `scratch`; nothing is made before the
    first is needed.

    `environment` is all that hooks may see, `withheld` the names that were kept from it; `notice`
    takes sentences for the reader. With `keep`, the folder of a test that failed is copied there,
    as the agent left it."""

    def __init__(
        self,
        scratch: Path,
        environment: Mapping[str, str],
        withheld: tuple[str, ...],
        run_id: str,
        notice: Callable[[str], None],
        keep: Path | None = None,
    ) -> None:
        self._scratch, self._environment, self._withheld = scratch, environment, withheld
        self._run_id, self._notice, self._keep = run_id, notice, keep
        self._run: Run | None = None
        self._shared: dict[Hashable, Folder] = {}

    def lane(self, suite: Suite, test: Test) -> Hashable | None:
        """What tests that share a folder have in common: they must be run one after another. None
        for a test that shares none."""
        workspace = test.workspace
        if workspace is None or workspace.per_test:
            return None
        return (suite.root, suite.path, test.id if workspace.own else None)

    async def enter(self, suite: Suite, test: Test, sample: int) -> "Attempt":
        """The folder of a test, made or taken over, after its hooks; AttemptError of kind
        `workspace` when it cannot be had.

        A shared folder that could not be made is an error of every test that it serves."""
        if test.workspace is None:
            raise TypeError(f"the test {test.id} has no workspace")
        run = self._run = self._run or self._begin()
        lane = self.lane(suite, test)
        if lane is None:
            folder = run.folder_for(test.workspace, suite.path, test)
        else:
            folder = self._shared.setdefault(
                lane,
                run.folder_for(test.workspace, suite.path, test if test.workspace.own else None),
            )
        attempt = run.attempt_in(
            folder,
            test,
            f"{_slug(suite.path)}/{_slug(test.id)}{f'-{sample + 1}' if sample else ''}",
        )
        try:
            await folder.ready()
            await attempt.begin()
        except AttemptError:
            await attempt.leave(failed=True, begun=False)
            raise
        return attempt

    async def close(self) -> None:
        """Runs `after_all` of every shared folder, a failure of it being a notice, and removes
        everything."""
        if self._run is None:
            return
        for folder in self._shared.values():
            await folder.end()
        self._shared.clear()
        await self._run.close()
        self._run = None

    def _begin(self) -> "Run":
        from agentevals_action.execution.workspaces import (
            folder as folders,  # late: few suites have workspaces
        )

        return folders.begin(
            self._scratch, self._environment, self._withheld, self._run_id, self._notice, self._keep
        )


def _slug(text: str) -> str:
    return re.sub(r"[^A-Za-z0-9._-]+", "-", text).strip(".-")[:_NAME] or "test"
