"""Adapters built from settings: what every command that reads or runs suites shares."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING

from agentevals_action import evaluators
from agentevals_action.errors import GitError, InvalidInput
from agentevals_action.model.suite import BrokenSuite, Suite
from agentevals_action.settings import Settings
from agentevals_action.suites.catalog import Catalog
from agentevals_action.suites.find import find_suites
from agentevals_action.suites.load import load_suite
from agentevals_action.system.git import GitRepository
from agentevals_action.targets import providers

if TYPE_CHECKING:
    from agentevals_action.results.estimate import Figures


@dataclass(frozen=True)
class Checkout:
    """A tree whose suites are read: `root` is the repository's (absolute), `below` where they are
    searched, `files` what git knows there (None outside a repository)."""

    root: Path
    below: Path
    files: tuple[str, ...] | None

    @classmethod
    def at(cls, folder: Path, settings: Settings, environ: Mapping[str, str]) -> "Checkout":
        """The checkout that a folder lies in; a folder outside any repository is its own root."""
        try:
            repository = GitRepository(folder, environ=environ)
            root, files = repository.root, repository.files()
        except GitError:
            root, files = folder.resolve(), None
        below = (folder / settings.working_directory).resolve()
        if not below.is_dir() or not below.is_relative_to(root):
            name = settings.working_directory
            raise InvalidInput(
                f"`working-directory` {name!r} is no folder of the repository",
                "name a folder below the workspace",
            )
        return cls(root, below, files)


def catalog(settings: Settings, folder: Path) -> Catalog:
    """What suites may name: the evaluators and providers of this version, the user's targets file
    and overrides."""
    targets = (folder / settings.targets).resolve() if settings.targets else None
    return Catalog(
        evaluators=evaluators.EVALUATORS_BY_NAME,
        providers=providers.PROVIDERS,
        targets_file=targets,
        target=settings.target,
        judge_target=settings.judge_target,
        strict=settings.strict,
    )


def suite_paths(
    checkout: Checkout, settings: Settings, paths: Sequence[Path] = ()
) -> tuple[str, ...]:
    """The suites of a checkout, relative to its root; only those that are named, or lie below a
    named folder, when paths are given."""
    if not paths:
        return find_suites(checkout.root, checkout.below, settings.suites, checkout.files)
    found: dict[str, None] = {}
    for path in paths:
        found.update(dict.fromkeys(_named(checkout, settings, path)))
    return tuple(found)


def _named(checkout: Checkout, settings: Settings, path: Path) -> Sequence[str]:
    absolute = path.resolve()
    if not absolute.is_relative_to(checkout.root):
        raise InvalidInput(
            f"{path} lies outside the repository {checkout.root}",
            "name a suite or a folder of this repository",
        )
    if absolute.is_file():
        return [absolute.relative_to(checkout.root).as_posix()]
    if not absolute.is_dir():
        raise InvalidInput(
            f"there is no file or folder {path}", "name a suite, or a folder that holds some"
        )
    found = find_suites(checkout.root, absolute, settings.suites, checkout.files)
    if not found:
        raise InvalidInput(
            f"no suite lies below {path}", "name a folder with EVAL.yaml files, or mend `suites`"
        )
    return found


def earlier_figures(results: Path) -> "Mapping[str, Figures]":
    """What the results of an earlier run took, by suite path; nothing where there are none that can
    be read: an estimate is no report."""
    from agentevals_action.results.estimate import tally  # late: reading suites needs no results
    from agentevals_action.results.jsonl import read_results

    try:
        return tally(read_results(results)) if results.is_file() else {}
    except (InvalidInput, OSError):
        return {}


def load_all(
    checkout: Checkout, settings: Settings, paths: Sequence[str], folder: Path
) -> tuple[Suite | BrokenSuite, ...]:
    """Reads the suites, each whole or with all its faults."""
    known = catalog(settings, folder)
    return tuple(load_suite(checkout.root / path, checkout.root, known) for path in paths)


def whole(suites: Sequence[Suite | BrokenSuite]) -> tuple[Suite, ...]:
    """The suites when none has a fault; InvalidInput with all faults of all suites otherwise, and
    when there is no suite."""
    errors = [
        str(diagnostic)
        for suite in suites
        if isinstance(suite, BrokenSuite)
        for diagnostic in suite.errors
    ]
    if errors:
        raise InvalidInput(
            f"{len(errors)} fault{'' if len(errors) == 1 else 's'}, nothing was run", errors=errors
        )
    if not suites:
        raise InvalidInput(
            "there is no suite in this repository",
            "write an EVAL.yaml, or mend `suites` and `working-directory`",
        )
    return tuple(suite for suite in suites if isinstance(suite, Suite))
