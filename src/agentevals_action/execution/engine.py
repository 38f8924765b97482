"""What runs suites: calls, runner and fingerprints built from settings and the environment."""

import functools
import tempfile
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from contextlib import AbstractContextManager, contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import Any
from urllib.parse import urlsplit

from agentevals_action.execution.fingerprint import Fingerprints
from agentevals_action.execution.forecast import Forecast
from agentevals_action.execution.preparation import Preparation
from agentevals_action.execution.runner import Children, Runner, RunOptions
from agentevals_action.execution.workspaces.pool import Workspaces
from agentevals_action.model.diagnostic import Diagnostic
from agentevals_action.model.notices import Notices
from agentevals_action.model.suite import Suite
from agentevals_action.settings import Settings
from agentevals_action.system import child_environment, process, redaction, temp_dirs
from agentevals_action.system.redaction import Redactor
from agentevals_action.targets import variables
from agentevals_action.targets.base import ProviderContext
from agentevals_action.targets.budget import Budget
from agentevals_action.targets.cache.file_digests import CacheFiles
from agentevals_action.targets.cache.keys import CacheKeys
from agentevals_action.targets.cache.store import Cache
from agentevals_action.targets.client import TargetClient

_PREFIX = "agentevals-run-"


@contextmanager
def engine_for(
    settings: Settings, environ: Mapping[str, str], workspace: Path, keep: Path | None = None
) -> "Iterator[Engine]":
    """An engine with a folder for the temporary files of its run. From here on children cannot read
    this process's environment."""
    process.hide_from_children()
    with temp_dirs.locked_folder(_PREFIX, Path(tempfile.gettempdir())) as folder:
        yield Engine(settings, environ, Places(workspace, folder, keep))


@dataclass(frozen=True)
class Places:
    """Where an engine works, absolute: the workspace, the run's folder for temporary files, and
    where the folders of agents that failed are kept, if they are."""

    workspace: Path
    scratch: Path
    keep: Path | None = None


