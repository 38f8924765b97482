"""Changes the owners, modes and git configuration of a checkout for a run with isolation, and
restores modes and configuration at the end."""

import contextlib
import errno
import logging
import os
import stat
import tempfile
from collections.abc import AsyncIterator, Collection, Iterator, Mapping, Sequence
from contextlib import ExitStack, asynccontextmanager, contextmanager
from pathlib import Path

from agentevals_action.errors import InvalidInput
from agentevals_action.formatting import joined
from agentevals_action.system import stored_credentials, temp_dirs
from agentevals_action.system.files.tree_files import walk_open
from agentevals_action.system.git import GitRepository
from agentevals_action.system.isolation import (
    HEAD_UID,
    PRIVATE_TEMP,
    TRAVERSABLE,
    UIDS,
    ChildUser,
    Isolation,
    end_processes,
)
from agentevals_action.system.signals import in_thread
from agentevals_action.system.stored_credentials import StoredConfig

log = logging.getLogger(__name__)

_PREFIX = "agentevals-users-"
#: Configuration files in a warning; the others are counted.
_NAMED = 5
#: Folders that GitHub's runner mounts into containers, and variables that name files in them.
_MOUNTS = ("home", "workflow", "file_commands", "runner_temp")
_COMMAND_FILES = ("OUTPUT", "ENV", "PATH", "STATE", "STEP_SUMMARY", "EVENT_PATH")
_SOCKETS = (Path("/var/run/docker.sock"), Path("/run/docker.sock"))
_GIT_ENVIRONMENT = {"PATH": f"/usr/local/bin:{os.defpath}", "LC_ALL": "C"}
#: A folder in which its group makes files, but does not rename or remove those of others.
_SHARED = stat.S_ISVTX | 0o771
#: What the owner of a folder needs to list it and to enter it.
_ENTER = stat.S_IRUSR | stat.S_IXUSR


@asynccontextmanager
async def protected_checkout(
    repository: GitRepository, private: Sequence[Path], environ: Mapping[str, str]
) -> AsyncIterator[Isolation]:
    """Gives the checkout to head's user, and locks all users out of `.git`, of the folders in
    `private` and of the folders that the runner mounts. At the end no process of them is left and
    all is as before, except that files of the users belong to them (see `restore_owner`). After a
    SIGKILL nothing is restored.

    GitError without a repository, InvalidInput if an owner or a mode cannot be changed."""
    root, metadata = repository.root, await repository.metadata()
    with _as_invalid_input():
        PRIVATE_TEMP.mkdir(TRAVERSABLE, parents=True, exist_ok=True)
    own = [path for path in private if _is_own_folder(path, root)]
    ancestors = {one for path in own for one in path.parents if one.is_relative_to(root)}
    kept = frozenset({root / ".git", *own, *ancestors})
    async with temp_dirs.locked_folder(_PREFIX, PRIVATE_TEMP) as folder:
        folder.chmod(TRAVERSABLE)
        head, base, judge = (_make_user(folder, uid) for uid in UIDS)
        isolation = Isolation(root, head, base, judge, kept)
        changes = ExitStack()
        try:
            with _as_invalid_input():
                _lock(isolation, own, environ, changes)
                await _hide_credentials(root, metadata, folder, changes)
                owners = {root.stat().st_uid, *UIDS}
                await in_thread(give_tree, root, head, kept, owners)
            yield isolation
        finally:
            with changes:
                await in_thread(end_processes, isolation)


@contextmanager
def _as_invalid_input() -> Iterator[None]:
    try:
        yield
    except OSError as error:
        advice = "check the file system of the workspace, or set the input `isolation` to `none`"
        raise InvalidInput(f"the checkout cannot be protected: {error}", advice) from error


async def warn_of_credentials(repository: GitRepository) -> None:
    """Logs which configuration files of a checkout without protection hold credentials."""
    try:
        found = await _stored_configs(repository.root, await repository.metadata())
    except OSError as error:
        log.warning("whether the checkout holds credentials is not known: %s", error)
    else:
        _warn_of(found, repository.root, "can")


async def _stored_configs(root: Path, metadata: Path) -> list[StoredConfig]:
    return await stored_credentials.find_configs(root, metadata, _GIT_ENVIRONMENT)


