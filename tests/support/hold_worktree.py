"""Run as a program: opens a base worktree, says where, and waits until it is stopped or its file of
this name is there; REPOSITORY SHA TEMP FILE are its arguments."""

import asyncio
import sys
from pathlib import Path

from agentevals_action.review.change import base_tree
from agentevals_action.system.git import GitRepository


async def hold(repository: str, sha: str, temp: str, file: str) -> None:
    opened = GitRepository(Path(repository))
    async with base_tree.base_worktree(opened, sha, Path(temp)) as tree:
        print(tree, flush=True)
        while not Path(file).exists():  # noqa: ASYNC110  # another process makes it
            await asyncio.sleep(0.02)


if __name__ == "__main__":
    asyncio.run(hold(*sys.argv[1:]))
