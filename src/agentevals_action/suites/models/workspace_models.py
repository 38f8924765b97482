"""The models of workspaces in a suite: templates, repositories and hooks."""

import re
from pathlib import Path, PurePosixPath
from typing import Annotated, Any, Literal
from urllib.parse import urlsplit

from pydantic import (
    AfterValidator,
    Field,
    PlainValidator,
    ValidationInfo,
    WithJsonSchema,
    field_validator,
    model_validator,
)

from agentevals_action.formatting import cut
from agentevals_action.model.suite import Reset
from agentevals_action.model.validation.file_model import (
    FileModel,
    ListOf,
    NonEmpty,
    errors_at,
    expected,
)
from agentevals_action.suites.models.messages import folder_of
from agentevals_action.system.files.paths import PREFIXES, Folder

_ON_GITHUB = re.compile(r"[A-Za-z0-9_.-]+/[A-Za-z0-9_.-]+")
_BY_SSH = re.compile(r"[A-Za-z0-9_.-]+@[A-Za-z0-9_.-]+:[^-\s][^\s]*")
_SCHEMES = ("https", "http", "ssh")
_TEXT = WithJsonSchema({"type": "string", "minLength": 1})

_Command = (
    Annotated[str, Field(min_length=1, pattern=r"\S")] | Annotated[ListOf[str], Field(min_length=1)]
)


def _text(value: Any) -> str:
    if not isinstance(value, str):
        raise expected("a text")
    if not value:
        raise expected("a text that is not empty")
    return value


def _read_folder(value: Any, info: ValidationInfo) -> Path:
    try:
        return folder_of(info).resolve(_text(value))
    except ValueError as error:
        raise ValueError(f"{error}; name a folder of the repository") from None


def _read_template(value: Any, info: ValidationInfo) -> Path:
    advice = "name a folder of the repository, from the folder of this file"
    folder = folder_of(info)
    try:
        path = folder.resolve(_text(value))
    except ValueError as error:
        raise ValueError(f"{error}; {advice}") from None
    if not path.is_dir():
        raise ValueError(
            f"there is no folder {value!r} (looked for {folder.relative(path)}); {advice}"
        )
    return path


class Hook(FileModel):
    """A command around tests."""

    command: _Command | None = Field(
        default=None,
        description="The command: a list of words, or one string, which `sh` runs. JSON is on its "
        "input.",
    )
    cwd: Annotated[Path, PlainValidator(_read_folder), _TEXT] | None = Field(
        default=None,
        description="The folder to run it in, relative to the file that declares it (the default); "
        "a leading / is the repository root.",
    )
    timeout_ms: Annotated[float, Field(gt=0, le=3_600_000)] | None = Field(
        default=None,
        description="Its time limit in milliseconds: 60,000 before tests, 30,000 after them.",
    )

    @field_validator("command")
    @classmethod
    def _can_be_run(cls, command: str | tuple[str, ...] | None) -> str | tuple[str, ...] | None:
        if isinstance(command, tuple) and not command[0].strip():
            raise ValueError("the command names no program; write it as its first word")
        if command and any("\0" in word for word in command):
            raise ValueError("the command contains a NUL character; remove it")
        return command


class ResettingHook(Hook):
    """A command around each test, and the state to which the folder is reset."""

    reset: Reset | None = Field(
        default=None,
        description="Restores the folder to its state before the tests: `fast` keeps what git "
        "ignores, `strict` keeps nothing.",
    )


class Hooks(FileModel):
    """Commands around tests."""

    enabled: bool | None = Field(
        default=None, description="`false` runs no hook and resets nothing."
    )
    before_all: Hook | None = Field(
        default=None, description="Runs once, after the folder was made."
    )
    before_each: ResettingHook | None = Field(default=None, description="Runs before each test.")
    after_each: ResettingHook | None = Field(
        default=None,
        description="Runs after each test, when it is scored; the folder is reset after it.",
    )
    after_all: Hook | None = Field(
        default=None, description="Runs once, before the folder is removed."
    )


def _read_path(text: str) -> str:
    """A path below the workspace without `.` in it."""
    path, advice = PurePosixPath(text), "write a folder below the workspace, as `./app`"
    if path.is_absolute() or ".." in path.parts:
        raise ValueError(f"{text!r} leaves the folder; {advice}")
    if any(part.lower() == ".git" for part in path.parts) or text.startswith("-") or "\0" in text:
        raise ValueError(f"{text!r} is not a usable path; {advice}")
    return path.as_posix()


