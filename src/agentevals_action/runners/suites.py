"""The suites of the runners that `.agentevals.yaml` declares, and the files that they depend on."""

import re
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path, PurePosixPath

from agentevals_action.formatting import list_paths
from agentevals_action.model import path_patterns
from agentevals_action.model.diagnostic import Diagnostic
from agentevals_action.model.files import NamedFile, files_of_program
from agentevals_action.model.quarantine import FILE
from agentevals_action.model.runner import Runner
from agentevals_action.model.suite import BrokenSuite, Suite
from agentevals_action.runners.commands import commands_of, problem_of
from agentevals_action.runners.formats import FORMATS
from agentevals_action.settings import Settings
from agentevals_action.suites.checkout import Checkout, load_all, suites_in
from agentevals_action.suites.configuration_file import ConfigurationFile
from agentevals_action.suites.find import is_searched
from agentevals_action.system.files.paths import Folder
from agentevals_action.system.files.regular_files import read_regular

#: Bytes of a suite's file in which names of files are looked for.
_SEARCHED = 4 * 1024 * 1024
#: What may be a path: no space, quote or bracket.
_WORD = re.compile(r"[^\s\"'`,;()\[\]{}<>|]+")
#: What stands before a path, and the name of a function after one.
_AROUND = re.compile(r"^(file|python|exec|javascript|ruby):(//)?|:[A-Za-z_]\w*$")


@dataclass(frozen=True)
class AllSuites:
    """The suites of a checkout, ours and those of runners, and the errors of the configurations
    that name suites."""

    suites: tuple[Suite | BrokenSuite, ...] = ()
    errors: tuple[Diagnostic, ...] = ()


def find_all(
    checkout: Checkout,
    settings: Settings,
    configuration: ConfigurationFile,
    folder: Path,
    environ: Mapping[str, str],
    paths: Sequence[Path] = (),
) -> AllSuites:
    """Finds and loads the suites of a checkout by the settings of a command; only those that are
    named, or lie below a named folder, when paths are given. InvalidInput for a path without a
    suite."""
    of_runners, errors = find_runner_suites(checkout, configuration.content.runners or ())
    found = suites_in(checkout, settings, paths, of_runners)
    suites = load_all(checkout, settings, found.paths, folder, environ, of_runners)
    return AllSuites(suites, (*errors, *found.errors))


def find_runner_suites(
    checkout: Checkout, runners: Sequence[Runner]
) -> tuple[Mapping[str, Suite], Sequence[Diagnostic]]:
    """The suites by path that the entries match below the searched folder of a checkout, and the
    errors of entries."""
    suites: dict[str, Suite] = {}
    errors: list[Diagnostic] = []
    files = _Files(checkout) if runners else None
    for runner in runners:
        problem = problem_of(runner)
        if files is None or problem:
            errors.append(Diagnostic(runner.location, problem))
            continue
        found = [path for path in files.below if files.is_chosen(path, runner.suites)]
        if taken := [path for path in found if path in suites]:
            other = suites[taken[0]].runner
            problem = f"{list_paths(taken)} is a suite of the runner `{other and other.name}`, too"
            errors.append(Diagnostic(runner.location, problem, "exclude it from one (`!pattern`)"))
        elif missing := [path for path in found if not files.is_readable(path)]:
            problem = f"{list_paths(missing)} is no file of the checkout"
            errors.append(Diagnostic(runner.location, problem, "check out the whole repository"))
        elif not found:
            problem = f"no file matches the `suites` of the runner `{runner.name}`"
            errors.append(Diagnostic(runner.location, problem, "correct them, or remove the entry"))
        suites |= {path: _suite(path, runner, checkout, files) for path in found}
    return suites, errors


