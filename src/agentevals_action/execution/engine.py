"""The engine of a run: target calls, cache, runner and fingerprints, built from the settings and
the environment."""

import asyncio
import contextlib
import functools
import tempfile
from collections import Counter
from collections.abc import AsyncIterator, Iterable, Iterator, Mapping
from contextlib import asynccontextmanager
from pathlib import Path
from typing import Any
from urllib.parse import urlsplit

from agentevals_action.errors import AttemptError
from agentevals_action.execution.cassettes import RecordedCalls, ReplayedCalls
from agentevals_action.execution.definitions import EditFinder
from agentevals_action.execution.fingerprint import Fingerprints
from agentevals_action.execution.judge_trees import JudgeTrees
from agentevals_action.execution.preparation import LogSection, Preparation, no_log
from agentevals_action.execution.runner import Runner, RunOptions
from agentevals_action.execution.workspaces.pool import Workspaces
from agentevals_action.formatting import each_once
from agentevals_action.model.diagnostic import Diagnostic
from agentevals_action.model.result import TestResult
from agentevals_action.model.suite import Suite
from agentevals_action.settings import Settings
from agentevals_action.suites.cassette_file import CassetteFolder
from agentevals_action.suites.target_use import undeclared_target
from agentevals_action.system import child_environment, process, redaction, temp_dirs
from agentevals_action.system.files.paths import Folder
from agentevals_action.system.isolation import (
    NO_ISOLATION,
    PRIVATE_TEMP,
    TRAVERSABLE,
    Isolation,
    end_processes,
)
from agentevals_action.system.redaction import Redactor, redact_with, redacting
from agentevals_action.system.signals import in_thread
from agentevals_action.system.workers import Workers
from agentevals_action.targets import variables
from agentevals_action.targets.base import ProviderContext
from agentevals_action.targets.cache.file_digests import CacheFiles
from agentevals_action.targets.cache.keys import CacheKeys
from agentevals_action.targets.cache.store import Cache
from agentevals_action.targets.calls.budget import Budget
from agentevals_action.targets.calls.client import TargetClient
from agentevals_action.targets.calls.permissions import Permissions

_PREFIX = "agentevals-run-"


