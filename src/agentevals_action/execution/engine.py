"""The engine: what the executors of a run share. It is assembled once, from computed values."""

import asyncio
import tempfile
from collections import Counter
from collections.abc import AsyncIterator, Callable, Iterable
from contextlib import asynccontextmanager, suppress
from dataclasses import dataclass
from pathlib import Path

from agentevals_action.errors import AttemptError
from agentevals_action.execution.attempts import Attempts
from agentevals_action.execution.fingerprint import Fingerprints
from agentevals_action.execution.preparation import Preparation
from agentevals_action.execution.workspaces.git import Git
from agentevals_action.execution.workspaces.pool import WorkspacePool
from agentevals_action.execution.workspaces.repositories import Repositories
from agentevals_action.formatting import each_once
from agentevals_action.model.judge import ALL_DECIDE, JudgeRule
from agentevals_action.model.suite import Suite
from agentevals_action.model.target import ProviderContext
from agentevals_action.settings import Settings
from agentevals_action.system import temp_dirs
from agentevals_action.system.child_environment import ChildContext
from agentevals_action.system.files.paths import Folder
from agentevals_action.system.isolation import PRIVATE_TEMP, TRAVERSABLE, Isolation, end_processes
from agentevals_action.system.signals import in_thread
from agentevals_action.system.workers import Workers
from agentevals_action.targets.calls.budget import Budget
from agentevals_action.targets.calls.client import TargetClient
from agentevals_action.targets.calls.permissions import Permissions
from agentevals_action.targets.calls.reply_store import Mode, StoredCalls

_PREFIX = "agentevals-run-"


@dataclass(frozen=True)
class Engine:
    """What the executors of head and of base share. `fingerprints` describe the suites,
    `children` are the programs of the run, `open_workspaces` makes the folders in which the agents
    of a run in one tree work, `scratch` is the folder of temporary files."""

    settings: Settings
    attempts: Attempts
    fingerprints: Fingerprints
    children: ChildContext
    open_workspaces: Callable[[Path], WorkspacePool]
    scratch: Path
    budget: Budget
    _client: TargetClient
    _stored: StoredCalls | None
    _preparation: Preparation
    _sentences: Counter[str]

    @property
    def notices(self) -> tuple[str, ...]:
        """What a reader of the run must know, in sentences."""
        sentences = each_once(self._sentences.elements())
        return (*self.budget.notices(), *self._preparation.judge_trees.notices(), *sentences)

    def note(self, sentence: str) -> None:
        """Adds a sentence for the reader of the run."""
        self._sentences[sentence] += 1

    def load(self, suites: Iterable[Suite]) -> None:
        """Reads the files, the variables and the stored replies of suites before the first program
        starts."""
        for suite in suites:
            self.fingerprints.describe(suite).read()
            with suppress(AttemptError):  # the call of a target reports it
                self.fingerprints.variables(suite.root, suite.folder)
            for target in (suite.targets.targets[name] for name in suite.used_targets):
                if target.stores_answers:
                    with suppress(AttemptError):  # as above
                        self._client.load(target, Folder(suite.root, suite.folder))
            if self._stored:
                self._stored.load(suite.root)

    async def prepare(self, tree: Path) -> None:
        """Prepares a tree for its suites, once: `setup`, then `prepare` there. Raises AttemptError
        of kind `prepare` when one of them fails."""
        await self._preparation.run(tree)


@asynccontextmanager
async def assemble_engine(
    settings: Settings,
    workspace: Path,
    suites: Iterable[Suite],
    fingerprints: Fingerprints,
    preparation: Preparation,
    *,
    cache: Mode | None,
    permissions: Permissions | None,
    rule: JudgeRule = ALL_DECIDE,
) -> AsyncIterator[Engine]:
    """An engine for the `suites` of head and of base, which has read all their files.

    Its programs run as the programs of the `preparation`. `cache` is what it does with stored
    replies, whose folder is in `workspace` (absolute). Targets may name the variables of the
    `fingerprints` as far as `permissions` allow it; `rule` states which judges decide. At the end
    no process of a program is left."""
    children, judge_trees = preparation.children, preparation.judge_trees
    variables = fingerprints.variables
    async with open_scratch(children.isolation) as scratch:
        sentences = Counter[str]()
        budget = Budget(settings.max_cost_usd)
        # Head and base each may use as many workers as tests run at once.
        workers = Workers(2 * settings.max_concurrency)
        context = ProviderContext({}, children, scratch, workers, judge_trees.find_path)
        client = TargetClient(variables, context, budget=budget, permissions=permissions)
        stored = None

        def note(sentence: str) -> None:
            sentences[sentence] += 1

        if cache and settings.cache_dir is not None:
            stored = StoredCalls(client, variables, cache, workspace, settings.cache_dir, note)
        run_id, repositories = scratch.name.removeprefix(_PREFIX), dict[Path, Repositories]()

        def open_workspaces(root: Path) -> WorkspacePool:
            if root not in repositories:
                folder = scratch.resolve() / f"repositories-{len(repositories)}"
                git = Git(folder, children.environment, children.isolation.choose_user(root))
                repositories[root] = Repositories(git, folder / "copies")
            copy = judge_trees.copy_template
            return WorkspacePool(scratch, children, run_id, note, copy, root, repositories[root])

        attempts = Attempts(
            stored or client, settings, children, fingerprints, judge_trees.find_path, note, rule
        )
        engine = Engine(
            settings,
            attempts,
            fingerprints,
            children,
            open_workspaces,
            scratch,
            budget,
            client,
            stored,
            preparation,
            sentences,
        )
        await asyncio.to_thread(engine.load, suites)
        try:
            yield engine
        finally:
            for copies in repositories.values():
                await copies.close()
            await client.close()
            if stored:
                await stored.close()


@asynccontextmanager
async def open_scratch(isolation: Isolation) -> AsyncIterator[Path]:
    """A folder for the temporary files of a run. At the end no process of a program is left."""
    temp = PRIVATE_TEMP if isolation.head else Path(tempfile.gettempdir())
    async with temp_dirs.temp_folder(_PREFIX, temp) as scratch:
        if isolation.head:
            scratch.chmod(TRAVERSABLE)
        try:
            yield scratch
        finally:
            await in_thread(end_processes)
