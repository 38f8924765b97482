"""Finds the suites of a repository, and the configuration in `.agentv/config.yaml` that adds to the
search."""

import os
import re
from collections.abc import Collection, Iterator, Mapping, Sequence
from dataclasses import dataclass
from itertools import pairwise
from pathlib import Path, PurePosixPath

from agentevals_action.model import path_patterns
from agentevals_action.model.diagnostic import Diagnostic, Location
from agentevals_action.model.judge import is_label_file
from agentevals_action.suites.documents.diagnostics import DiagnosticCollector, Unreadable
from agentevals_action.suites.documents.yaml_reader import MAX_BYTES, read_settings_file
from agentevals_action.suites.other_formats import other_format
from agentevals_action.suites.reading import FileReader
from agentevals_action.suites.sources import ROW_SUFFIXES, YAML_SUFFIXES
from agentevals_action.system.files.regular_files import is_present, read_regular
from agentevals_action.validation.field_errors import describe_value
from agentevals_action.validation.file_model import FileModel, ListOf

#: The folder of configuration and targets, and the name of the configuration.
FOLDER, CONFIG = ".agentv", "config.yaml"
_CONFIGURATIONS = frozenset({"config", "targets"})
#: Suites by their names; `dataset.yaml` only with tests, or with a `dataset.jsonl` next to it.
DEFAULT_PATTERNS = (
    "**/EVAL.yaml",
    "**/EVAL.yml",
    "**/*.eval.yaml",
    "**/*.eval.yml",
    "**/dataset.yaml",
)

_DATASET = "dataset.yaml"
_RESULTS = "results"
_SUITE_SUFFIXES = (*YAML_SUFFIXES, *ROW_SUFFIXES)
_ALL_YAML = tuple(f"**/*{suffix}" for suffix in YAML_SUFFIXES)
#: The tests of a suite have an input; other tools have `tests`, too.
_TESTS_AT_TOP = re.compile(
    r"^(tests|evalcases|eval_cases)\s*:(?=.*\binput(_messages)?[\"']?\s*:)",
    re.MULTILINE | re.DOTALL,
)
#: The name of another tool's files with `tests`.
_PROMPTFOO = "promptfooconfig"
#: The beginning of a YAML file that is a list.
_LIST = re.compile(r"(?:\s*(?:#.*|---[ \t]*)?\n)*\s*(?:-\s|\[)")
_TESTS_KEY = re.compile(r"^[{\s]*[\"']?(tests|evalcases|eval_cases)[\"']?\s*:", re.MULTILINE)


class _Configuration(FileModel):
    """The field of the file that has an effect; the others are AgentV's own."""

    eval_patterns: ListOf[path_patterns.Glob] = ()


@dataclass(frozen=True)
class FoundSuites:
    """The paths of suites, relative to the root, the errors of the configurations that name more
    suites, and warnings about files of other tools, which are no suites."""

    paths: tuple[str, ...] = ()
    errors: tuple[Diagnostic, ...] = ()
    warnings: tuple[Diagnostic, ...] = ()


def find_suites(
    root: Path,
    below: Path,
    patterns: Sequence[str],
    files: Sequence[str] | None,
    missing: Collection[str] = (),
) -> FoundSuites:
    """The suite files below a folder in alphabetical order.

    `files` are the paths that git knows (tracked, and untracked ones that are not ignored); None
    walks the tree. Tracked files that are `missing` from the disk are found by their names.
    Patterns are matched against a path from the root and from `below`; the last match decides, and
    `!pattern` excludes. If no pattern includes, the default patterns and the patterns of
    `.agentv/config.yaml` precede."""
    root, below = root.resolve(), below.resolve()
    listed = files if files is not None else _walk(root, below)
    paths = sorted(path for path in {*listed, *missing} if is_searched(path))
    chosen, diagnostics = list(patterns), DiagnosticCollector()
    if all(pattern.startswith("!") for pattern in chosen):
        chosen = [*DEFAULT_PATTERNS, *_configured(root, paths, diagnostics), *chosen]
    start = "" if below == root else below.relative_to(root).as_posix() + "/"
    inside = (
        path
        for path in paths
        if path.startswith(start)
        and path.lower().endswith(_SUITE_SUFFIXES)
        and not is_label_file(path)
    )
    candidates = [
        path
        for path in inside
        if is_chosen(path, path[len(start) :], chosen)
        and (_is_suite(root / path, root, patterns) or _is_hidden(path, missing))
    ]
    others = {
        path: warning
        for path in candidates
        if (warning := other_format(root, path) or _list_of_data(root, path))
    }
    suites = tuple(path for path in candidates if path not in others)
    return FoundSuites(suites, diagnostics.errors, tuple(others.values()))


def unnamed_suites(
    root: Path, below: Path, files: Sequence[str] | None, patterns: Sequence[str] = ()
) -> Mapping[str, str]:
    """The YAML files with tests below a folder that neither a default pattern matches nor a pattern
    of the user, each with a path that a default one matches; `files` as in `find_suites`."""
    excluded = [pattern for pattern in patterns if pattern.startswith("!")]
    every = find_suites(root, below, (*_ALL_YAML, *excluded), files).paths
    named = {*find_suites(root, below, (), files).paths}
    named |= {*find_suites(root, below, patterns, files).paths}
    return {
        path: PurePosixPath(path).with_suffix(".eval.yaml").as_posix()
        for path in every
        if path not in named
        and not is_chosen(path, path, DEFAULT_PATTERNS)  # a configuration excludes it
        and not PurePosixPath(path).name.startswith(_PROMPTFOO)
        and _has_tests(root / path, root, _TESTS_AT_TOP)
    }


