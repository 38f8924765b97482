"""The owners and modes of a checkout during a run with isolation."""

import contextlib
import logging
import os
import re
import stat
import tempfile
from collections.abc import AsyncIterator, Iterable, Iterator, Mapping, Sequence
from contextlib import ExitStack, asynccontextmanager, contextmanager
from pathlib import Path

from agentevals_action.errors import AttemptError, InvalidInput
from agentevals_action.system import process, temp_dirs
from agentevals_action.system.isolation import (
    HEAD_UID,
    PRIVATE_TEMP,
    TRAVERSABLE,
    UIDS,
    ChildUser,
    Isolation,
    end_processes,
)
from agentevals_action.system.program import Program
from agentevals_action.system.signals import in_thread
from agentevals_action.system.stored_credentials import (
    find_unknown,
    hidden_credentials,
    repositories,
)

log = logging.getLogger(__name__)

_PREFIX = "agentevals-users-"
#: Folders that GitHub's runner mounts into containers, and variables that name files in them.
_MOUNTS = ("home", "workflow", "file_commands", "runner_temp")
_COMMAND_FILES = ("OUTPUT", "ENV", "PATH", "STATE", "STEP_SUMMARY", "EVENT_PATH")
_SOCKETS = (Path("/var/run/docker.sock"), Path("/run/docker.sock"))
_ENVIRONMENT = {"PATH": f"/usr/local/bin:{os.defpath}", "LC_ALL": "C"}
#: A folder in which its group makes files, but does not rename or remove those of others.
_SHARED = stat.S_ISVTX | 0o771
#: Seconds for a change of a whole tree.
_SECONDS = 600.0


@asynccontextmanager
async def protected_checkout(
    root: Path, private: Sequence[Path], environ: Mapping[str, str]
) -> AsyncIterator[Isolation]:
    """Gives the checkout to head's user, and locks all users out of `.git` (they read what is git's
    own), of the folders in `private` and of the folders that the runner mounts. At the end no
    process of them is left and all is as before, except that files of the users belong to them (see
    `restore_owner`). After a SIGKILL nothing is restored.

    InvalidInput if an owner or a mode cannot be changed."""
    locked = [path for path in private if _is_own_folder(path, root)]
    with _as_invalid_input():
        PRIVATE_TEMP.mkdir(TRAVERSABLE, parents=True, exist_ok=True)
        locked += find_unknown(folders := repositories(root))
    async with temp_dirs.temp_folder(_PREFIX, PRIVATE_TEMP) as folder:
        folder.chmod(TRAVERSABLE)
        head, base, judge = (_make_user(folder, uid) for uid in UIDS)
        isolation = Isolation(root, head, base, judge, (root / ".git", *locked))
        changes = ExitStack()
        try:
            with _as_invalid_input():
                _lock(isolation, locked, environ, changes)
                changes.enter_context(hidden_credentials(root, folders))
                owners = {root.stat().st_uid, *UIDS}
                await _change_owner(root, (head.uid, head.uid), owners, isolation.kept)
            yield isolation
        finally:
            with changes:
                await in_thread(end_processes)


@contextmanager
def _as_invalid_input() -> Iterator[None]:
    try:
        yield
    except (OSError, AttemptError) as error:
        advice = "check the file system of the workspace, or set the input `isolation` to `none`"
        raise InvalidInput(f"the checkout cannot be protected: {error}", advice) from error


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


async def _change_owner(
    tree: Path, owner: tuple[int, int], owners: Iterable[int], kept: Sequence[Path] = ()
) -> None:
    """Gives a tree, as far as it belongs to one of the `owners`, to another one, except what is in
    `kept` and the folders above it. A file with a second name, which may belong to somebody outside
    the tree, stays, unless it is of a user of programs. No link is followed, also when a program
    replaces a folder meanwhile. AttemptError."""
    above = {path for name in kept for path in name.parents if path.is_relative_to(tree)}
    tests = [word for path in above for word in ("!", "-path", _pattern(path))]
    closed = [word for path in kept for word in ("-path", _pattern(path), "-prune", "-o")]
    single = ("!", "(", "-type", "f", "-links", "+1", ")")
    given = ["-false"]
    for uid in sorted(set(owners)):
        given += ["-o", "-uid", str(uid), *(() if uid in UIDS else single)]
    words = ("find", str(tree), *closed, "(", *given, ")", *tests)
    await process.run_checked(
        "the change of owners",
        Program(
            (*words, "-execdir", "chown", "-h", f"{owner[0]}:{owner[1]}", "{}", "+"),
            Path("/"),
            _ENVIRONMENT,
        ),
        kind="resources",
        timeout=_SECONDS,
    )


def _pattern(path: Path) -> str:
    """A path as a pattern of find(1) that matches it alone."""
    return re.sub(r"([*?\[\\])", r"\\\1", str(path))


