"""Run as a program: opens a base worktree, says where, and waits to be stopped; REPOSITORY SHA TEMP
are its arguments."""

import select
import sys
from pathlib import Path

from agentevals_action.errors import Interrupted
from agentevals_action.review.change import base_tree
from agentevals_action.system.git import GitRepository
from agentevals_action.system.signals import interruptible


def main(repository: str, sha: str, temp: str) -> int:
    try:
        with (
            interruptible(),
            base_tree.base_worktree(GitRepository(Path(repository)), sha, Path(temp)) as tree,
        ):
            print(tree, flush=True)
            # A signal just before a call that blocks is handled only when the call returns.
            while not select.select([sys.stdin], [], [], 0.05)[0]:
                pass
    except Interrupted:
        return 7
    return 0


if __name__ == "__main__":
    sys.exit(main(*sys.argv[1:]))
