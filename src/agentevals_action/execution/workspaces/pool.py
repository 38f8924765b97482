"""The workspaces of one run: which tests share a folder, and the folder of each attempt."""

import os
import re
from collections.abc import Callable, Hashable, Mapping
from pathlib import Path

from agentevals_action.errors import AttemptError
from agentevals_action.execution.workspaces.folder import (
    Attempt,
    Run,
    WorkspaceFolder,
    workspace_errors,
)
from agentevals_action.execution.workspaces.git import Git
from agentevals_action.execution.workspaces.hooks import HookRunner
from agentevals_action.execution.workspaces.repositories import Repositories
from agentevals_action.model.suite import Suite, Test
from agentevals_action.system.isolation import (
    NO_ISOLATION,
    TRAVERSABLE,
    ChildUser,
    Isolation,
    new_folder,
)
from agentevals_action.system.signals import in_thread
from agentevals_action.system.temp_dirs import remove_folder

#: Characters of a test's id in the name of a folder that is kept.
_MAX_NAME = 60


class Workspaces:
    """The workspaces of one run, in a new folder below `scratch` that is made when the first one is
    needed.

    `environment` is all that hooks see, `withheld` are the names of the variables that they do not
    see. `notice` takes sentences for the reader. `copy_template` copies a template into a new
    folder. With `keep`, the folder of a test that did not pass is copied there as the agent left
    it. `isolation` gives the users that hooks run as and folders belong to.
    """

    def __init__(
        self,
        scratch: Path,
        environment: Mapping[str, str],
        withheld: tuple[str, ...],
        run_id: str,
        notice: Callable[[str], None],
        copy_template: Callable[[Path, Path], None],
        keep: Path | None = None,
        isolation: Isolation = NO_ISOLATION,
    ) -> None:
        self._isolation, self._copy_template = isolation, copy_template
        self._scratch, self._run_id, self._notice, self._keep = scratch, run_id, notice, keep
        self._environment, self._withheld = environment, withheld
        self._runs: dict[ChildUser | None, Run] = {}
        self._shared: dict[Hashable, WorkspaceFolder] = {}

    def shared_key(self, suite: Suite, test: Test) -> Hashable | None:
        """The key of the folder that a test shares; tests with one key run one after another. None
        for a test that shares no folder."""
        workspace = test.workspace
        if workspace is None or workspace.per_test:
            return None
        return (suite.root, suite.path, test.id if workspace.own else None)

    async def enter(self, suite: Suite, test: Test, sample: int) -> Attempt:
        """Makes or reuses the folder of a test and runs the hooks before the agent.

        Raises AttemptError of kind `workspace`. A shared folder that could not be made is an error
        of every test that uses it.
        """
        if test.workspace is None:
            raise TypeError(f"the test {test.id} has no workspace")
        run = self._begin(self._isolation.user_of(suite.root))
        key = self.shared_key(suite, test)
        owner = test if key is None or test.workspace.own else None
        folder = WorkspaceFolder(run, test.workspace, suite.path, owner)
        if key is not None:
            folder = self._shared.setdefault(key, folder)
        suffix = f"-{sample + 1}" if sample else ""
        attempt = Attempt(run, folder, test, f"{_slug(suite.path)}/{_slug(test.id)}{suffix}")
        try:
            await folder.make()
            await attempt.begin()
        except AttemptError:
            await attempt.leave(failed=True, begun=False)
            raise
        return attempt

    async def close(self) -> None:
        """Runs `after_all` of every shared folder and removes everything. A failed hook is a
        notice."""
        for folder in self._shared.values():
            await folder.end()
        self._shared.clear()
        for run in self._runs.values():
            await run.repositories.close()
            await in_thread(remove_folder, run.folder)
        self._runs.clear()

    def _begin(self, user: ChildUser | None) -> Run:
        """What the folders of a user are made with."""
        if run := self._runs.get(user):
            return run
        with workspace_errors("a folder for workspaces cannot be made"):
            folder = new_folder("workspaces-", self._scratch).resolve()
            if user:  # it may not list the folders
                folder.chmod(TRAVERSABLE)
            git = Git(folder / "git", self._environment, user)
            copies = folder / "repositories"
            copies.mkdir()
            if user:
                os.chown(copies, user.uid, user.uid)
            repositories = Repositories(git, copies)
        hooks = HookRunner(self._environment, self._withheld, user)
        run = Run(
            folder,
            git,
            repositories,
            hooks,
            self._run_id,
            self._notice,
            self._copy_template,
            self._keep,
            user,
        )
        self._runs[user] = run
        return run


def _slug(text: str) -> str:
    return re.sub(r"[^A-Za-z0-9._-]+", "-", text).strip(".-")[:_MAX_NAME] or "test"
