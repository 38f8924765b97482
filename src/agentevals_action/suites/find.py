"""Which files of a repository are suites."""

import os
import re
from collections.abc import Iterator, Sequence
from pathlib import Path, PurePosixPath

from agentevals_action.errors import InvalidInput
from agentevals_action.model import path_patterns
from agentevals_action.suites import config, dialects
from agentevals_action.suites.files.diagnostics import Findings, Unreadable
from agentevals_action.suites.files.positions import Map
from agentevals_action.suites.files.yaml_reader import MAX_BYTES, read_yaml_file
from agentevals_action.suites.sources import ROW_SUFFIXES, YAML_SUFFIXES

#: Suites by their names; `dataset.yaml` only when it has tests, or a `dataset.jsonl` beside it.
DEFAULT_PATTERNS = (
    "**/EVAL.yaml",
    "**/EVAL.yml",
    "**/*.eval.yaml",
    "**/*.eval.yml",
    "**/dataset.yaml",
)

_DATASET = "dataset.yaml"
_SUITE_SUFFIXES = (*YAML_SUFFIXES, *ROW_SUFFIXES)
_TESTS_LINE = re.compile(r"^[\"']?(tests|evalcases|eval_cases)[\"']?\s*:", re.MULTILINE)


def find_suites(
    root: Path, below: Path, patterns: Sequence[str], files: Sequence[str] | None
) -> tuple[str, ...]:
    """The suite files below a folder, relative to the root, in alphabetical order.

    `files` are the paths that git knows (tracked, and untracked ones that are not ignored); None
    walks the tree. Patterns are matched against a path from the root and from `below`, the last
    that matches decides, `!pattern` takes out; without any that takes in, the default ones and
    those of `.agentv/config.yaml` stand in front. InvalidInput when such a configuration cannot be
    read."""
    root, below = root.resolve(), below.resolve()
    known = files if files is not None else _walk(root, below)
    paths = sorted(path for path in set(known) if _is_searched(path))
    chosen = list(patterns)
    if not any(not pattern.startswith("!") for pattern in chosen):
        chosen = [*DEFAULT_PATTERNS, *_configured(root, paths), *chosen]
    start = "" if below == root else below.relative_to(root).as_posix() + "/"
    inside = (path for path in paths if path.startswith(start) and path.endswith(_SUITE_SUFFIXES))
    return tuple(
        path
        for path in inside
        if _chosen(path, path[len(start) :], chosen) and _is_suite(root / path, root, patterns)
    )


def _walk(root: Path, below: Path) -> Iterator[str]:
    for folder, names, files in os.walk(below):
        names[:] = [name for name in names if _is_searched(name + "/x")]
        yield from ((Path(folder) / name).relative_to(root).as_posix() for name in files)
    # A configuration above the folder holds for it too.
    for parent in below.parents:
        if parent.is_relative_to(root) and (path := parent / config.FOLDER / config.NAME).is_file():
            yield path.relative_to(root).as_posix()


def _is_searched(path: str) -> bool:
    folders = PurePosixPath(path).parts[:-1]
    return not any(
        part == "node_modules" or (part.startswith(".") and part != config.FOLDER)
        for part in folders
    )


def _configured(root: Path, paths: Sequence[str]) -> Iterator[str]:
    suffix = f"{config.FOLDER}/{config.NAME}"
    for path in paths:
        if path != suffix and not path.endswith(f"/{suffix}"):
            continue
        if not (root / path).is_file():
            continue  # git still knows a file that was deleted
        findings = Findings()
        read = config.read_config(root / path, root, findings)
        if findings.errors:
            raise InvalidInput(
                f"{path} cannot be used to find suites",
                "mend it",
                [str(diagnostic) for diagnostic in findings.errors],
            )
        start = path.removesuffix(suffix)
        for pattern in read.eval_patterns:
            yield (
                f"!{start}{pattern[1:]}"
                if pattern.startswith("!")
                else start + pattern.removeprefix("./")
            )


def _chosen(path: str, inside: str, patterns: Sequence[str]) -> bool:
    chosen = False
    for pattern in patterns:
        bare = pattern.removeprefix("!")
        if path_patterns.matches(path, bare) or path_patterns.matches(inside, bare):
            chosen = not pattern.startswith("!")
    return chosen


def _is_suite(file: Path, root: Path, patterns: Sequence[str]) -> bool:
    if not file.is_file() or (
        file.parent.name == config.FOLDER and file.stem in ("config", "targets")
    ):
        return False
    if file.name != _DATASET or any(
        PurePosixPath(pattern).name == _DATASET for pattern in patterns
    ):
        return True
    return file.with_suffix(".jsonl").is_file() or _has_tests(file, root)


def _has_tests(file: Path, root: Path) -> bool:
    if not file.resolve().is_relative_to(root):
        return False
    try:
        read = read_yaml_file(file, file.name)
    except Unreadable:
        # A broken suite must not look like no suite.
        with file.open("rb") as opened:
            return bool(_TESTS_LINE.search(opened.read(MAX_BYTES).decode("utf-8", "replace")))
    return isinstance(read, Map) and any(
        dialects.SUITE.canonical.get(key) == "tests" for key in read
    )