class _Files:
    """The files of a checkout that a suite may depend on: those that git knows."""

    def __init__(self, checkout: Checkout) -> None:
        root, below = checkout.root, checkout.below
        known = checkout.files
        if known is None:
            paths = (path.relative_to(root) for path in root.rglob("*") if path.is_file())
            known = tuple(map(str, paths))
        self._root = root
        self._start = "" if below == root else f"{below.relative_to(root).as_posix()}/"
        self.every = sorted(path for path in known if is_searched(path))
        self.below = [path for path in self.every if path.startswith(self._start)]
        is_tracked = None if checkout.files is None else checkout.tracked
        self.tracked = [path for path in self.every if not is_tracked or path in is_tracked]

    def is_chosen(self, path: str, patterns: Sequence[str]) -> bool:
        """Whether patterns choose a path, as it is from the root or from the searched folder."""
        inside = path.removeprefix(self._start)
        return any(path_patterns.selected(name, patterns) for name in (path, inside))

    def is_readable(self, path: str) -> bool:
        """Whether a path is a file that does not lead out of the checkout."""
        file = (self._root / path).resolve()
        return file.is_file() and file.is_relative_to(self._root)


def _suite(path: str, runner: Runner, checkout: Checkout, files: _Files) -> Suite:
    file = checkout.root / path
    found = {path: NamedFile(path, "suite")}
    for named in _dependencies(file, runner, checkout, files):
        found.setdefault(named.path, named)
    return Suite(
        name=_name(path),
        path=path,
        root=checkout.root,
        folder=file.parent,
        files=tuple(found.values()),
        runner=runner,
    )


def _name(path: str) -> str:
    """A name for reports: the folder and the name of the file, which has no point in it."""
    words = PurePosixPath(path).with_suffix("").parts[-2:]
    slug = re.sub(r"[^a-z0-9]+", "-", "-".join(words).lower()).strip("-")
    return slug[:64].rstrip("-") if re.match(r"[a-z].", slug) else f"suite-{slug}"[:64].rstrip("-")


def _dependencies(
    file: Path, runner: Runner, checkout: Checkout, files: _Files
) -> Iterator[NamedFile]:
    """What a suite depends on: the files that its text or its command names, those that these
    import, the configuration of its runner, and all files in its folder."""
    root = checkout.root
    folder = Folder(root, file.parent)
    words = list(_words(file))
    globs = [word for word in words if "*" in word]
    named = [*folder.files_among(words, file.parent)]
    start = folder.relative(file.parent)
    for path in files.every if globs else ():
        if any(path_patterns.matches(path, _joined(start, glob)) for glob in globs):
            named.append(root / path)
    yield from (NamedFile(folder.relative(each), "named file") for each in dict.fromkeys(named))
    command = [word for words in commands_of(runner) for word in words]
    yield from files_of_program(
        [*folder.files_among(command, root)], "runner", command, root, folder
    )
    yield from (
        imported
        for imported in files_of_program([file, *named], "import", (), root, folder)
        if imported.importers
    )
    above = [
        f"{'' if parent == PurePosixPath('.') else f'{parent}/'}{name}"
        for parent in PurePosixPath(folder.relative(file)).parents
        for name in FORMATS[runner.results].configuration
    ]
    for path in files.tracked:
        if path == FILE:  # its entry counts, not the quarantine
            continue
        if (root / path).is_relative_to(file.parent):
            yield NamedFile(path, "folder of the suite")
        elif any(path == name or path.startswith(f"{name}/") for name in above):
            yield NamedFile(path, "configuration of the runner")


def _words(file: Path) -> Iterator[str]:
    """The words of a file that may be paths."""
    text = read_regular(file, _SEARCHED).decode("utf-8", "replace")
    for word in dict.fromkeys(_WORD.findall(text)):
        bare = _AROUND.sub("", word)
        if "." in bare or "/" in bare:
            yield bare


def _joined(start: str, glob: str) -> str:
    """A glob from the folder `start`, as one from the root of the repository."""
    parts: list[str] = [part for part in start.split("/") if part != "."]
    for part in glob.split("/"):
        if part == "..":
            del parts[-1:]
        elif part not in ("", "."):
            parts.append(part)
    return "/".join(parts)
