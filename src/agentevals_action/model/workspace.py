"""The workspace of a suite or a test: template, repositories and hooks."""

import re
from collections.abc import Mapping
from pathlib import Path, PurePosixPath
from typing import Annotated, Any, Literal
from urllib.parse import urlsplit

from pydantic import (
    AfterValidator,
    Field,
    PlainValidator,
    ValidationInfo,
    field_validator,
)

from agentevals_action.formatting import cut
from agentevals_action.model.diagnostic import Location, NamedFile
from agentevals_action.model.skill import SKILL_FILE, Skill
from agentevals_action.validation.file_model import (
    Computed,
    FileModel,
    ListOf,
    NonEmpty,
    errors_at,
    expected,
    get_folder,
    spelled,
)

Reset = Literal["none", "fast", "strict"]
HookName = Literal["before_all", "before_each", "after_each", "after_all"]

#: Default time limits of hooks in milliseconds, as in AgentV.
_TIMEOUTS_MS: Mapping[HookName, float] = {
    "before_all": 60_000,
    "before_each": 60_000,
    "after_each": 30_000,
    "after_all": 30_000,
}
_ON_GITHUB = re.compile(r"[A-Za-z0-9_.-]+/[A-Za-z0-9_.-]+")
_BY_SSH = re.compile(r"[A-Za-z0-9_.-]+@[A-Za-z0-9_.-]+:[^-\s][^\s]*")
_SCHEMES = ("https", "http", "ssh")
#: A text with such a prefix is a folder of this repository.
_PREFIXES = ("./", "../", "/", "file://")
_FOLDER_ADVICE = "name a folder of the repository, from the folder of this file"

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
    text = _text(value)
    try:
        return get_folder(info).resolve(text)
    except ValueError as error:
        raise ValueError(f"{error}; {_FOLDER_ADVICE}") from None


def _read_template(value: Any, info: ValidationInfo) -> Path:
    path = _read_folder(value, info)
    if not path.is_dir():
        looked_for = get_folder(info).relative(path)
        problem = f"there is no folder {value!r} (looked for {looked_for})"
        raise ValueError(f"{problem}; {_FOLDER_ADVICE}")
    get_folder(info).tree(path)
    return path


def _read_skill(value: Any, info: ValidationInfo) -> Path:
    path = _read_folder(value, info)
    if not (path / SKILL_FILE).is_file():
        looked_for = get_folder(info).relative(path / SKILL_FILE)
        problem = f"there is no skill {value!r} (looked for {looked_for})"
        raise ValueError(
            f"{problem}; name a folder with {SKILL_FILE}, from the folder of this file"
        )
    return path


_Folder = Annotated[Path, PlainValidator(_read_folder, json_schema_input_type=NonEmpty)]
_SkillFolder = Annotated[Path, PlainValidator(_read_skill, json_schema_input_type=NonEmpty)]
_Template = Annotated[Path, PlainValidator(_read_template, json_schema_input_type=NonEmpty)]


class Hook(FileModel):
    """A command of a workspace's life: words, or a script of `sh`; or only the state to which the
    folder is reset.

    `location` and `home` are of the file that declares the command, `files` are the files of the
    repository that its words name."""

    noun = "hook"

    command: _Command = spelled(
        "command",
        "script",
        default="",
        description="The command: a list of words, or one string, which `sh` runs. JSON is on its "
        "input.",
    )
    folder: _Folder | None = spelled(
        "cwd",
        default=None,
        description="The folder to run it in, relative to the file that declares it (the default); "
        "a leading / is the repository root.",
    )
    timeout_ms: Annotated[float, Field(gt=0, le=3_600_000)] | None = Field(
        default=None,
        description="Its time limit in milliseconds: 60,000 before tests, 30,000 after them.",
    )

    location: Computed[Location] = Location("")
    home: Computed[Path] = Path()
    files: Computed[tuple[NamedFile, ...]] = ()

    @field_validator("command")
    @classmethod
    def _can_be_run(cls, command: str | tuple[str, ...]) -> str | tuple[str, ...]:
        if isinstance(command, tuple) and not command[0].strip():
            raise ValueError("the command names no program; write it as its first word")
        if any("\0" in word for word in command):
            raise ValueError("the command contains a NUL character; remove it")
        return command

    @property
    def cwd(self) -> Path:
        """The absolute folder that it runs in."""
        return self.folder or self.home


class ResettingHook(Hook):
    """A command around each test, and the state to which the folder is reset."""

    reset: Reset | None = Field(
        default=None,
        description="Restores the folder to its state before the tests: `fast` keeps what git "
        "ignores, `strict` keeps nothing.",
    )


