"""Suites in temporary repositories: written from texts, read with the real evaluator types."""

from collections.abc import Mapping, Sequence
from dataclasses import replace
from pathlib import Path
from typing import Annotated, Any, ClassVar

from pydantic import Field

from agentevals_action.model.suite import BrokenSuite, Suite, Test
from agentevals_action.model.validation.file_model import ListOf
from agentevals_action.suites.catalog import Catalog
from agentevals_action.suites.load import load_suite
from agentevals_action.system.files.paths import Folder
from agentevals_action.targets import base

TARGETS = """\
targets:
  - {name: default, provider: cli, command: [cat], judge_target: judge}
  - {name: judge, provider: mock, responses: []}
"""


class CliTarget(base.ProviderOptions):
    """A command, with the fields that suites read."""

    provider: ClassVar[str] = "cli"

    command: Annotated[str | ListOf[str], Field(description="The command.")]
    timeout_seconds: Annotated[
        Annotated[float, Field(gt=0)] | None, Field(description="Seconds.")
    ] = None

    def connect(self, context: base.ProviderContext) -> base.Provider:
        raise NotImplementedError

    def files(self, folder: Folder) -> Sequence[str]:
        words = self.command.split() if isinstance(self.command, str) else self.command
        return tuple(
            folder.relative(path) for word in words if (path := folder.resolve(word)).is_file()
        )


class MockTarget(base.ProviderOptions):
    """A model that answers from a list, with the fields that suites read."""

    provider: ClassVar[str] = "mock"
    is_model: ClassVar[bool] = True

    responses: Annotated[ListOf[dict[str, str]], Field(description="The answers.")]

    def connect(self, context: base.ProviderContext) -> base.Provider:
        raise NotImplementedError

    def variables(self) -> Sequence[str]:
        return ("MOCK_KEY",)


CATALOG = Catalog(providers={"cli": CliTarget, "mock": MockTarget})


def write(root: Path, files: Mapping[str, str | bytes]) -> Path:
    """Writes files below a folder; the folder again."""
    for name, content in files.items():
        path = root / name
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_bytes(content if isinstance(content, bytes) else content.encode())
    return root


def load(root: Path, path: str = "EVAL.yaml", **changes: Any) -> Suite | BrokenSuite:
    """Reads the suite at `path`; `changes` are fields of the catalog."""
    return load_suite(root / path, root, replace(CATALOG, targets_files={}, **changes))


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
