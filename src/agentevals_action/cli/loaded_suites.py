"""The suites that a command works on, and the arguments that name them, which a shell completes."""

import asyncio
import os
import shlex
from collections.abc import Iterable, Mapping, Sequence
from contextlib import suppress
from dataclasses import dataclass
from pathlib import Path

import click

from agentevals_action.cli.options import as_environment
from agentevals_action.errors import AgentEvalsError, GitError
from agentevals_action.model.diagnostic import Diagnostic
from agentevals_action.model.suite import BrokenSuite, Suite
from agentevals_action.runners.suites import find_all
from agentevals_action.settings import Settings
from agentevals_action.suites import checkout as checkouts
from agentevals_action.suites.checkout import Checkout
from agentevals_action.suites.configuration_file import ConfigurationFile, read_configuration
from agentevals_action.system.git import GitRepository


@dataclass(frozen=True)
class LoadedSuites:
    """Suites with the settings that they were loaded by; `given` are those without the
    configuration file's. `folder` is the root of the repository, or the current folder where there
    is none. `errors` are those of the configurations that name
    suites, `warnings` those about files of other tools."""

    folder: Path
    repository: GitRepository | None
    environ: Mapping[str, str]
    configuration: ConfigurationFile
    given: Settings
    settings: Settings
    checkout: Checkout
    suites: tuple[Suite | BrokenSuite, ...]
    errors: tuple[Diagnostic, ...]
    warnings: tuple[Diagnostic, ...]

    @property
    def valid(self) -> list[Suite]:
        """The suites without errors."""
        return [suite for suite in self.suites if isinstance(suite, Suite)]

    @property
    def broken(self) -> list[BrokenSuite]:
        """The suites with errors."""
        return [suite for suite in self.suites if isinstance(suite, BrokenSuite)]

    def all_valid(self) -> tuple[Suite, ...]:
        """All suites; InvalidInput with all errors if one has errors."""
        return checkouts.require_valid(self.suites)


async def open_repository() -> tuple[Path, GitRepository | None]:
    """The root of the repository that contains the current folder; the folder itself, and None,
    where there is none."""
    with suppress(GitError):
        repository = await GitRepository.open(Path.cwd(), environ=os.environ)
        return repository.root, repository
    return Path.cwd().resolve(), None


async def load_suites(
    inputs: Mapping[str, str | None], paths: Sequence[Path], *, keeps_errors: bool = False
) -> LoadedSuites:
    """Loads the suites in `paths`, or all of the repository if it is empty. InvalidInput if there
    are none, or if a configuration that names suites has errors, which are kept on request."""
    environ = dict(os.environ)
    folder, repository = await open_repository()
    given = Settings.from_environ(as_environment(inputs))
    configuration = await asyncio.to_thread(read_configuration, folder)
    settings = configuration.complete(given)
    checkout = await Checkout.at(folder, settings, repository)
    found = await asyncio.to_thread(
        find_all, checkout, settings, configuration, folder, environ, paths
    )
    checkouts.check_inputs(settings, folder, found.suites)
    if not keeps_errors:
        checkouts.require_valid((), found.errors)
    if not found.suites and not found.errors:
        raise checkouts.no_suite(checkout, settings, others=found.warnings)
    return LoadedSuites(
        folder,
        repository,
        environ,
        configuration,
        given,
        settings,
        checkout,
        found.suites,
        found.errors,
        found.warnings,
    )


def complete_tests(ctx: click.Context, _: click.Parameter, incomplete: str) -> Sequence[str]:
    """The ids of the tests that begin so, of the suites that stand before."""
    # After an option without its value, Click leaves the arguments in `args`.
    loaded = _load(ctx.params.get("paths") or [*map(Path, ctx.args)])
    return _beginning(
        incomplete, (test.id for each in loaded for suite in each.valid for test in suite.tests)
    )


def _complete_suites(_: click.Context, __: click.Parameter, incomplete: str) -> Sequence[str]:
    """The paths of the suites that begin so, from the current folder."""
    files = (each.folder / suite.path for each in _load() for suite in each.suites)
    return _beginning(incomplete, map(os.path.relpath, files))


def _beginning(incomplete: str, words: Iterable[str]) -> Sequence[str]:
    """The words that begin so, and that a shell reads as they are.

    Attack: a test of a pull request has a command as its id, which a completed line would run."""
    safe = (word for word in dict.fromkeys(words) if shlex.quote(word) == word)
    return [word for word in safe if word.startswith(incomplete)]


def _load(paths: Sequence[Path] = ()) -> Iterable[LoadedSuites]:
    """The suites, unless there is an error, which a shell cannot show."""
    with suppress(AgentEvalsError):
        yield asyncio.run(load_suites({}, paths, keeps_errors=True))


paths_argument = click.argument(
    "paths",
    nargs=-1,
    type=Path,
    shell_complete=_complete_suites,
    help="Suites, or folders that contain suites. Default: all suites of the repository.",
)