class Hooks(FileModel):
    """Commands around tests."""

    noun = "`hooks`"

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
    """A URL, or the absolute path of a folder of this repository.

    `owner/name` is GitHub's. A folder of this repository begins with `./`, `../`, `/` or
    `file://`."""
    text = _text(value).strip()
    try:
        if text in (".", "..") or text.startswith(_PREFIXES):
            path = get_folder(info).resolve(text)
            if path.is_dir():
                return path
            raise ValueError(f"there is no folder {cut(text, 100)!r}")
        return _remote_source(text)
    except ValueError as error:
        advice = (
            "write `owner/name`, a URL that begins with https://, or a folder of this repository "
            "that begins with ./ or /"
        )
        raise ValueError(f"{error}; {advice}") from None


def _remote_source(text: str) -> str:
    if _ON_GITHUB.fullmatch(text):
        return f"https://github.com/{text.removesuffix('.git')}.git"
    if _BY_SSH.fullmatch(text):
        return text
    url = urlsplit(text)
    has_host = url.hostname and not url.hostname.startswith("-")
    if url.scheme not in _SCHEMES or not has_host or not text.isprintable() or " " in text:
        raise ValueError(f"{cut(text, 100)!r} does not name a repository")
    if url.password:
        raise ValueError("there is a password in the URL, which everybody can read here")
    return text


_Source = Annotated[str | Path, PlainValidator(_read_source, json_schema_input_type=NonEmpty)]


class Repo(FileModel):
    """A git repository that a workspace contains at `path` (relative to it): `source` is a URL, or
    absolute where the suite names a folder of the repository; `commit` a revision."""

    noun = "repository"

    path: Annotated[NonEmpty, AfterValidator(_read_path)] = Field(
        description="Where it is checked out, relative to the workspace."
    )
    source: _Source = spelled(
        "repo",
        description="`owner/name` on GitHub, a URL, or a folder of this repository (`./…`, `/…`).",
    )
    commit: Annotated[NonEmpty, AfterValidator(_read_revision)] | None = spelled(
        "commit",
        "base_commit",
        default=None,
        description="The branch, tag or commit to check out; the default branch when missing.",
    )


class Workspace(FileModel):
    """The folder that an agent works in, effective for one test (its own fields over the suite's).

    All tests share the suite's folder, one after another in suite order; a test with workspace
    fields (`own`) has its own folder. `template` is absolute. `files` are those of the template,
    of repositories in this repository, and of all hooks. `installed` are its `skills`."""

    noun = "workspace"

    template: _Template | None = Field(
        default=None,
        description="A folder whose content it begins with, relative to the file that names it.",
    )
    isolation: Literal["shared", "suite", "per_test", "per_case", "attempt"] | None = spelled(
        "isolation",
        "scope",
        default=None,
        description="`shared` or `suite`: one folder for the tests of the suite, one after "
        "another; `per_test`, `per_case` or `attempt`: a fresh one for each.",
    )
    mode: str | None = Field(
        default=None, description="AgentV: has no effect, because the folder is always a fresh one."
    )
    repos: ListOf[Repo] = Field(default=(), description="Repositories that are checked out in it.")
    skills: ListOf[_SkillFolder] = Field(
        default=(),
        description="Folders with a SKILL.md, which are installed where the agent finds skills. "
        "They are a part of the agent: a change of them is compared. Each sample has a fresh "
        "folder.",
    )
    hooks: Hooks = Field(default=Hooks(), description="Commands around tests.")

    installed: Computed[tuple[Skill, ...]] = ()
    own: Computed[bool] = False
    files: Computed[tuple[NamedFile, ...]] = ()

    @field_validator("repos")
    @classmethod
    def _have_own_paths(cls, repos: tuple[Repo, ...]) -> tuple[Repo, ...]:
        taken: set[str] = set()
        for index, repository in enumerate(repos):
            if repository.path in taken:
                problem = f"the path {repository.path!r} is taken; give each repository its own"
                raise errors_at({(index, "path"): problem})
            taken.add(repository.path)
        return repos

    @property
    def per_test(self) -> bool:
        """Whether each sample has a fresh folder."""
        return bool(self.skills) or self.isolation in ("per_test", "per_case", "attempt")

    def hook(self, name: HookName) -> Hook | None:
        """The command of this name, unless hooks are not enabled."""
        hook: Hook | None = getattr(self.hooks, name) if self.hooks.enabled is not False else None
        return hook if hook and hook.command else None

    def timeout_seconds(self, name: HookName) -> float:
        """The time limit of the command of this name."""
        hook = self.hook(name)
        timeout_ms = hook.timeout_ms if hook else None
        return (timeout_ms or _TIMEOUTS_MS[name]) / 1000

    @property
    def reset(self) -> Reset:
        """What happens to the folder after each test."""
        return self._reset(self.hooks.after_each)

    @property
    def reset_before(self) -> Reset:
        """What happens to the folder before each test."""
        return self._reset(self.hooks.before_each)

    def _reset(self, hook: ResettingHook | None) -> Reset:
        is_enabled = self.hooks.enabled is not False
        return (hook.reset or "none") if hook and is_enabled else "none"
