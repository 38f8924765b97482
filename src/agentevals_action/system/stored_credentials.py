"""The credentials in the configuration of the repositories of a checkout, which `actions/checkout`
stores there by default."""

import os
import re
from collections.abc import Iterator
from pathlib import Path

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


def find_configs(root: Path) -> Iterator[Path]:
    """The configuration files of git in a checkout: of its repository, of submodules and of other
    repositories in it (a second `actions/checkout` with `path`)."""
    for folder, folders, _ in os.walk(root):
        if ".git" in folders:
            folders.remove(".git")
            yield from _configs_of(Path(folder, ".git"))


def _configs_of(metadata: Path) -> Iterator[Path]:
    yield from (path for name in _CONFIGS if (path := metadata / name).is_file())
    for folder, folders, files in os.walk(metadata / "modules"):
        folders[:] = [name for name in folders if name not in _WITHOUT_CONFIG]
        yield from (Path(folder, name) for name in files if name in _CONFIGS)


def without_credentials(config: bytes) -> bytes:
    """The content of a configuration file without the settings that hold credentials or include
    other files; an address stays, without its user."""
    return _USER_INFO.sub(rb"\1", _SETTING.sub(rb"\1", config))