class Engine:
    """Everything that a run needs. Only the settings and the environment determine it.

    The folders are absolute: `scratch` is for temporary files, `keep` gets the folders of agents
    whose tests did not pass. `isolation` gives the users of child processes. With `records`, the
    folder of the cassettes gets the requests of the run with their replies. `log` takes the output
    of `setup`."""

    def __init__(
        self,
        settings: Settings,
        environ: Mapping[str, str],
        workspace: Path,
        scratch: Path,
        keep: Path | None = None,
        isolation: Isolation = NO_ISOLATION,
        *,
        records: bool = False,
        log: LogSection = no_log,
    ) -> None:
        self._log = log
        environment, withheld = child_environment.scrub(environ, settings.env)
        allowed = {name: environ[name] for name in settings.env if name in environ}
        self._settings, self._environ = settings, environ
        self._preparation = Preparation(
            settings.setup, settings.prepare, workspace, environment, withheld, isolation
        )
        self._variables = functools.cache(functools.partial(variables.read_variables, environ))
        self._notices = Counter[str]()
        self._budget = Budget(settings.max_cost_usd)
        keys = self._cache_keys(workspace, allowed)
        self._cache = self._open_cache(workspace)
        self.judge_trees = JudgeTrees()
        self._linking = asyncio.Lock()
        # Those of head and of base: each may use as many as tests run at once.
        workers = Workers(2 * settings.max_concurrency)
        self.calls = TargetClient(
            self._variables,
            ProviderContext(
                {},
                environment,
                allowed,
                withheld,
                scratch,
                isolation,
                workers,
                self.judge_trees.path_of,
            ),
            budget=self._budget,
            cache=self._cache,
            keys=keys if self._cache else None,
        )
        self._replayed = self._recorded = None
        folder, notice = settings.cassettes, self._note
        if settings.cache == "replay" and folder:
            self._replayed = ReplayedCalls(self.calls, keys, folder, workspace)
        elif records and folder:
            cassettes = CassetteFolder(workspace, folder)
            self._recorded = RecordedCalls(self.calls, keys, cassettes, notice)
        self.fingerprints = Fingerprints(settings.watch_rules, self._variables)
        options = RunOptions(
            settings.samples,
            settings.timeout,
            settings.max_concurrency,
            environment,
            withheld,
            isolation,
        )
        run_id = scratch.name.removeprefix(_PREFIX)
        open_workspaces = functools.partial(
            Workspaces,
            scratch,
            environment,
            withheld,
            run_id,
            notice,
            self.judge_trees.copy_template,
            keep,
            isolation,
        )
        self.runner = Runner(
            self._replayed or self._recorded or self.calls,
            options,
            self.fingerprints.of,
            open_workspaces,
            self.judge_trees.path_of,
            notice,
        )

    def edit_finder(self) -> EditFinder:
        """Finds edits apart from the fingerprints of the run: it may read the files earlier, before
        `prepare` changes them."""
        return EditFinder(Fingerprints(self._settings.watch, self._variables))

    @property
    def notices(self) -> tuple[str, ...]:
        """What a reader of the run must know, in sentences."""
        missing = self._replayed.notices() if self._replayed else ()
        return (*self._budget.notices(), *missing, *each_once(self._notices.elements()))

    @property
    def replays(self) -> bool:
        """Whether cassettes answer, so that each reply is the same again."""
        return self._replayed is not None

    def _note(self, sentence: str) -> None:
        self._notices[sentence] += 1

    def _cache_keys(self, workspace: Path, allowed: Mapping[str, str]) -> CacheKeys:
        settings = self._settings
        own = (settings.cache_dir, settings.report_dir, settings.cassettes)
        files = CacheFiles(excluded=[workspace / name for name in own if name])
        return CacheKeys(allowed, self._note, files)

    def _open_cache(self, workspace: Path) -> Cache | None:
        settings = self._settings
        if settings.cache not in ("read", "on") or settings.cache_dir is None:
            return None
        return Cache(workspace / settings.cache_dir, settings.cache, self._note)

    def trust_cassettes(self, folder: CassetteFolder | None) -> None:
        """Replays from this folder alone from now on, and nothing if it is None."""
        if self._replayed:
            self._replayed.trust_only(folder)

    def set_up_in(self, tree: Path) -> None:
        """Runs `setup` in this tree (absolute) in place of the workspace."""
        self._preparation.folder = tree

    def refuse_setup(self, reason: str) -> None:
        """Runs no `setup`: if there is one, every test is an error for this reason."""
        self._preparation.refuse_setup(reason)

    def record(self, result: TestResult) -> None:
        """Writes the cassette of a test that is done, if the run records. Raises OutputError."""
        if self._recorded:
            self._recorded.write(result)

    @property
    def recorded(self) -> int:
        """The number of cassettes that were written."""
        return self._recorded.written if self._recorded else 0

    def restrict(self, permissions: Permissions) -> None:
        """Limits the variables that targets may use from now on."""
        self.calls.permissions = permissions

    def target_errors(self, suite: Suite) -> tuple[Diagnostic, ...]:
        """A diagnostic for each target that the suite uses and that is not declared, or needs an
        unset variable. A replay needs none."""
        known = self._variables(suite.root, suite.folder)
        undeclared = undeclared_target(suite)
        diagnostics = [undeclared] if undeclared else []
        for target in (suite.targets.targets[name] for name in suite.used_targets):
            names = [name for name in target.variables if name not in known]
            if names and not self.replays:
                problem = f"the target `{target.name}` needs {', '.join(names)}"
                problem = f"{problem}, which {'is' if len(names) == 1 else 'are'} not set"
                advice = "give it to the step as `env:` from a secret, or put it into a .env file"
                diagnostics.append(Diagnostic(target.location, problem, advice))
        return tuple(diagnostics)

    def redactor(self, suites: Iterable[Suite]) -> Redactor:
        """Removes the values of all secrets: those of the environment and those that the targets of
        the suites use. From now on no reply and no output of a program contains one."""
        secrets = self._secrets(suites)
        redactor = Redactor.from_environ(self._environ, self._settings.env, secrets)
        redact_with(redactor)
        if self._recorded is not None:
            self._recorded.redactor = redactor
        return redactor

    def _secrets(self, suites: Iterable[Suite]) -> set[str]:
        """Secrets that the names of the environment's variables do not reveal: keys of targets,
        passwords in addresses, secrets of `.env` files."""
        found: set[str] = set()
        for suite in suites:
            known = self._variables(suite.root, suite.folder)
            used = (suite.targets.targets[name] for name in suite.used_targets)
            keys = [value for target in used for value in _keys_in(target.definition)]
            names = {*variables.names_in(keys), *filter(redaction.looks_secret, known)}
            found.update(known[name] for name in names if name in known)
            found.update(filter(None, map(_password, known.values())))
        return found

    def load(self, suites: Iterable[Suite]) -> None:
        """Reads the files, the variables and the cassettes of suites before the first program
        starts."""
        for suite in suites:
            self.fingerprints.read(suite)
            with contextlib.suppress(AttemptError):  # the call of a target reports it
                self._variables(suite.root, suite.folder)
            for target in (suite.targets.targets[name] for name in suite.used_targets):
                if target.options.stores_answers:
                    with contextlib.suppress(AttemptError):  # as above
                        self.calls.load(target, Folder(suite.root, suite.folder))
            if self._replayed:
                self._replayed.load(suite)

    async def prepare(self, tree: Path) -> None:
        """Prepares a tree for its suites, once: `setup`, then `prepare` there. Raises AttemptError
        of kind `prepare` when one of them fails."""
        await self._preparation.run(tree, self._log)
        try:
            async with self._linking:
                await in_thread(self.judge_trees.link_rest, tree)
        except OSError as error:
            problem = f"the tree of the judges cannot be made: {error}"
            raise AttemptError("prepare", problem) from error

    async def close(self) -> None:
        """Closes connections and the cache."""
        await self.calls.close()
        if self._cache is not None:
            await self._cache.close()


