"""Finds and loads the suites of a checkout by the settings of a command."""

from collections import Counter
from collections.abc import Collection, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace
from functools import cached_property
from pathlib import Path, PurePosixPath

from agentevals_action.errors import InvalidInput
from agentevals_action.formatting import counted, join_choices, joined, list_paths, plural
from agentevals_action.model.diagnostic import Diagnostic
from agentevals_action.model.quarantine import FILE
from agentevals_action.model.suite import BrokenSuite, Suite
from agentevals_action.settings import Settings
from agentevals_action.suites.configuration_file import ConfigurationFile
from agentevals_action.suites.find import (
    DEFAULT_PATTERNS,
    FoundSuites,
    find_suites,
    hidden_configurations,
    list_files,
    unnamed_suites,
)
from agentevals_action.suites.find_skills import find_skill_suites
from agentevals_action.suites.load import load_suite
from agentevals_action.suites.other_formats import other_format
from agentevals_action.suites.proposed_runners import propose_runners
from agentevals_action.suites.target_use import Catalog
from agentevals_action.system.files.packages import find_packages
from agentevals_action.system.git import GitRepository
from agentevals_action.validation.field_errors import did_you_mean

#: Folders with copies of other files, which git ignores.
_BUILT = frozenset({"build", "dist", "site-packages", "target"})


@dataclass(frozen=True)
class Checkout:
    """A tree with suites: `root` is that of the repository (absolute), `below` the searched folder,
    `files` are the paths that git knows (None outside a repository), `tracked` the paths that git
    tracks, `missing` the tracked paths that must be on disk and are not.

    The suites are found by the `settings`, which name paths from `folder`, and by the tree's own
    `configuration`; `environ` are the variables of the step."""

    root: Path
    below: Path
    files: tuple[str, ...] | None
    tracked: frozenset[str] = frozenset()
    missing: frozenset[str] = frozenset()
    folder: Path = Path()
    settings: Settings = field(default_factory=lambda: Settings.model_validate({}))
    configuration: ConfigurationFile = field(default_factory=ConfigurationFile)
    environ: Mapping[str, str] = field(default_factory=dict)
    repository: GitRepository | None = None

    @classmethod
    async def at(
        cls,
        folder: Path,
        settings: Settings,
        configuration: ConfigurationFile,
        environ: Mapping[str, str],
        repository: GitRepository | None,
        *,
        is_commit: bool = False,
    ) -> "Checkout":
        """The checkout of a `repository` that a folder lies in; a folder outside any repository is
        its own root. In a tree that stands for a commit (`is_commit`) no tracked file may be
        missing; elsewhere somebody may have deleted it."""
        root = repository.root if repository else folder.resolve()
        listing = await repository.listing() if repository else None
        below = (folder / settings.working_directory).resolve()
        if not below.is_dir() or not below.is_relative_to(root):
            name = settings.working_directory
            raise InvalidInput(
                f"`working-directory` {name!r} is not a folder of the repository",
                "name a folder below the workspace",
            )
        return cls(
            root,
            below,
            listing.files if listing else None,
            listing.tracked if listing else frozenset(),
            listing.missing if listing and is_commit else frozenset(),
            folder,
            settings,
            configuration,
            environ,
            repository,
        )

    @cached_property
    def packages(self) -> tuple[Path, ...]:
        """The folders with Python packages of the checkout's distributions."""
        packages = find_packages(self.root, self.files or (), ())
        return tuple(dict.fromkeys(self.root / package.path for package in packages))


def suites_in(
    checkout: Checkout, paths: Sequence[Path], of_runners: Collection[str]
) -> FoundSuites:
    """The suites of a checkout, with the paths of the suites of runners; when `paths` are given,
    only suites that these name, or that lie below a folder that these name."""
    if not paths:
        return _search(checkout, of_runners)
    named = [_named(checkout, path, of_runners) for path in paths]
    return FoundSuites(
        tuple(dict.fromkeys(path for result in named for path in result.paths)),
        tuple(dict.fromkeys(error for result in named for error in result.errors)),
        tuple(dict.fromkeys(warning for result in named for warning in result.warnings)),
    )


