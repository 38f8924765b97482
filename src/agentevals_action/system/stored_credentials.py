"""The credentials in the configuration files of a repository, which `actions/checkout` stores there
by default."""

import hashlib
import os
import re
import stat
from collections.abc import Iterator
from pathlib import Path

from agentevals_action.system import process

_SECONDS = 30.0
_HEADER = re.compile(r"http\.(?:.*\.)?extraheader", re.DOTALL)
_INCLUDE = re.compile(r"include(?:if\..*)?\.path", re.DOTALL)
_CREDENTIAL = re.compile(r"credential\..*", re.DOTALL)
#: An address with a user or a password, in the name of a setting (`url.ADDRESS.insteadOf`) or in
#: its value.
_ADDRESS = re.compile(r"(https?://)[^/\s@]+@", re.IGNORECASE)
#: Folders of the repositories of submodules that hold no configuration.
_WITHOUT_CONFIG = {"objects", "refs", "logs", "hooks", "info"}


def config_files(metadata: Path) -> Iterator[Path]:
    """The configuration files of the repository with this `.git` folder, and of its submodules."""
    yield from (
        path for name in ("config", "config.worktree") if (path := metadata / name).exists()
    )
    for folder, folders, files in os.walk(metadata / "modules"):
        folders[:] = [name for name in folders if name not in _WITHOUT_CONFIG]
        yield from (Path(folder, name) for name in files if name == "config")


def find_credentials(config: Path, environment: dict[str, str]) -> list[tuple[str, str]]:
    """The settings, as name and value, that hold a credential or lead to a file outside of the
    folder of the configuration, which may hold one."""
    found = []
    for entry in (
        _git(config, environment, "--list", "--null").decode("utf-8", "replace").split("\0")
    ):
        name, _, value = entry.partition("\n")
        is_include = _INCLUDE.fullmatch(name) and (value.startswith(("/", "~")) or ".." in value)
        is_credential = _HEADER.fullmatch(name) or _CREDENTIAL.fullmatch(name)
        if is_include or is_credential or _ADDRESS.search(name) or _ADDRESS.search(value):
            found.append((name, value))
    return found


def copy_without(config: Path, copy: Path, environment: dict[str, str]) -> str:
    """Copies a configuration file, with its owner and mode, without its credentials; the digest of
    the copy, empty if there are no credentials. An address stays, without its user."""
    found = find_credentials(config, environment)
    if not found:
        return ""
    facts = config.stat()
    copy.write_bytes(config.read_bytes())
    for name in dict.fromkeys(name for name, _ in found):
        values = [value for other, value in found if other == name]
        if _ADDRESS.search(name):
            _git(copy, environment, "--remove-section", name.rpartition(".")[0])
            continue
        _git(copy, environment, "--unset-all", name)
        if not _HEADER.fullmatch(name) and not _CREDENTIAL.fullmatch(name):
            for value in (one for one in values if _ADDRESS.search(one)):
                _git(copy, environment, "--add", name, _ADDRESS.sub(r"\1", value))
    os.chown(copy, facts.st_uid, facts.st_gid)
    copy.chmod(stat.S_IMODE(facts.st_mode))
    return digest(copy)


def digest(config: Path) -> str:
    """The SHA-256 of a configuration file."""
    return hashlib.sha256(config.read_bytes()).hexdigest()


def _git(config: Path, environment: dict[str, str], *words: str) -> bytes:
    """OSError if git cannot read or write the file."""
    command = ("git", "config", "--file", str(config), *words)
    done = process.call(command, cwd=config.parent, environment=environment, timeout=_SECONDS)
    if done.returncode != 0:
        reason = done.stderr.decode("utf-8", "replace").strip()
        raise OSError(f"{config} could not be read by git: {reason}")
    return done.stdout