def _warn_of(configs: Sequence[StoredConfig], root: Path, readers: str) -> None:
    if not configs:
        return
    names = [
        f"{os.path.relpath(config.path, root)} ({', '.join(dict.fromkeys(config.names))})"
        for config in configs
    ]
    left = len(names) - _NAMED
    log.warning(
        "credentials are in %s, which the programs of the tests %s read; "
        "set `persist-credentials: false` for actions/checkout",
        joined([*names[:_NAMED], *([f"{left} more"] if left > 0 else [])]),
        readers,
    )


def _is_own_folder(path: Path, root: Path) -> bool:
    """Makes a folder of the action; False if it cannot be one, which its own check reports."""
    with contextlib.suppress(OSError):
        if path.resolve().is_relative_to(root) and path.resolve() == path:
            path.mkdir(parents=True, exist_ok=True)
            return True
    return False


def _make_user(folder: Path, uid: int) -> ChildUser:
    user = ChildUser(uid, folder / f"{uid}" / "home", folder / f"{uid}" / "tmp")
    for path in (user.home.parent, user.home, user.temp):
        path.mkdir(mode=0o700)
        os.chown(path, uid, uid)
    return user


def give_tree(
    tree: Path, user: ChildUser, kept: Collection[Path], owners: Collection[int], since: float = 0
) -> None:
    """Gives the files in a tree that belong to one of the `owners`, and changed after `since`
    (seconds since 1970), to `user`. What is in `kept` stays. Its user must not run yet."""
    names = {str(path) for path in kept}
    # Of what stays, a folder is entered only if another path that stays is in it.
    closed = {one for one in names if not any(each.startswith(f"{one}/") for each in names)}
    for path, descriptor, entries in walk_open(tree):
        for entry in entries:
            facts = entry.stat(follow_symlinks=False)
            # A file with a second name may belong to somebody outside the tree.
            shared = stat.S_ISREG(facts.st_mode) and facts.st_nlink > 1
            given = facts.st_uid in owners and facts.st_ctime >= since and not shared
            if given and f"{path}/{entry.name}" not in names:
                os.chown(entry.name, user.uid, user.uid, dir_fd=descriptor, follow_symlinks=False)
        entries[:] = [entry for entry in entries if f"{path}/{entry.name}" not in closed]


def give_to_group(folder: Path) -> None:
    """Lets the group do in a folder, and all that is in it, what the owner may do: with the rights
    of the owner, who may have left what it cannot enter itself. OSError."""
    if folder.is_symlink() or not folder.is_dir():
        return  # an agent replaced it
    owner = folder.stat().st_uid
    folder.chmod(_with_group(folder.stat()))
    for _, descriptor, entries in walk_open(folder):
        for entry in entries.copy():
            with contextlib.suppress(FileNotFoundError):  # a process may delete its files
                facts = entry.stat(follow_symlinks=False)
                is_own = facts.st_uid == owner and not stat.S_ISLNK(facts.st_mode)
                if is_own and _with_group(facts) != stat.S_IMODE(facts.st_mode):
                    os.chmod(entry.name, _with_group(facts), dir_fd=descriptor)
                if not is_own or facts.st_mode & _ENTER != _ENTER:
                    entries.remove(entry)


def _with_group(facts: os.stat_result) -> int:
    return stat.S_IMODE(facts.st_mode) | (facts.st_mode & stat.S_IRWXU) >> 3


def give_new_files(isolation: Isolation, since: float) -> None:
    """Gives to head's user what root made in the checkout after `since`, as `setup` does."""
    if isolation.head is not None:
        give_tree(isolation.checkout, isolation.head, isolation.kept, {0}, since)


def give_worktree(tree: Path, user: ChildUser | None) -> None:
    """Gives a worktree that root made to `user`, who may not replace its `.git`. Nobody else can
    enter the folder that contains it."""
    if user is None:
        return
    give_tree(tree, user, {tree / ".git"}, {0})
    for path, mode in ((tree, _SHARED & ~0o001), (tree.parent, 0o710)):
        os.chown(path, -1, user.uid)
        path.chmod(mode)