def _search(checkout: Checkout, of_runners: Collection[str]) -> FoundSuites:
    """The suites below the searched folder. A suite that a sparse checkout lacks on both sides must
    not be taken for no suite."""
    below, patterns, missing = checkout.below, checkout.settings.suites, checkout.missing
    found = find_suites(checkout.root, below, patterns, checkout.files, missing)
    hidden = [path for path in found.paths if path in missing]
    hidden += hidden_configurations(missing)
    if hidden:
        verb = plural(len(hidden), "is", "are")
        raise InvalidInput(
            f"{counted(len(hidden), 'file')} of the commit that suites need {verb} not on disk",
            "check out the whole repository, or exclude suites by `suites` or `working-directory`",
            [f"{path}: this file is tracked by git and is not on disk" for path in hidden],
        )
    inside = (path for path in of_runners if (checkout.root / path).is_relative_to(below))
    others = (warning for warning in found.warnings if warning.location.path not in of_runners)
    return replace(found, paths=tuple(sorted({*found.paths, *inside})), warnings=tuple(others))


def _named(checkout: Checkout, path: Path, of_runners: Collection[str]) -> FoundSuites:
    absolute = path.resolve()
    if not absolute.is_relative_to(checkout.root):
        raise InvalidInput(
            f"{path} lies outside the repository {checkout.root}",
            "name a suite or a folder of this repository",
        )
    if absolute.is_file():
        name = absolute.relative_to(checkout.root).as_posix()
        warning = None if name in of_runners else other_format(checkout.root, name)
        return FoundSuites(warnings=(warning,)) if warning else FoundSuites((name,))
    if not absolute.is_dir():
        raise InvalidInput(
            f"there is no file or folder {path}", "name a suite, or a folder that contains some"
        )
    inside = replace(checkout, below=absolute)
    found = _search(inside, of_runners)
    if found == FoundSuites():
        raise no_suite(inside)
    return found


def open_catalog(checkout: Checkout) -> Catalog:
    """What all suites of a checkout share, with the suites of its skills."""
    settings, files = checkout.settings, checkout.files
    targets = (checkout.folder / settings.targets).resolve() if settings.targets else None
    catalog = Catalog(
        targets_file=targets,
        target=settings.target,
        judge_target=settings.judge_target,
        environ=checkout.environ,
        allowed=frozenset(settings.env),
        strict=settings.strict,
        files=None if files is None else frozenset(files),
        packages=checkout.packages,
    )
    root, below = checkout.root, checkout.below
    paths = files if files is not None else tuple(list_files(root))
    skills = checkout.configuration.content.skills
    suites = find_skill_suites(
        root, below, paths, checkout.missing, skills, catalog.works_with_skills
    )
    return replace(catalog, skills=suites)


def load_all(
    checkout: Checkout, catalog: Catalog, paths: Sequence[str], of_runners: Mapping[str, Suite]
) -> tuple[Suite | BrokenSuite, ...]:
    """Loads the suites, each valid or with all its errors; the suites of runners are given by path.
    The tests of a skill that another suite names in its `tests` are no suite of their own."""
    root, skills = checkout.root, catalog.skills.folders
    suites = [of_runners.get(path) or load_suite(root / path, root, catalog) for path in paths]
    named = {
        file.path
        for suite in suites
        for file in suite.files
        if file.role == "test file" and suite.path not in skills
    }
    return tuple(suite for suite in suites if suite.path not in named)


def check_inputs(checkout: Checkout, suites: Sequence[Suite | BrokenSuite]) -> None:
    """Raises InvalidInput for a targets file that does not exist, and for a target that no targets
    file of the suites has, whatever runs."""
    settings = checkout.settings
    if settings.targets and not (checkout.folder / settings.targets).is_file():
        problem = f"the input `targets` names {settings.targets}, which does not exist"
        raise InvalidInput(problem, "name a targets file of the repository, or leave it out")
    tables = [suite.targets for suite in suites]
    names = list(dict.fromkeys(name for table in tables for name in table.names))
    overrides = {"target": settings.target, "judge-target": settings.judge_target}
    for name, target in overrides.items():
        # A suite that cannot be read at all has its own error.
        if target and target not in names and any(table.path for table in tables):
            advice = did_you_mean(target, names, f"write {join_choices(sorted(names))}")
            raise InvalidInput(
                f"the input `{name}` names `{target}`, a target that no targets file has", advice
            )


def distinct_errors(suites: Iterable[Suite | BrokenSuite]) -> tuple[Diagnostic, ...]:
    """Each error of the suites once, in order, as `distinct`."""
    return distinct(suite.errors for suite in suites if isinstance(suite, BrokenSuite))


def distinct(errors: Iterable[Iterable[Diagnostic]]) -> tuple[Diagnostic, ...]:
    """Each error of the suites once; an error of several suites, as in a shared file, states their
    number."""
    counts = Counter(error for errors_of_suite in errors for error in errors_of_suite)
    return tuple(
        replace(error, problem=f"{error.problem} (in {count} suites)") if count > 1 else error
        for error, count in counts.items()
    )


