"""The engine of a run, assembled from its inputs."""

from collections.abc import AsyncIterator
from contextlib import AsyncExitStack, asynccontextmanager
from dataclasses import replace
from functools import partial
from pathlib import Path

from agentevals_action.execution.engine import Engine, assemble_engine
from agentevals_action.execution.judge_trees import JudgeTrees, needs_judge_tree
from agentevals_action.execution.preparation import Preparation
from agentevals_action.github.runner import job_log
from agentevals_action.results.shards import divided_budget
from agentevals_action.review.inputs.base_tree import base_worktree
from agentevals_action.review.inputs.inputs import ReviewInputs
from agentevals_action.system.child_environment import ChildContext
from agentevals_action.system.isolation import PRIVATE_TEMP, TRAVERSABLE


@asynccontextmanager
async def open_engine(inputs: ReviewInputs) -> AsyncIterator[Engine]:
    """The engine of a run, before a program of the change starts. Raises GitError."""
    request, part = inputs.request, inputs.part
    async with (
        _open_judge_trees(inputs) as judge_trees,
        assemble_engine(
            divided_budget(request.settings),
            request.workspace.folder,
            (*part.head.values(), *part.arms, *part.base.values()),
            inputs.fingerprints,
            _preparation(inputs, judge_trees),
            cache=request.cache,
            permissions=inputs.permissions,
            rule=inputs.judge_rule,
        ) as engine,
    ):
        yield engine


@asynccontextmanager
async def _open_judge_trees(inputs: ReviewInputs) -> AsyncIterator[JudgeTrees]:
    """Checks out the commit of each side from which a judge may run once more, in the container.
    These trees belong to root, and the users of all programs may read them: the objects of the
    checkout have the same content. Raises GitError."""
    request, base, part = inputs.request, inputs.base, inputs.part
    repository, trees = request.repository, dict[Path, Path]()
    async with AsyncExitStack() as opened:
        if request.isolation.judge and repository:
            head = repository.root, inputs.facts.commit, part.head
            for root, sha, suites in (head, (base.root, base.sha, part.base)):
                if root and sha and any(map(needs_judge_tree, suites.values())):
                    worktree = base_worktree(repository, sha, PRIVATE_TEMP)
                    trees[root] = await opened.enter_async_context(worktree)
                    trees[root].parent.chmod(TRAVERSABLE)
        yield JudgeTrees(trees)


def _preparation(inputs: ReviewInputs, judge_trees: JudgeTrees) -> Preparation:
    """Attack: `setup: npm ci` runs scripts of the pull request as root. It runs in base's tree."""
    request, base = inputs.request, inputs.base
    workspace, settings = request.workspace, request.settings
    children = ChildContext.from_environ(workspace.environ, settings.env, request.isolation)
    children = replace(children, packages=inputs.packages)
    log = partial(job_log.folded, in_actions=workspace.in_actions)
    folder, obstacle = base.root or workspace.folder, ""
    if base.root is None and base.problem:
        obstacle = f"it runs in the tree of base, and {base.problem}"
    submodules: tuple[Path, ...] = ()
    if base.root and request.repository and ".gitmodules" in base.tracked:
        submodules = tuple(
            base.root / path
            for path in base.tracked
            if (base.root / path).is_dir() and any((request.repository.root / path).glob("*"))
        )
    return Preparation(
        settings.setup, settings.prepare, folder, children, log, obstacle, judge_trees, submodules
    )
