"""The suites that a command works on, and the arguments that name them, which a shell completes."""

import asyncio
import os
import shlex
from collections.abc import Iterable, Mapping, Sequence
from contextlib import suppress
from pathlib import Path

import click

from agentevals_action.cli.options import as_environment
from agentevals_action.errors import AgentEvalsError, GitError
from agentevals_action.runners import suites
from agentevals_action.runners.suites import LoadedSuites
from agentevals_action.settings import Settings
from agentevals_action.suites.checkout import Checkout, check_inputs, no_suite, require_valid
from agentevals_action.suites.configuration_file import read_configuration
from agentevals_action.system.git import GitRepository


async def open_repository() -> tuple[Path, GitRepository | None]:
    """The root of the repository that contains the current folder; outside of a repository,
    the folder itself, and None."""
    with suppress(GitError):
        repository = await GitRepository.open(Path.cwd(), environ=os.environ)
        return repository.root, repository
    return Path.cwd().resolve(), None


async def load_suites(
    inputs: Mapping[str, str | None], paths: Sequence[Path], *, keeps_errors: bool = False
) -> LoadedSuites:
    """Loads the suites in `paths`, or all suites of the repository if it is empty. InvalidInput
    without a suite, or, unless `keeps_errors`, if a configuration that names suites has errors."""
    folder, repository = await open_repository()
    given = Settings.from_environ(as_environment(inputs))
    configuration = await asyncio.to_thread(read_configuration, folder)
    settings, environ = configuration.complete(given), dict(os.environ)
    checkout = await Checkout.at(folder, settings, configuration, environ, repository)
    loaded = await asyncio.to_thread(suites.load_suites, checkout, paths)
    check_inputs(checkout, loaded.suites)
    if not keeps_errors:
        require_valid((), loaded.errors)
    if not loaded.suites and not loaded.errors:
        raise no_suite(checkout, others=loaded.warnings)
    return loaded


def complete_tests(ctx: click.Context, _: click.Parameter, incomplete: str) -> Sequence[str]:
    """The ids of tests that begin with `incomplete`, of the suites that are named before."""
    # After an option without its value, Click leaves the arguments in `args`.
    paths = ctx.params.get("paths") or [*map(Path, ctx.args)]
    suites_of_paths = (suite for loaded in _load(paths) for suite in loaded.valid)
    return _beginning(incomplete, (test.id for suite in suites_of_paths for test in suite.tests))


def _complete_suites(_: click.Context, __: click.Parameter, incomplete: str) -> Sequence[str]:
    """The paths of suites, from the current folder, that begin with `incomplete`."""
    files = (loaded.checkout.folder / suite.path for loaded in _load() for suite in loaded.suites)
    return _beginning(incomplete, map(os.path.relpath, files))


def _beginning(incomplete: str, words: Iterable[str]) -> Sequence[str]:
    """The words that begin with `incomplete`, and that a shell reads as they are.

    Attack: a test of a pull request has a command as its id, which a completed line would run."""
    safe = (word for word in dict.fromkeys(words) if shlex.quote(word) == word)
    return [word for word in safe if word.startswith(incomplete)]


def _load(paths: Sequence[Path] = ()) -> Iterable[LoadedSuites]:
    """The suites; nothing after an error, which a shell cannot show."""
    with suppress(AgentEvalsError):
        yield asyncio.run(load_suites({}, paths, keeps_errors=True))


paths_argument = click.argument(
    "paths",
    nargs=-1,
    type=Path,
    shell_complete=_complete_suites,
    help="Suites, or folders that contain suites. Default: all suites of the repository.",
)

tests_option = click.option(
    "--test",
    "tests",
    multiple=True,
    metavar="ID-GLOB",
    shell_complete=complete_tests,
    help="Run only tests whose id matches this glob; may be repeated.",
)
