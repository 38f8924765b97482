"""What runs suites: calls, runner and fingerprints built from settings and the environment."""

import functools
import tempfile
from collections.abc import Iterable, Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING
from urllib.parse import urlsplit

from agentevals_action import process, redact, scratch, variables
from agentevals_action.budget import Budget
from agentevals_action.calls import Calls
from agentevals_action.errors import AttemptError
from agentevals_action.fingerprint import Fingerprints
from agentevals_action.model.fault import Fault
from agentevals_action.model.suite import Suite
from agentevals_action.notices import Notices
from agentevals_action.providers.base import Surroundings
from agentevals_action.runner import Children, Runner, RunOptions
from agentevals_action.settings import Settings
from agentevals_action.workspace import Workspaces

if TYPE_CHECKING:
    from agentevals_action.cache import Cache
    from agentevals_action.cache_keys import CacheKeys

#: Seconds that `prepare` may take: installing an agent's dependencies is slow, hanging for ever is not.
PREPARE_SECONDS = 1800.0
_LAST_LINES = 15
_PREFIX = "agentevals-run-"


@contextmanager
def engine_for(settings: Settings, environ: Mapping[str, str], workspace: Path, keep: Path | None = None) -> "Iterator[Engine]":
    """An engine with a folder for the temporary files of its run. From here on children cannot read this process's environment."""
    process.hide_from_children()
    with scratch.locked_folder(_PREFIX, Path(tempfile.gettempdir())) as folder:
        yield Engine(settings, environ, Places(workspace, folder, keep))


@dataclass(frozen=True)
class Places:
    """Where an engine works, absolute: the workspace, the run's folder for temporary files, and where the folders of agents that failed
    are kept, if they are."""

    workspace: Path
    scratch: Path
    keep: Path | None = None


class Engine:
    """Everything that a run needs; `settings` and the environment decide, nothing else does. `notices` are sentences for the reader."""

    def __init__(self, settings: Settings, environ: Mapping[str, str], places: Places) -> None:
        environment, withheld = process.scrubbed(environ, settings.env)
        self._settings, self._places = settings, places
        self._run_id = places.scratch.name.removeprefix(_PREFIX)
        self._environ = environ
        self._children = Children(environment, withheld)
        allowed = {name: environ[name] for name in settings.env if name in environ}
        self._variables = functools.cache(lambda root, folder: variables.read_variables(environ, root, folder))
        self._notices = Notices()
        self.budget = Budget(settings.max_cost_usd)
        self.cache, keys = self._open_cache(allowed)
        around = Surroundings({}, environment, allowed, withheld, places.scratch)
        self.calls = Calls(self._variables, around, budget=self.budget, cache=self.cache, keys=keys)
        self.fingerprints = Fingerprints(settings.watch)
        options = RunOptions(settings.samples, settings.timeout, settings.max_concurrency)
        self.runner = Runner(self.calls, options, self._children, self.fingerprints.of, self._open_workspaces)

    @property
    def notices(self) -> tuple[str, ...]:
        """What a reader of the run has to know, in sentences."""
        return (*self._notices.told(), *self.budget.notices())

    def _open_workspaces(self) -> Workspaces:
        children = self._children
        return Workspaces(self._places.scratch, children.environment, children.withheld, self._run_id, self._notices.add, self._places.keep)

    def _open_cache(self, allowed: Mapping[str, str]) -> "tuple[Cache | None, CacheKeys | None]":
        mode, folder = self._settings.cache, self._settings.cache_dir
        if mode == "off" or folder is None:
            return None, None
        from agentevals_action.cache import open_cache
        from agentevals_action.cache_keys import CacheKeys

        return open_cache(self._places.workspace / folder, mode, self._notices.add), CacheKeys(allowed, self._notices.add)

    def missing(self, suite: Suite) -> tuple[Fault, ...]:
        """A fault at each target that tests of the suite use and that needs a variable which is not set."""
        known = self._variables(suite.root, suite.folder)
        faults = []
        for target in (suite.targets.targets[name] for name in suite.used_targets):
            if names := [name for name in target.variables if name not in known]:
                told = ", ".join(names)
                problem = f"the target `{target.name}` needs {told}, which {'is' if len(names) == 1 else 'are'} not set"
                faults.append(Fault(target.location, problem, "give it to the step as `env:` from a secret, or put it into a .env file"))
        return tuple(faults)

    def secrets(self, suites: Iterable[Suite]) -> set[str]:
        """Values that must not be shown and that the environment alone does not tell: keys of targets whatever their variables are
        called, passwords in addresses that targets name, and what `.env` files call a secret."""
        found: set[str] = set()
        for suite in suites:
            known = self._variables(suite.root, suite.folder)
            used = (suite.targets.targets[name] for name in suite.used_targets)
            keys = [value for target in used for field, value in target.definition.items() if redact.looks_secret(field)]
            names = {*variables.names_in(keys), *filter(redact.looks_secret, known)}
            found.update(known[name] for name in names if name in known)
            found.update(filter(None, map(_password, known.values())))
        return found

    async def prepare(self, tree: Path) -> None:
        """Runs `prepare` in a tree; AttemptError of kind `prepare` when it fails."""
        if not self._settings.prepare:
            return
        command = ("sh", "-c", self._settings.prepare)
        done = await process.run(command, cwd=tree, environment=self._children.environment, timeout=PREPARE_SECONDS)
        if done.returncode == 0 and not done.timed_out:
            return
        how = f"took longer than {PREPARE_SECONDS:g} s" if done.timed_out else f"ended with exit code {done.returncode}"
        last = "\n".join((done.stderr.strip() or done.stdout.strip()).splitlines()[-_LAST_LINES:])
        hint = (
            f"variables that it may not see: {', '.join(self._children.withheld)}; name those it needs in `env`"
            if self._children.withheld
            else ""
        )
        raise AttemptError("prepare", f"`prepare` {how}: {last or 'it says nothing'}", hint)

    async def close(self) -> None:
        """Frees connections."""
        await self.calls.close()
        if self.cache is not None:
            await self.cache.close()


def _password(value: str) -> str | None:
    """The password in an address (`postgres://user:password@host`), None when there is none."""
    try:
        return urlsplit(value).password if "://" in value else None
    except ValueError:
        return None