def _read_revision(text: str) -> str:
    if text.startswith("-") or any(sign in text for sign in "\0 :"):
        raise ValueError("it is not a valid revision; write a branch, a tag or a commit")
    return text


def _read_source(value: Any, info: ValidationInfo) -> str | Path:
    """A URL, or the absolute folder where one of this repository is named.

    `owner/name` is GitHub's. A folder of this repository begins with `./`, `../`, `/` or
    `file://`."""
    text = _text(value).strip()
    try:
        if text in (".", "..") or text.startswith(PREFIXES):
            return _local_source(text, folder_of(info))
        return _remote_source(text)
    except ValueError as error:
        advice = (
            "write `owner/name`, a URL that begins with https://, or a folder of this repository "
            "that begins with ./ or /"
        )
        raise ValueError(f"{error}; {advice}") from None


def _local_source(text: str, folder: Folder) -> Path:
    """The folder of a repository below the root of this one."""
    path = folder.resolve(text)
    if not path.is_dir():
        raise ValueError(f"there is no folder {cut(text, 100)!r}")
    return path


def _remote_source(text: str) -> str:
    if _ON_GITHUB.fullmatch(text):
        return f"https://github.com/{text.removesuffix('.git')}.git"
    if _BY_SSH.fullmatch(text):
        return text
    try:
        url = urlsplit(text)
        is_usable = (
            url.scheme in _SCHEMES
            and not (url.hostname or "-").startswith("-")
            and not any(character.isspace() or character == "\0" for character in text)
        )
    except ValueError:
        is_usable = False
    if not is_usable:
        raise ValueError(f"{cut(text, 100)!r} does not name a repository")
    if url.password:
        raise ValueError("there is a password in the URL, which everybody can read here")
    return text


class Repository(FileModel):
    """A git repository in the folder."""

    path: Annotated[NonEmpty, AfterValidator(_read_path)] = Field(
        description="Where it is checked out, relative to the workspace."
    )
    repo: Annotated[str | Path, PlainValidator(_read_source), _TEXT] = Field(
        description="`owner/name` on GitHub, a URL, or a folder of this repository (`./…`, `/…`)."
    )
    commit: Annotated[NonEmpty, AfterValidator(_read_revision)] | None = Field(
        default=None,
        description="The branch, tag or commit to check out; the default branch when missing.",
    )


class Workspace(FileModel):
    """The folder that the agent works in."""

    template: Annotated[Path, PlainValidator(_read_template), _TEXT] | None = Field(
        default=None,
        description="A folder whose content it begins with, relative to the file that names it.",
    )
    isolation: Literal["shared", "per_test", "per_case"] | None = Field(
        default=None,
        description="`shared`: one folder for the tests of the suite, one after another; "
        "`per_test`: a fresh one for each.",
    )
    scope: Literal["suite", "attempt"] | None = Field(
        default=None, description="The same in other words: `suite` is shared, `attempt` per test."
    )
    mode: str | None = Field(
        default=None, description="AgentV: has no effect, because the folder is always a fresh one."
    )
    repos: ListOf[Repository] | None = Field(
        default=None, description="Repositories that are checked out in it."
    )
    hooks: Hooks | None = Field(default=None, description="Commands around tests.")

    @model_validator(mode="after")
    def _is_consistent(self) -> "Workspace":
        if (
            self.isolation
            and self.scope
            and (self.isolation != "shared") != (self.scope == "attempt")
        ):
            problem = "`isolation` is the same field and differs; keep one of them"
            raise errors_at({("scope",): problem})
        taken: set[str] = set()
        for index, repository in enumerate(self.repos or ()):
            if repository.path in taken:
                problem = f"the path {repository.path!r} is taken; give each repository its own"
                raise errors_at({("repos", index, "path"): problem})
            taken.add(repository.path)
        return self

    @property
    def per_test(self) -> bool | None:
        """Whether each test has a fresh folder; None when the workspace does not specify it."""
        if self.isolation is not None:
            return self.isolation != "shared"
        return None if self.scope is None else self.scope == "attempt"
