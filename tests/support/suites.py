"""Suites in temporary repositories: written from texts, read as the program reads them."""

from collections.abc import Mapping
from pathlib import Path
from typing import Any

from agentevals_action.model.suite import BrokenSuite, Suite, Test
from agentevals_action.suites.load import load_suite
from agentevals_action.suites.target_use import Catalog

#: Changes of files by their paths: the new text, None for a file that is deleted, or texts with those
#: that replace them.
Changes = Mapping[str, str | Mapping[str, str] | None]

TARGETS = """\
targets:
  - {name: default, provider: cli, command: [cat], judge_target: judge}
  - {name: judge, provider: mock, response: ok}
"""


def write(root: Path, files: Mapping[str, str | bytes]) -> Path:
    """Writes files below a folder; the folder again."""
    for name, content in files.items():
        path = root / name
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_bytes(content if isinstance(content, bytes) else content.encode())
    return root


def change(files: Mapping[str, str], changes: Changes) -> dict[str, str]:
    """The files after changes; each text that is replaced is there once."""
    after = dict(files)
    for path, new in changes.items():
        if new is None:
            del after[path]
        elif isinstance(new, str):
            after[path] = new
        else:
            for old, text in new.items():
                assert after[path].count(old) == 1, old
                after[path] = after[path].replace(old, text)
    return after


def load(root: Path, path: str = "EVAL.yaml", **changes: Any) -> Suite | BrokenSuite:
    """Reads the suite at `path`; `changes` are fields of the catalog."""
    return load_suite(root / path, root, Catalog(**changes))


def load_valid(root: Path, path: str = "EVAL.yaml", **changes: object) -> Suite:
    """The suite at `path`, which must be valid."""
    suite = load(root, path, **changes)
    assert isinstance(suite, Suite), "\n".join(str(diagnostic) for diagnostic in suite.errors)
    return suite


def errors(root: Path, path: str = "EVAL.yaml", **changes: object) -> list[str]:
    """The errors of the suite at `path`, which must be invalid."""
    suite = load(root, path, **changes)
    assert isinstance(suite, BrokenSuite), "the suite is valid"
    assert suite.errors
    return [str(diagnostic) for diagnostic in suite.errors]


def only_test(root: Path, path: str = "EVAL.yaml", **changes: object) -> Test:
    """The one test of the suite at `path`."""
    (test,) = load_valid(root, path, **changes).tests
    return test
