"""Which repository a workspace means by `repo`, and where in the workspace it belongs."""

import re
from collections.abc import Iterable
from pathlib import Path, PurePosixPath
from urllib.parse import urlsplit

from agentevals_action.model.suite import NamedFile
from agentevals_action.system.paths import PREFIXES, Folder
from agentevals_action.system.tree_files import walk

_ON_GITHUB = re.compile(r"[A-Za-z0-9_.-]+/[A-Za-z0-9_.-]+")
_BY_SSH = re.compile(r"[A-Za-z0-9_.-]+@[A-Za-z0-9_.-]+:[^-\s][^\s]*")
_SCHEMES = ("https", "http", "ssh")
_ROLE = "workspace repository"


def read_source(text: str, folder: Folder) -> str | Path:
    """A URL, or the absolute folder where one of this repository is named; ValueError when it is
    neither.

    `owner/name` is GitHub's. A folder begins with `./`, `../` or `/`; `file://` is a folder of this
    repository if there is one, and a URL like any other if not."""
    text = text.strip()
    if text in (".", "..") or text.startswith(PREFIXES):
        return _local(text, folder)
    if _ON_GITHUB.fullmatch(text):
        return f"https://github.com/{text.removesuffix('.git')}.git"
    if _BY_SSH.fullmatch(text):
        return text
    try:
        url = urlsplit(text)
        usable = (
            url.scheme in _SCHEMES
            and not (url.hostname or "-").startswith("-")
            and "\0" not in text
        )
    except ValueError:
        usable = False
    if not usable or any(character.isspace() for character in text):
        raise ValueError(f"{text[:100]!r} names no repository")
    if url.password:
        raise ValueError("there is a password in the URL, which everybody can read here")
    return text


def _local(text: str, folder: Folder) -> str | Path:
    url = text.startswith("file://")
    try:
        path = folder.resolve(text)
        if path.is_dir():
            return path
    except ValueError:
        if not url:
            raise
    if url and text.removeprefix("file://").startswith("/"):
        return text
    raise ValueError(f"there is no folder {text[:100]!r}")


def read_place(text: str) -> str:
    """A path below a folder without `.` in it; ValueError when it is absolute, or leads out, or
    into git's own folder."""
    path = PurePosixPath(text)
    if path.is_absolute() or ".." in path.parts:
        raise ValueError(f"{text!r} leaves the folder")
    if any(part.lower() == ".git" for part in path.parts) or text.startswith("-") or "\0" in text:
        raise ValueError(f"{text!r} is no usable path")
    return path.as_posix()


def source_files(source: str | Path, folder: Folder) -> Iterable[NamedFile]:
    """The files that a repository in this one consists of (a bare one that is committed), or the
    folder itself (a submodule)."""
    if isinstance(source, str) or source == folder.root:
        return
    if (source / "HEAD").is_file() and (source / "objects").is_dir():
        for entry in walk(source):
            if entry.is_file:
                yield NamedFile(folder.relative(source / entry.path), _ROLE)
    else:
        yield NamedFile(folder.relative(source), _ROLE)
