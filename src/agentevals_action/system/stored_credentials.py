"""The credentials in the configuration of the repositories of a checkout, which `actions/checkout`
stores there by default."""

import os
import re
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path

from agentevals_action.system import process

_SECONDS = 30.0
_HEADER = re.compile(r"http\.(?:.*\.)?extraheader", re.DOTALL)
_INCLUDE = re.compile(r"include(?:if\..*)?\.path", re.DOTALL)
_CREDENTIAL = re.compile(r"credential\..*", re.DOTALL)
#: An address with a user or a password, in the name of a setting (`url.ADDRESS.insteadOf`) or in
#: its value.
_ADDRESS = re.compile(r"(https?://)[^/\s@]+@", re.IGNORECASE)
_CONFIGS = ("config", "config.worktree")
#: Folders of the repositories of submodules that hold no configuration.
_WITHOUT_CONFIG = {"objects", "refs", "logs", "hooks", "info"}


@dataclass(frozen=True)
class StoredConfig:
    """A configuration file (absolute) and those of its settings, as name and value, that hold a
    credential or include a file from outside of the folder of the repository's metadata: the
    programs of the tests could write it, and the action's git would read it."""

    path: Path
    withheld: tuple[tuple[str, str], ...]

    @property
    def names(self) -> list[str]:
        """The last parts of the settings' names."""
        return [name.rpartition(".")[2] for name, _ in self.withheld]

    async def without_credentials(self, scratch: Path, environment: dict[str, str]) -> bytes:
        """The content without these settings; an address stays, without its user. The folder
        `scratch` is for a temporary file that nobody else can read. OSError."""
        copy = scratch / "config"
        copy.touch(0o600)
        copy.write_bytes(self.path.read_bytes())
        for name in dict.fromkeys(name for name, _ in self.withheld):
            values = [value for other, value in self.withheld if other == name]
            if _ADDRESS.search(name):
                await _git(copy, environment, "--remove-section", name.rpartition(".")[0])
                continue
            await _git(copy, environment, "--unset-all", name)
            if not _HEADER.fullmatch(name) and not _CREDENTIAL.fullmatch(name):
                for value in (one for one in values if _ADDRESS.search(one)):
                    await _git(copy, environment, "--add", name, _ADDRESS.sub(r"\1", value))
        content = copy.read_bytes()
        copy.unlink()
        return content


async def find_configs(
    root: Path, metadata: Path, environment: dict[str, str]
) -> list[StoredConfig]:
    """The configuration files with settings to withhold: of the repository with this root and
    `.git` folder, of its submodules and of other repositories in the checkout (a second
    `actions/checkout` with `path`), and the files in the checkout that they include. OSError if git
    cannot read one."""
    waiting = [(path, metadata) for path in _configs_of(metadata)]
    waiting += [(path, other) for other in _nested(root) for path in _configs_of(other)]
    found, known = [], {path for path, _ in waiting}
    while waiting:
        path, folder = waiting.pop(0)
        withheld = []
        for name, value in await _settings(path, environment):
            included = _included(path, value) if _INCLUDE.fullmatch(name) else None
            leaves = included is not None and not included.is_relative_to(folder)
            is_credential = _HEADER.fullmatch(name) or _CREDENTIAL.fullmatch(name)
            if leaves or is_credential or _ADDRESS.search(name) or _ADDRESS.search(value):
                withheld.append((name, value))
            is_inside = included and (not leaves or included.is_relative_to(root))
            if included and is_inside and included.is_file() and included not in known:
                known.add(included)
                waiting.append((included, folder))
        if withheld:
            found.append(StoredConfig(path, tuple(withheld)))
    return found


def _configs_of(metadata: Path) -> Iterator[Path]:
    yield from (path for name in _CONFIGS if (path := metadata / name).is_file())
    for folder, folders, files in os.walk(metadata / "modules"):
        folders[:] = [name for name in folders if name not in _WITHOUT_CONFIG]
        yield from (Path(folder, name) for name in files if name in _CONFIGS)


def _nested(root: Path) -> Iterator[Path]:
    """The `.git` folders below the root, without its own."""
    for folder, folders, _ in os.walk(root):
        if ".git" in folders:
            folders.remove(".git")
            if folder != str(root):
                yield Path(folder, ".git")


async def _settings(config: Path, environment: dict[str, str]) -> list[tuple[str, str]]:
    listed = await _git(config, environment, "--list", "--null", "--no-includes")
    entries = filter(None, listed.decode("utf-8", "replace").split("\0"))
    return [(name, value) for name, _, value in (entry.partition("\n") for entry in entries)]


def _included(config: Path, value: str) -> Path:
    """The file that a setting includes, without symbolic links. Git expands `~`; here it leads
    outside of every repository."""
    return (config.parent / value).resolve() if not value.startswith("~") else Path("/", value)


async def _git(config: Path, environment: dict[str, str], *words: str) -> bytes:
    """OSError if git cannot read or write the file."""
    command = ("git", "config", "--file", str(config), *words)
    done = await process.call(command, cwd=config.parent, environment=environment, timeout=_SECONDS)
    if done.returncode != 0:
        reason = done.stderr.decode("utf-8", "replace").strip()
        raise OSError(f"{config} could not be read by git: {reason}")
    return done.stdout
