"""The suites of the runners that `.agentevals.yaml` declares, and the files that they depend on."""

import os
import re
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from pathlib import Path, PurePosixPath

from agentevals_action.formatting import list_paths
from agentevals_action.model.diagnostic import Diagnostic, Location, NamedFile, files_of_program
from agentevals_action.model.quarantine import FILE
from agentevals_action.model.runner import Runner
from agentevals_action.model.suite import MAX_NAME, BrokenSuite, Suite
from agentevals_action.runners.commands import find_problems, split_commands
from agentevals_action.runners.formats import FORMATS
from agentevals_action.suites.checkout import (
    Checkout,
    load_all,
    open_catalog,
    require_valid,
    suites_in,
)
from agentevals_action.suites.find import FOLDER, is_chosen, is_searched, list_files
from agentevals_action.system.files.paths import Folder
from agentevals_action.system.files.regular_files import read_regular

#: Bytes of a suite's file in which names of files are looked for.
_SEARCHED = 4 * 1024 * 1024
#: What may be a path: no space, quote or bracket.
_WORD = re.compile(r"[^\s\"'`,;()\[\]{}<>|]+")
_PATH = re.compile(r"/|\.\w")
_IN_FOLDER = "folder of the suite"  # the role of a file
#: What stands before a path, and the name of a function after one.
_AROUND = re.compile(r"^(file|python|exec|javascript|ruby):(//)?|:[A-Za-z_]\w*$")


@dataclass(frozen=True)
class LoadedSuites:
    """The suites of a checkout, ours and those of runners, the errors of the configurations that
    name suites, and warnings about files of other tools."""

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
        return require_valid(self.suites)


def load_suites(checkout: Checkout, paths: Sequence[Path] = ()) -> LoadedSuites:
    """Finds and loads the suites of a checkout; only those that are named, or lie below a named
    folder, when paths are given. InvalidInput for a path without a suite."""
    of_runners, errors = find_runner_suites(checkout)
    catalog = open_catalog(checkout)
    found = suites_in(checkout, paths, (*of_runners, *catalog.skills.paths))
    suites = load_all(checkout, catalog, found.paths, of_runners)
    # What only lies in the folder of a runner's suite, as of a plugin, is not read by the runner.
    files = (file for suite in suites for file in suite.files)
    named = {file.path for file in files if file.role != _IN_FOLDER}
    warnings = (*found.warnings, *catalog.skills.warnings)
    others = tuple(warning for warning in warnings if warning.location.path not in named)
    return LoadedSuites(checkout, suites, (*errors, *found.errors), others)


def files_of_all(loaded: LoadedSuites) -> Mapping[str, bool]:
    """The paths of the loaded suites, of the suites that `suites`, `working-directory` or the
    command line leave to other runs, and of all files that these suites name; whether each path is
    known to be a part of suites alone."""
    every = loaded.checkout.settings.model_copy(update={"suites": ()})
    root = loaded.checkout.root
    whole = replace(loaded.checkout, below=root, missing=frozenset(), settings=every)
    of_runners, _ = find_runner_suites(whole)
    catalog = open_catalog(whole)
    loaded_paths = {suite.path for suite in loaded.suites}
    paths = suites_in(whole, (), (*of_runners, *catalog.skills.paths)).paths
    others = [path for path in paths if path not in loaded_paths]
    files: dict[str, bool] = {}
    for suite in (*loaded.suites, *load_all(whole, catalog, others, of_runners)):
        files.setdefault(suite.path, True)
        for file in suite.files:
            files[file.path] = files.get(file.path, True) and file.belongs_to(suite.path)
    return files


def find_runner_suites(
    checkout: Checkout,
) -> tuple[Mapping[str, Suite], Sequence[Diagnostic]]:
    """The suites by path that the entries match below the searched folder of a checkout, and the
    errors of entries."""
    runners = checkout.configuration.content.runners or ()
    suites: dict[str, Suite] = {}
    errors: list[Diagnostic] = []
    every = _list_files(checkout, runners) if runners else ()
    files = [path for path in every if is_searched(path, _hidden_names(runners))]
    tracked = [path for path in every if checkout.files is None or path in checkout.tracked]
    for runner in runners:
        places = runner.places
        problems = list(find_problems(runner))
        paths = [] if problems else _match_paths(runner, checkout, files)
        place = places.get("suites", runner.location)
        if problems:
            errors += [
                Diagnostic(places.get(name, runner.location), problem) for name, problem in problems
            ]
        elif not paths and not any(is_chosen(path, path, runner.suites) for path in files):
            problem = f"no file matches the `suites` of the runner `{runner.name}`"
            errors.append(Diagnostic(place, problem, "correct them, or remove the entry"))
        elif twice := [path for path in paths if path in suites]:
            problem = f"{list_paths(twice)} belongs to another runner, too"
            errors.append(Diagnostic(place, problem, "exclude it from one (`!pattern`)"))
        elif missing := [path for path in paths if not _is_inside(checkout, path)]:
            problem = f"{list_paths(missing)} is no file of the checkout"
            errors.append(Diagnostic(place, problem, "check out the whole repository"))
        else:
            suites |= {path: _suite(path, runner, checkout, tracked) for path in paths}
    return suites, errors