async def share_with_group(folder: Path, user: ChildUser) -> None:
    """Lets the group do in a folder, and all that is in it, what the owner may do, with the rights
    of `user`, who may have left what it cannot enter itself. AttemptError."""
    await process.run_checked(
        "the change of modes",
        Program(("chmod", "-R", "g=u", str(folder)), Path("/"), _ENVIRONMENT, user),
        kind="workspace",
        timeout=_SECONDS,
        codes=range(256),
    )


async def give_new_files(isolation: Isolation) -> None:
    """Gives to head's user what root made in the checkout, as `setup` does. AttemptError."""
    if head := isolation.head:
        await _change_owner(isolation.checkout, (head.uid, head.uid), [0], isolation.kept)


async def give_worktree(tree: Path, user: ChildUser | None) -> None:
    """Gives a worktree that root made to `user`, who may not replace its `.git`. Nobody else can
    enter the folder that contains it."""
    if user is None:
        return
    await _change_owner(tree, (user.uid, user.uid), [0], [tree / ".git"])
    for path, mode in ((tree, _SHARED & ~0o001), (tree.parent, 0o710)):
        os.chown(path, -1, user.uid)
        path.chmod(mode)


async def restore_owner(workspace: Path) -> None:
    """Gives what is in the workspace and belongs to root, or to the users of programs, to its
    owner, who can read it then. It does nothing unless this process is root."""
    if os.geteuid() != 0:
        return
    try:
        owner = workspace.stat()
        owners = {*UIDS, 0} - {owner.st_uid}
        await _change_owner(workspace.resolve(), (owner.st_uid, owner.st_gid), owners)
    except (OSError, AttemptError) as error:
        log.warning("the files in the workspace could not be given to its owner: %s", error)


def _lock(
    isolation: Isolation, private: Sequence[Path], environ: Mapping[str, str], restored: ExitStack
) -> None:
    """Changes modes and groups; `restored` changes them back."""
    root = isolation.checkout
    given = [path for path in private if not path.is_relative_to(root / ".git")]
    above = {folder for path in given for folder in path.parents if folder.is_relative_to(root)}
    changes = dict.fromkeys(above, (HEAD_UID, _SHARED & ~0o001))
    changes |= {path: (-1, stat.S_IMODE(path.stat().st_mode) & 0o700) for path in private}
    changes[root] = (HEAD_UID, _SHARED)
    for path in root.iterdir():
        mode = stat.S_IMODE(path.lstat().st_mode)
        is_plain = path.is_dir() or path.is_file()
        # Base's user passes through the checkout to `.git`, and to nothing else.
        is_given = path not in changes and path != root / ".git"
        if mode & 0o007 and is_plain and is_given and not path.is_symlink():
            changes[path] = (-1, mode & ~0o007)
    changes |= dict.fromkeys((*_mounts(environ, root), *_open_socket_folders()), (-1, 0o700))
    for path, (group, mode) in changes.items():
        facts = path.lstat()
        restored.callback(_restore_mode, path, facts.st_gid, stat.S_IMODE(facts.st_mode))
        os.chown(path, -1, group)
        path.chmod(mode)


def _mounts(environ: Mapping[str, str], root: Path) -> set[Path]:
    """The folders of the runner that exist here and do not contain the checkout."""
    named = [environ.get(f"GITHUB_{name}") for name in _COMMAND_FILES]
    folders = [Path(name).parent for name in named if name]
    folders += [Path(name) for name in (environ.get("RUNNER_TEMP"), environ.get("HOME")) if name]
    folders += [Path("/github", name) for name in _MOUNTS]
    shared = {Path(tempfile.gettempdir()).resolve(), Path("/github"), Path("/")}
    resolved = {folder.resolve() for folder in folders if folder.is_dir()}
    return {folder for folder in resolved - shared if not root.is_relative_to(folder)}


def _open_socket_folders() -> set[Path]:
    """The folders of Docker sockets that every user may write, as on some machines of one's own.
    The mode of the socket belongs to the machine, and is not changed; a folder that is mounted
    stays open, too."""
    open_folders = set()
    for path in _SOCKETS:
        if path.exists() and path.stat().st_mode & stat.S_IWOTH:
            folder = path.resolve().parent
            if folder.stat().st_dev == Path("/").stat().st_dev:
                open_folders.add(folder)
            else:
                log.warning("every user may write %s: programs of the tests can use Docker", path)
    return open_folders


def _restore_mode(path: Path, group: int, mode: int) -> None:
    """Restores one path, when no program runs any more; a link that one left is not followed."""
    try:
        if not path.is_symlink():
            os.chown(path, -1, group)
            path.chmod(mode)
    except FileNotFoundError:  # a program removed it
        pass
    except OSError as error:
        log.warning("the mode of %s could not be restored: %s", path, error.strerror)
