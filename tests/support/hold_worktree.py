"""Run as a program: opens a base worktree, says where, and waits until it is stopped or its file of
this name is there; REPOSITORY SHA TEMP FILE are its arguments."""

import sys
import time
from pathlib import Path

from agentevals_action.errors import Interrupted
from agentevals_action.review.change import base_tree
from agentevals_action.system.git import GitRepository
from agentevals_action.system.signals import interruptible


def main(repository: str, sha: str, temp: str, file: str) -> int:
    try:
        with (
            interruptible(),
            base_tree.base_worktree(GitRepository(Path(repository)), sha, Path(temp)) as tree,
        ):
            print(tree, flush=True)
            # A signal just before a call that blocks is handled only when the call returns.
            while not Path(file).exists():
                time.sleep(0.02)
    except Interrupted:
        return 7
    return 0


if __name__ == "__main__":
    sys.exit(main(*sys.argv[1:]))