def gate_globs(
    suites: Sequence[Suite],
) -> Iterator[tuple[Location, Sequence[str], str, Sequence[str]]]:
    """The globs over tests that entries declare as gates: where, the globs, what they are, and the
    paths of the suites of the entry."""
    runners = {suite.runner.location: suite.runner for suite in suites if suite.runner}
    for runner in runners.values():
        paths = [suite.path for suite in suites if suite.runner == runner]
        yield runner.location, runner.required, f"`required` of the runner `{runner.name}`", paths


def _list_files(checkout: Checkout, runners: Sequence[Runner]) -> Sequence[str]:
    """The paths of the files that a suite may be or depend on: those that git knows, of hidden
    folders at the root, which other tools have, only those whose name is in a pattern."""
    files, named = checkout.files, _hidden_names(runners)
    paths = list_files(checkout.root) if files is None else files
    return sorted(
        path for path in paths if is_searched(path, named.union(PurePosixPath(path).parts[1:]))
    )


def _hidden_names(runners: Sequence[Runner]) -> frozenset[str]:
    """The names of the hidden folders that suites are searched in."""
    words = {word for runner in runners for glob in runner.suites for word in glob.split("/")}
    return frozenset({FOLDER, *(word for word in words if word.startswith("."))})


def _match_paths(runner: Runner, checkout: Checkout, files: Sequence[str]) -> Sequence[str]:
    """The files that the patterns match, from the root or from the searched folder."""
    below = checkout.below.relative_to(checkout.root).as_posix()
    start = "" if below == "." else f"{below}/"
    inside = (path for path in files if path.startswith(start))
    return [path for path in inside if is_chosen(path, path[len(start) :], runner.suites)]


def _is_inside(checkout: Checkout, path: str) -> bool:
    file = (checkout.root / path).resolve()
    return file.is_file() and file.is_relative_to(checkout.root)


def _suite(path: str, runner: Runner, checkout: Checkout, tracked: Sequence[str]) -> Suite:
    below = FORMATS[runner.results].find_folder(PurePosixPath(path))
    folder = checkout.root / below
    files = {path: NamedFile(path, "suite")}
    for named in _dependencies(checkout.root / path, folder, runner, checkout, tracked):
        files.setdefault(named.path, named)
    is_above = below.name and below != PurePosixPath(path).parent
    last = below if is_above else PurePosixPath(path).with_suffix("")
    words = "-".join(last.parts[-2:]).lower()
    return Suite(
        name=f"suite-{re.sub(r'[^a-z0-9]+', '-', words).strip('-')}"[:MAX_NAME].rstrip("-"),
        path=path,
        root=checkout.root,
        folder=folder,
        files=tuple(files.values()),
        runner=runner,
    )


def _dependencies(
    file: Path, start: Path, runner: Runner, checkout: Checkout, tracked: Sequence[str]
) -> Iterator[NamedFile]:
    """What a suite in the folder `start` depends on: the files that its text or its command names,
    the files that these import, its folder, folders of named globs, and the configuration of its
    runner."""
    root, tracked_paths = checkout.root, frozenset(tracked)
    folder = Folder(root, start, packages=checkout.packages)
    words = list(_read_words(file))
    named = tuple(path for place in (start, root) for path in folder.files_among(words, place))
    yield from (NamedFile(folder.relative(path), "named file") for path in named)
    command = [word for words in split_commands(runner) for word in words]
    programs = folder.files_among(command, root)
    for program in files_of_program(programs, "runner", command, root, folder):
        is_grader = program.path in tracked_paths and not program.importers
        yield program if is_grader else replace(program, role="program of the runner")
    imported = files_of_program((file, *named), "import", (), root, folder)
    yield from (module for module in imported if module.importers)
    globs = [Path(os.path.normpath(start / glob)).parent for glob in _globs(words)]
    inside = [path for path in (start, *globs) if path.is_relative_to(root)]
    folders = tuple("" if path == root else f"{folder.relative(path)}/" for path in inside)
    above = [
        folder.relative(parent / name)
        for parent in file.parents
        if parent.is_relative_to(root)
        for name in FORMATS[runner.results].configuration
    ]
    configured = tuple(f"{name}/" for name in above)
    for path in tracked:
        if path != FILE and path.startswith(folders):  # of that file, its entry counts
            yield NamedFile(path, _IN_FOLDER)
        elif path in above or path.startswith(configured):
            yield NamedFile(path, "configuration of the runner")


def _read_words(file: Path) -> Iterator[str]:
    """The words of a file that may be paths."""
    text = read_regular(file, _SEARCHED).decode("utf-8", "replace")
    for word in dict.fromkeys(_WORD.findall(text)):
        bare = _AROUND.sub("", word)
        if _PATH.search(bare):
            yield bare


def _globs(words: Sequence[str]) -> Iterator[str]:
    """The beginnings of words up to the first `*`."""
    return (word.partition("*")[0] + "*" for word in words if "*" in word)