def _lock(
    isolation: Isolation, private: Sequence[Path], environ: Mapping[str, str], restored: ExitStack
) -> None:
    """Changes modes and groups; `restored` changes them back."""
    root = isolation.checkout
    changes: dict[Path, tuple[int, int]] = {}
    for path in private:
        changes[path] = (-1, 0o700)
        ancestors = [one for one in path.parents if one.is_relative_to(root)]
        changes |= dict.fromkeys(ancestors, (HEAD_UID, _SHARED))
    changes[root] = (HEAD_UID, _SHARED)
    for path in root.iterdir():
        mode = stat.S_IMODE(path.lstat().st_mode)
        is_plain = path.is_dir() or path.is_file()
        # Base's user passes through the checkout to `.git`, and to nothing else.
        if mode & 0o007 and is_plain and not path.is_symlink() and path not in isolation.kept:
            changes[path] = (-1, mode & ~0o007)
    changes |= dict.fromkeys((*_mounts(environ, root), *_open_socket_folders()), (-1, 0o700))
    for path, (group, mode) in changes.items():
        facts = path.lstat()
        restored.callback(_restore_mode, path, facts.st_gid, stat.S_IMODE(facts.st_mode))
        os.chown(path, -1, group)
        path.chmod(mode)


async def _hide_credentials(root: Path, metadata: Path, scratch: Path, restored: ExitStack) -> None:
    """Takes the credentials out of the configuration files of git; `restored` puts them back."""
    configs = await _stored_configs(root, metadata)
    _warn_of(configs, root, "cannot")
    for config in configs:
        original = config.path.read_bytes()
        stripped = await config.without_credentials(scratch, _GIT_ENVIRONMENT)
        restored.callback(_restore_config, config.path, stripped, original)
        config.path.write_bytes(stripped)


def _mounts(environ: Mapping[str, str], root: Path) -> set[Path]:
    """The folders of the runner that exist here and do not contain the checkout."""
    named = [environ.get(f"GITHUB_{name}") for name in _COMMAND_FILES]
    folders = [Path(name).parent for name in named if name]
    folders += [Path(name) for name in (environ.get("RUNNER_TEMP"), environ.get("HOME")) if name]
    folders += [Path("/github", name) for name in _MOUNTS]
    shared = {Path(tempfile.gettempdir()).resolve(), Path("/github"), Path("/")}
    resolved = {folder.resolve() for folder in folders if folder.is_dir()}
    return {one for one in resolved - shared if not root.is_relative_to(one)}


def _open_socket_folders() -> set[Path]:
    """The folders of Docker sockets that every user may write, as on some machines of one's own.
    The mode of the socket is that of the machine's, and is not changed; a folder that is mounted,
    too, stays open."""
    found = set()
    for path in _SOCKETS:
        if path.exists() and path.stat().st_mode & stat.S_IWOTH:
            folder = path.resolve().parent
            if folder.stat().st_dev == Path("/").stat().st_dev:
                found.add(folder)
            else:
                log.warning("every user may write %s: programs of the tests can use Docker", path)
    return found


def _restore_mode(path: Path, group: int, mode: int) -> None:
    """Restores one path; a link that a program put there is not followed."""
    try:
        descriptor = os.open(path, os.O_RDONLY | os.O_NOFOLLOW | os.O_NONBLOCK)
    except OSError as error:
        if error.errno not in (errno.ENOENT, errno.ELOOP, errno.ENXIO):  # removed, or replaced
            log.warning("the mode of %s could not be restored: %s", path, error.strerror)
        return
    try:
        facts = os.fstat(descriptor)
        if stat.S_ISDIR(facts.st_mode) or facts.st_nlink == 1:
            os.fchown(descriptor, -1, group)
            os.fchmod(descriptor, mode)
    finally:
        os.close(descriptor)


def _restore_config(config: Path, known: bytes, original: bytes) -> None:
    """Restores a configuration file, unless a program has changed it or put another file there: a
    link would give it the credentials."""
    is_there = config.resolve() == config and config.is_file() and config.stat().st_nlink == 1
    if is_there and config.read_bytes() == known:
        config.write_bytes(original)
    else:
        log.warning("%s was changed during a run: its credentials are not restored", config)
