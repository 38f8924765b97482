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
    """The ids of the tests that begin so, of the suites that stand before."""
    # After an option without its value, Click leaves the arguments in `args`.
    loaded = _load(ctx.params.get("paths") or [*map(Path, ctx.args)])
    return _beginning(
        incomplete, (test.id for each in loaded for suite in each.valid for test in suite.tests)
    )


def _complete_suites(_: click.Context, __: click.Parameter, incomplete: str) -> Sequence[str]:
    """The paths of the suites that begin so, from the current folder."""
    files = (each.checkout.folder / suite.path for each in _load() for suite in each.suites)
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

tests_option = click.option(
    "--test",
    "tests",
    multiple=True,
    metavar="ID-GLOB",
    shell_complete=complete_tests,
    help="Run only tests whose id matches this glob; may be repeated.",
)