@asynccontextmanager
async def open_engine(
    settings: Settings,
    environ: Mapping[str, str],
    workspace: Path,
    keep: Path | None = None,
    isolation: Isolation = NO_ISOLATION,
    *,
    records: bool = False,
    log: LogSection = no_log,
) -> AsyncIterator[Engine]:
    """An engine with a folder for the temporary files of its run. From now on child processes
    cannot read the environment of this process. At the end no process of a program is left."""
    process.hide_from_children()
    known = Redactor.from_environ(environ, settings.env)
    temp = PRIVATE_TEMP if isolation.head else Path(tempfile.gettempdir())
    async with temp_dirs.locked_folder(_PREFIX, temp) as scratch:
        if isolation.head:
            scratch.chmod(TRAVERSABLE)
        with redacting(known):
            engine = Engine(
                settings, environ, workspace, scratch, keep, isolation, records=records, log=log
            )
            try:
                yield engine
            finally:
                await in_thread(end_processes, isolation)


def _keys_in(definition: Any, is_key: bool = False) -> Iterator[Any]:
    """The values of a target's definition that are keys: under a name that looks secret, at any
    depth, and in headers."""
    if is_key:
        yield definition
    elif isinstance(definition, Mapping):
        for name, value in definition.items():
            yield from _keys_in(value, name == "headers" or redaction.looks_secret(str(name)))
    elif isinstance(definition, list | tuple):
        for item in definition:
            yield from _keys_in(item)


def _password(value: str) -> str | None:
    """The password in an address (`postgres://user:password@host`), None if there is none."""
    try:
        return urlsplit(value).password if "://" in value else None
    except ValueError:
        return None
