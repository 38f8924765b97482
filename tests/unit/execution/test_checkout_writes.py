"""Files that agents write into the checkout."""

import asyncio
import os
from pathlib import Path

from agentevals_action.execution.checkout_writes import CheckoutWrites
from tests.support.repositories import Repository


def test_report__a_pipe_that_git_waits_for_does_not_hold_the_run(tmp_path: Path) -> None:
    made = Repository.create(tmp_path / "repository", {"agent.py": "1"})
    notices: list[str] = []
    writes = CheckoutWrites(notices.append, {}, (), seconds=1)

    async def run() -> None:
        await writes.watch(made.path)
        os.mkfifo(made.path / ".gitignore")
        await writes.report([made.path])

    asyncio.run(run())
    (notice,) = notices
    assert notice.startswith("which files of the checkout agents changed is not known: `git ")