def require_valid(
    suites: Sequence[Suite | BrokenSuite], others: Sequence[Diagnostic] = ()
) -> tuple[Suite, ...]:
    """The suites when all are valid; InvalidInput with all errors of all suites, and `others`,
    otherwise."""
    errors = [str(error) for error in (*others, *distinct_errors(suites))]
    if errors:
        raise InvalidInput(f"{counted(len(errors), 'error')}, nothing was run", errors=errors)
    return tuple(suite for suite in suites if isinstance(suite, Suite))


def no_suite(
    checkout: Checkout, deleted: Sequence[str] = (), others: Sequence[Diagnostic] = ()
) -> InvalidInput:
    """The error of a checkout without suites, with the files that may be meant; `deleted` are the
    paths of suites that the change deletes, `others` the warnings about files of other tools."""
    files = list(map(str, others))
    below = checkout.below.relative_to(checkout.root).as_posix()
    problem = f"there is no suite in {'this repository' if below == '.' else below}"
    if deleted:
        advice = f"restore {plural(len(deleted), 'it', 'one of them')}, or write another EVAL.yaml"
        return InvalidInput(f"{problem}: the change deletes {list_paths(deleted)}", advice, files)
    patterns = [pattern for pattern in checkout.settings.suites if not pattern.startswith("!")]
    if patterns:
        problem += (
            f": {list_paths(patterns)} in `suites` {plural(len(patterns), 'matches', 'match')} none"
        )
    else:
        problem += f"; looked for {list_paths(DEFAULT_PATTERNS)}"
    advice = "; ".join(_hints(checkout)) or (
        "write an EVAL.yaml (`agentevals-action init` writes a first one), or correct `suites` and "
        "`working-directory`"
    )
    return InvalidInput(problem, advice, files)


def overlooked(checkout: Checkout, known: Collection[str]) -> str:
    """A notice about the suites that no pattern finds, apart from the paths that are `known`, and
    about the patterns that find none; empty if there are none."""
    root, below, files = checkout.root, checkout.below, checkout.files
    hints = [
        f"`{pattern}` in `suites` matches none: correct it, or remove it"
        for pattern in checkout.settings.suites
        if not pattern.startswith("!") and not find_suites(root, below, (pattern,), files).paths
    ]
    hints += _unfound(checkout, known)
    return f"not all suites run: {'; '.join(hints)}" if hints else ""


def _unfound(checkout: Checkout, known: Collection[str] = ()) -> Iterator[str]:
    """What to do with the suites that no pattern finds, or that git ignores, apart from copies that
    an installation or a build makes."""
    root, below, files = checkout.root, checkout.below, checkout.files
    patterns = checkout.settings.suites
    unnamed = unnamed_suites(root, below, files, patterns)
    if others := {path: name for path, name in unnamed.items() if path not in known}:
        name = PurePosixPath(next(iter(others.values()))).name
        has, them = plural(len(others), "has", "have"), plural(len(others), "it", "them")
        tests = f"{list_paths([*others])} {has} tests"
        yield f"{tests}: write `{name}` as name, or name {them} in `suites`"
    on_disk = find_suites(root, below, patterns, None).paths if files is not None else ()
    elsewhere = sorted({*on_disk} - {*(files or ())})
    if ignored := [path for path in elsewhere if _BUILT.isdisjoint(PurePosixPath(path).parts)]:
        yield f"git ignores {list_paths(ignored)}: correct `.gitignore`"


def _hints(checkout: Checkout) -> Iterator[str]:
    """What to do with the files that may be meant by suites."""
    root, below, files = checkout.root, checkout.below, checkout.files
    if left_out := find_suites(root, below, (), files).paths:
        globs = "write globs from the root of the repository, as `evals/**/*.yaml`"
        yield f"`suites` leaves out {list_paths(left_out)}: {globs}"
    yield from _unfound(checkout)
    inside = [path for path in files or () if (root / path).is_relative_to(below)]
    if runners := propose_runners(root, inside):
        paths = [path for runner in runners for path in runner.paths]
        entries = ", ".join(runner.entry for runner in runners)
        programs = joined([runner.name for runner in runners])
        is_for = f"{list_paths(paths)} {plural(len(paths), 'is', 'are')} for {programs}"
        gate = f"run `agentevals-action init`, or write `runners: [{entries}]` in {FILE}"
        yield f"{is_for}: to gate {plural(len(paths), 'it', 'them')}, {gate}"
