"""The arguments that name suites and tests, which a shell completes."""

import asyncio
import os
import shlex
from collections.abc import Iterable, Sequence
from contextlib import suppress
from pathlib import Path

import click

from agentevals_action.cli.loaded_suites import LoadedSuites, load_suites
from agentevals_action.errors import AgentEvalsError


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