def hidden_configurations(missing: Collection[str]) -> list[str]:
    """The files in `.agentv` folders that must be on disk, but are `missing`: without them, other
    suites are found, or suites get other targets."""
    names = tuple(f"/{FOLDER}/{name}.yaml" for name in _CONFIGURATIONS)
    return [path for path in sorted(missing) if f"/{path}".endswith(names)]


def _is_hidden(path: str, missing: Collection[str]) -> bool:
    """Whether a suite, or the rows of a `dataset.yaml`, must be on disk and is not."""
    rows = PurePosixPath(path).with_suffix(".jsonl").as_posix()
    return path in missing or (path.endswith(_DATASET) and rows in missing)


def _walk(root: Path, below: Path) -> Iterator[str]:
    for folder, names, files in os.walk(below):
        names[:] = [name for name in names if is_searched(name + "/x")]
        yield from ((Path(folder) / name).relative_to(root).as_posix() for name in files)
    # A configuration above the folder applies to it, too.
    for parent in below.parents:
        if parent.is_relative_to(root) and is_present(path := parent / FOLDER / CONFIG):
            yield path.relative_to(root).as_posix()


def list_files(root: Path) -> Iterator[str]:
    """The paths of the files of a folder outside of a repository."""
    return (str(path.relative_to(root)) for path in root.rglob("*") if path.is_file())


def is_searched(path: str, named: Collection[str] = (FOLDER,)) -> bool:
    """Whether suites are searched at a path: not below `node_modules`, and not below hidden folders
    apart from those that are `named`."""
    folders = PurePosixPath(path).parts[:-1]
    if (FOLDER, _RESULTS) in pairwise(folders):  # AgentV copies each test into its results
        return False
    return not any(
        part == "node_modules" or (part.startswith(".") and part not in named) for part in folders
    )


def _configured(
    root: Path, paths: Sequence[str], diagnostics: DiagnosticCollector
) -> Iterator[str]:
    suffix = f"{FOLDER}/{CONFIG}"
    for path in paths:
        # git still knows a file that was deleted
        if f"/{path}".endswith(f"/{suffix}") and is_present(root / path):
            patterns = _read_patterns(root / path, root, path, diagnostics)
            start = path.removesuffix(suffix)
            for pattern in patterns:
                is_excluded = pattern.startswith("!")
                bare = pattern[1:] if is_excluded else pattern.removeprefix("./")
                yield f"{'!' if is_excluded else ''}{start}{bare}"


def _read_patterns(
    file: Path, root: Path, path: str, diagnostics: DiagnosticCollector
) -> Sequence[str]:
    """The `eval_patterns` of one configuration; none, with the errors, if they are invalid."""
    patterns: Sequence[str] = ()
    try:
        document = read_settings_file(file, root, path)
        data = document.data
        if isinstance(data, dict):
            reader = FileReader(root, file.parent, document.positions, diagnostics)
            if "defaults" in data:
                reader.refuse_feature(document.positions.key(data, "defaults"), "`defaults`")
            if config := reader.validate(_Configuration, reader.only(data, ("eval_patterns",))):
                patterns = config.eval_patterns
        elif data is not None:
            problem = f"this file is {describe_value(data)}"
            diagnostics.error(document.location, problem, "write an object with `eval_patterns`")
    except Unreadable as error:
        diagnostics.unreadable(error)
    return patterns


def is_chosen(path: str, inside: str, patterns: Sequence[str]) -> bool:
    """Whether patterns choose a file, by its path from the root and from the searched folder."""
    chosen = False
    for pattern in patterns:
        bare = pattern.removeprefix("!")
        names = (path, inside)
        if pattern in DEFAULT_PATTERNS:  # `EVAL.yaml`, `eval.yaml`, `x.EVAL.yaml`
            names, bare = (path.lower(), inside.lower()), bare.lower()
        if any(path_patterns.matches(name, bare) for name in names):
            chosen = not pattern.startswith("!")
    return chosen


def _is_suite(file: Path, root: Path, patterns: Sequence[str]) -> bool:
    if not is_present(file) or (file.parent.name == FOLDER and file.stem in _CONFIGURATIONS):
        return False
    is_named = any(PurePosixPath(pattern).name == _DATASET for pattern in patterns)
    if file.name != _DATASET or is_named:
        return True
    if is_present(file.with_suffix(".jsonl")):
        return True
    return _has_tests(file, root) and not _LIST.match(_text(file, root) or "")


def _has_tests(file: Path, root: Path, key: re.Pattern[str] = _TESTS_KEY) -> bool:
    """Whether a YAML file has a key of tests; an invalid one must not be taken for no suite."""
    text = _text(file, root)
    return text is None or bool(key.search(text))


def _text(file: Path, root: Path) -> str | None:
    """The text of a file, empty if it is outside of the repository; None if it cannot be read."""
    if not file.resolve().is_relative_to(root):
        return ""
    try:
        return read_regular(file, MAX_BYTES).decode("utf-8", "replace")
    except OSError:
        return None


def _list_of_data(root: Path, path: str) -> Diagnostic | None:
    """The warning about a list that only a pattern of the user's own takes for a suite."""
    if is_chosen(path, path, DEFAULT_PATTERNS) or not path.endswith(YAML_SUFFIXES):
        return None
    if not _LIST.match(_text(root / path, root) or ""):
        return None
    advice = "name it in the `tests` of a suite, or write an object with `tests`"
    return Diagnostic(Location(path), "this is a list and no suite: it is not run", advice)
