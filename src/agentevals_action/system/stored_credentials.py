"""The credentials of the repositories of a checkout: in the configuration of git, where
`actions/checkout` stores them by default, and in files beside it."""

import logging
import os
import re
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from pathlib import Path

from agentevals_action.formatting import list_paths

log = logging.getLogger(__name__)

_CONFIGS = frozenset({"config", "config.worktree"})
#: Folders of the repositories of submodules that hold no configuration.
_WITHOUT_CONFIG = {"objects", "refs", "logs", "hooks", "info"}
#: What git keeps beside its configuration. Anything else may hold a credential: the store of a
#: helper, cookies, a file that the configuration includes.
_OF_GIT = re.compile(
    r"config(\.worktree)?|\w*HEAD|index|sharedindex\..*|packed-refs|shallow|description|branches"
    r"|objects|refs|reftable|logs|hooks|info|worktrees|modules|lfs|annex"
)
#: Settings that hold a credential or name a program that has it, with their section on the same
#: line and continued lines. `path` includes a file, which may hold credentials and may be one that
#: programs of the tests write.
_SETTING = re.compile(
    rb"^([ \t]*(?:\[[^\]\n]*\])?)[ \t]*"
    rb"(?:extraheader|helper|username|path|cookiefile|sslkey|\w*password\w*)[ \t]*="
    rb"(?:[^\\\n]|\\(?:\r?\n|.))*",
    re.IGNORECASE | re.MULTILINE,
)
#: The user and the password in an address, also in the name of a section (`url.ADDRESS.insteadOf`).
_USER_INFO = re.compile(rb"(https?://)[^/\s\"]+@", re.IGNORECASE)


def repositories(root: Path) -> Sequence[Path]:
    """The folders (`.git`) of the repositories in a checkout: its own, of submodules and of others
    (a second `actions/checkout` with `path`)."""
    git_folders = []
    for folder, folders, _ in os.walk(root):
        if ".git" in folders:
            folders.remove(".git")
            git_folders.append(Path(folder, ".git"))
            git_folders += _submodules(git_folders[-1])
    return git_folders


def _submodules(repository: Path) -> Iterator[Path]:
    for folder, folders, files in os.walk(repository / "modules"):
        folders[:] = [name for name in folders if name not in _WITHOUT_CONFIG]
        if not _CONFIGS.isdisjoint(files):
            yield Path(folder)


def find_unknown(folders: Sequence[Path]) -> Sequence[Path]:
    """What is in the folders of repositories and not git's own. OSError."""
    paths = (path for folder in folders for path in folder.iterdir())
    return [path for path in paths if not (_OF_GIT.fullmatch(path.name) or path.is_symlink())]


def warn_of_credentials(root: Path) -> None:
    """Logs which configuration files of a checkout without protection hold credentials."""
    try:
        _warn_about(_find(repositories(root)), root, "can")
    except OSError as error:
        log.warning("whether the checkout holds credentials is not known: %s", error)


@contextmanager
def hidden_credentials(root: Path, folders: Sequence[Path]) -> Iterator[None]:
    """Takes the credentials, and the lines that include other files, out of the configuration files
    of the repositories in a checkout; an address stays, without its user. At the end, when no
    program may run any more, the files are as before. OSError."""
    originals = _find(folders)
    _warn_about(originals, root, "cannot")
    try:
        for path, original in originals.items():
            path.write_bytes(_stripped(original))
        yield
    finally:
        for path, original in originals.items():
            # A link, or a second name, would give the credentials to another file.
            is_there = path.resolve() == path and path.is_file() and path.stat().st_nlink == 1
            content = path.read_bytes() if is_there else None
            if content == _stripped(original):
                path.write_bytes(original)
            elif content != original:
                log.warning("%s was changed during a run: its credentials are not restored", path)


def _warn_about(configs: Mapping[Path, bytes], root: Path, readers: str) -> None:
    if configs:
        log.warning(
            "credentials are in %s, which the programs of the tests %s read; "
            "set `persist-credentials: false` for actions/checkout",
            list_paths([os.path.relpath(path, root) for path in configs]),
            readers,
        )


def _find(folders: Sequence[Path]) -> Mapping[Path, bytes]:
    """The configuration files with credentials, and their contents."""
    paths = [folder / name for folder in folders for name in sorted(_CONFIGS)]
    contents = {path: path.read_bytes() for path in paths if path.is_file()}
    return {path: text for path, text in contents.items() if _stripped(text) != text}


def _stripped(config: bytes) -> bytes:
    return _USER_INFO.sub(rb"\1", _SETTING.sub(rb"\1", config))
