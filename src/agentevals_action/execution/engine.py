"""The engine of a run: target calls, stored replies, runner and fingerprints, built from the
settings and the environment."""

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
from agentevals_action.execution.fingerprint import Fingerprints
from agentevals_action.execution.judge_trees import JudgeTrees
from agentevals_action.execution.preparation import LogSection, Preparation, no_log
from agentevals_action.execution.runner import Runner, RunOptions
from agentevals_action.execution.workspaces.pool import WorkspaceOptions, WorkspacePool
from agentevals_action.formatting import each_once
from agentevals_action.model.diagnostic import Diagnostic
from agentevals_action.model.suite import Suite
from agentevals_action.settings import Settings
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
from agentevals_action.targets.calls.budget import Budget
from agentevals_action.targets.calls.client import TargetClient
from agentevals_action.targets.calls.description import FileDigests, RequestDescriptions
from agentevals_action.targets.calls.permissions import Permissions
from agentevals_action.targets.calls.reply_store import StoredCalls

_PREFIX = "agentevals-run-"


class Engine:
    """Everything that a run needs. Only the settings and the environment determine it.

    The folders are absolute: `scratch` is for temporary files, `keep` gets the folders of agents
    whose tests did not pass. `isolation` gives the users of child processes. With `records`, all
    replies of the run are stored. `log` takes the output
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
        )
        self._stored = None
        mode = "record" if records else settings.cache
        #: Whether stored replies alone answer, so that each is the same again.
        self.replays = mode == "replay"
        if mode != "off" and settings.cache_dir is not None:
            own = [workspace / name for name in (settings.cache_dir, settings.report_dir)]
            requests = RequestDescriptions(self._variables, allowed, FileDigests(own))
            self._stored = StoredCalls(
                self.calls, requests, mode, workspace, settings.cache_dir, self._note
            )
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
        workspaces = WorkspaceOptions(
            scratch,
            environment,
            withheld,
            run_id,
            self._note,
            self.judge_trees.copy_template,
            keep,
            isolation,
        )
        self.runner = Runner(
            self._stored or self.calls,
            options,
            self.fingerprints.of,
            functools.partial(WorkspacePool, workspaces),
            self.judge_trees.path_of,
            self._note,
        )

    @property
    def notices(self) -> tuple[str, ...]:
        """What a reader of the run must know, in sentences."""
        return (*self._budget.notices(), *each_once(self._notices.elements()))

    def _note(self, sentence: str) -> None:
        self._notices[sentence] += 1

    def set_up_in(self, tree: Path) -> None:
        """Runs `setup` in this tree (absolute) in place of the workspace."""
        self._preparation.folder = tree

    def refuse_setup(self, reason: str) -> None:
        """Runs no `setup`: if there is one, every test is an error for this reason."""
        self._preparation.refuse_setup(reason)

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
        """Reads the files, the variables and the stored replies of suites before the first program
        starts."""
        for suite in suites:
            self.fingerprints.read(suite)
            with contextlib.suppress(AttemptError):  # the call of a target reports it
                self._variables(suite.root, suite.folder)
            for target in (suite.targets.targets[name] for name in suite.used_targets):
                if target.options.stores_answers:
                    with contextlib.suppress(AttemptError):  # as above
                        self.calls.load(target, Folder(suite.root, suite.folder))
            if self._stored:
                self._stored.load(suite.root)

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
        """Closes connections, and deletes stored replies that were not used for a long time."""
        await self.calls.close()
        if self._stored is not None:
            await self._stored.close()


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
