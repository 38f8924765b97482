"""The credentials in the configuration of the repositories of a checkout, which `actions/checkout`
stores there by default."""

import logging
import os
import re
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from pathlib import Path

from agentevals_action.formatting import list_paths

log = logging.getLogger(__name__)

_CONFIGS = ("config", "config.worktree")
#: Folders of the repositories of submodules that hold no configuration.
_WITHOUT_CONFIG = {"objects", "refs", "logs", "hooks", "info"}
#: Settings that hold a credential or name a program that has it, with their section on the same
#: line and continued lines. `path` includes a file, which may hold credentials and may be one that
#: programs of the tests write.
_SETTING = re.compile(
    rb"^([ \t]*(?:\[[^\]\n]*\])?)[ \t]*(?:extraheader|helper|username|path|\w*password\w*)[ \t]*="
    rb"(?:[^\\\n]|\\(?:\r?\n|.))*",
    re.IGNORECASE | re.MULTILINE,
)
#: The user and the password in an address, also in the name of a section (`url.ADDRESS.insteadOf`).
_USER_INFO = re.compile(rb"(https?://)[^/\s\"]+@", re.IGNORECASE)


def warn_of_credentials(root: Path) -> None:
    """Logs which configuration files of a checkout without protection hold credentials."""
    try:
        _warn_of(_find(root), root, "can")
    except OSError as error:
        log.warning("whether the checkout holds credentials is not known: %s", error)


@contextmanager
def hidden_credentials(root: Path) -> Iterator[None]:
    """Takes the credentials, and the lines that include other files, out of the configuration files
    of git in a checkout; an address stays, without its user. At the end, when no program may run
    any more, the files are as before. OSError."""
    originals = _find(root)
    _warn_of(originals, root, "cannot")
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


def _warn_of(configs: Mapping[Path, bytes], root: Path, readers: str) -> None:
    if configs:
        log.warning(
            "credentials are in %s, which the programs of the tests %s read; "
            "set `persist-credentials: false` for actions/checkout",
            list_paths([os.path.relpath(path, root) for path in configs]),
            readers,
        )


def _find(root: Path) -> Mapping[Path, bytes]:
    """The configuration files with credentials, and their contents: of the repository, of
    submodules and of other repositories in the checkout (a second `actions/checkout` with
    `path`)."""
    found = {}
    for folder, folders, _ in os.walk(root):
        if ".git" in folders:
            folders.remove(".git")
            for path in _configs_of(Path(folder, ".git")):
                content = path.read_bytes()
                if _stripped(content) != content:
                    found[path] = content
    return found


def _configs_of(metadata: Path) -> Iterator[Path]:
    yield from (path for name in _CONFIGS if (path := metadata / name).is_file())
    for folder, folders, files in os.walk(metadata / "modules"):
        folders[:] = [name for name in folders if name not in _WITHOUT_CONFIG]
        yield from (Path(folder, name) for name in files if name in _CONFIGS)


def _stripped(config: bytes) -> bytes:
    return _USER_INFO.sub(rb"\1", _SETTING.sub(rb"\1", config))