class Engine:
    """Everything that a run needs; `settings` and the environment decide, nothing else does.
    `notices` are sentences for the reader."""

    def __init__(self, settings: Settings, environ: Mapping[str, str], places: Places) -> None:
        environment, withheld = child_environment.scrub(environ, settings.env)
        self._settings, self._places = settings, places
        self._run_id = places.scratch.name.removeprefix(_PREFIX)
        self._environ = environ
        self._children = Children(environment, withheld)
        allowed = {name: environ[name] for name in settings.env if name in environ}
        self._preparation = Preparation(
            settings.setup, settings.prepare, places.workspace, environment, withheld
        )
        self._redact = Redactor.from_environ(environ, settings.env).redact
        self._variables = functools.cache(
            lambda root, folder: variables.read_variables(environ, root, folder)
        )
        self._notices = Notices()
        self.budget = Budget(settings.max_cost_usd)
        self.cache, keys = self._open_cache(allowed)
        around = ProviderContext({}, environment, allowed, withheld, places.scratch)
        self.calls = TargetClient(
            self._variables, around, budget=self.budget, cache=self.cache, keys=keys
        )
        self.forecast = Forecast(settings)
        self.fingerprints = Fingerprints(settings.watch, self._variables)
        options = RunOptions(settings.samples, settings.timeout, settings.max_concurrency)
        self.runner = Runner(
            self.calls, options, self._children, self.fingerprints.of, self._open_workspaces
        )

    @property
    def notices(self) -> tuple[str, ...]:
        """What a reader of the run has to know, in sentences."""
        return (*self.budget.notices(), *self._notices.told())

    def _open_workspaces(self) -> Workspaces:
        children = self._children
        return Workspaces(
            self._places.scratch,
            children.environment,
            children.withheld,
            self._run_id,
            self._notices.add,
            self._places.keep,
        )

    def _open_cache(self, allowed: Mapping[str, str]) -> tuple[Cache | None, CacheKeys | None]:
        mode, folder = self._settings.cache, self._settings.cache_dir
        if mode == "off" or folder is None:
            return None, None
        place, report = (
            self._places.workspace / folder,
            self._places.workspace / self._settings.report_dir,
        )
        return Cache(place, mode, self._notices.add), CacheKeys(
            allowed, self._notices.add, CacheFiles(excluded=(place, report))
        )

    def missing(self, suite: Suite) -> tuple[Diagnostic, ...]:
        """A fault at each target that tests of the suite use and that needs a variable which is not
        set."""
        known = self._variables(suite.root, suite.folder)
        errors = []
        for target in (suite.targets.targets[name] for name in suite.used_targets):
            if names := [name for name in target.variables if name not in known]:
                told = ", ".join(names)
                problem = f"the target `{target.name}` needs {told}, which {'is' if len(names) == 1 else 'are'} not set"
                errors.append(
                    Diagnostic(
                        target.location,
                        problem,
                        "give it to the step as `env:` from a secret, or put it into a .env file",
                    )
                )
        return tuple(errors)

    def redactor(self, suites: Iterable[Suite]) -> Redactor:
        """Takes out the values of all secrets: those of the environment and those that the suites'
        targets use. From here on no reply that holds one is kept in the cache."""
        redactor = Redactor.from_environ(self._environ, self._settings.env, self._secrets(suites))
        self._redact = redactor.redact
        if self.cache is not None:
            self.cache.leaks = lambda text: redactor.redact(text) != text
        return redactor

    def _secrets(self, suites: Iterable[Suite]) -> set[str]:
        """Values that must not be shown and that the environment alone does not tell: keys of
        targets whatever their variables are called, passwords in addresses that targets name, and
        what `.env` files call a secret."""
        found: set[str] = set()
        for suite in suites:
            known = self._variables(suite.root, suite.folder)
            used = (suite.targets.targets[name] for name in suite.used_targets)
            keys = [value for target in used for value in _keys_in(target.definition)]
            names = {*variables.names_in(keys), *filter(redaction.looks_secret, known)}
            found.update(known[name] for name in names if name in known)
            found.update(filter(None, map(_password, known.values())))
        return found

    async def estimate(self, suites: Sequence[Suite], sides: int) -> str:
        """What the run is likely to cost and to take, in a sentence; `sides` is 2 where the base is
        run as well."""
        return self.forecast.sentence(
            suites, sides, await self.cache.last() if self.cache else None
        )

    async def prepare(self, tree: Path) -> None:
        """Makes a tree ready for its suites: `setup`, once, then `prepare` there; AttemptError of
        kind `prepare` when one of them fails."""
        await self._preparation.ready(tree, self._folded)

    def _folded(self, title: str) -> AbstractContextManager[Callable[[str], None]]:
        from agentevals_action.github import job_log  # late: most runs have no `setup` to tell of

        return job_log.folded(title, self._redact, self._environ.get("GITHUB_ACTIONS") == "true")

    async def close(self) -> None:
        """Frees connections, and keeps what the next run's estimate is made from."""
        await self.calls.close()
        if self.cache is not None:
            await self.cache.remember(self.forecast.figures())
            await self.cache.close()


def _keys_in(definition: Any, is_key: bool = False) -> Iterator[Any]:
    """What stands in a definition where keys stand: under a name that says so, at any depth, and in
    headers."""
    if is_key:
        yield definition
    elif isinstance(definition, Mapping):
        for name, value in definition.items():
            yield from _keys_in(value, name == "headers" or redaction.looks_secret(str(name)))
    elif isinstance(definition, list | tuple):
        for item in definition:
            yield from _keys_in(item)


def _password(value: str) -> str | None:
    """The password in an address (`postgres://user:password@host`), None when there is none."""
    try:
        return urlsplit(value).password if "://" in value else None
    except ValueError:
        return None
