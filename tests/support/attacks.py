"""Run as a program of a pull request, in the action's container: tries what it must not be able to
do, and prints what it could. With `daemon` it first leaves its process group and keeps trying.

The argument is its role. Exit code 1 if an attack succeeded; otherwise the answer is `safe`."""

import ctypes
import os
import socket
import sys
import time
from collections.abc import Callable
from functools import partial
from pathlib import Path

CHECKOUT = Path("/github/workspace")
PRIVATE = Path("/var/lib/agentevals")
JUDGE = "60803"


def status() -> dict[str, str]:
    lines = Path("/proc/self/status").read_text().splitlines()
    return {name: value.strip() for name, _, value in (line.partition(":") for line in lines)}


def own_tree() -> Path:
    return Path(os.environ["GITHUB_WORKSPACE"])


def others() -> list[int]:
    pids = [int(entry.name) for entry in Path("/proc").iterdir() if entry.name.isdecimal()]
    found = []
    for pid in pids:
        try:
            text = Path(f"/proc/{pid}/status").read_text()
        except OSError:
            continue
        uid = next(line.split()[1] for line in text.splitlines() if line.startswith("Uid:"))
        if int(uid) != os.getuid():
            found.append(pid)
    return found


def rights() -> object:
    now = status()
    wrong = [name for name in ("CapEff", "CapPrm", "CapAmb") if int(now[name], 16)]
    uids, gids = set(now["Uid"].split()), set(now["Gid"].split())
    side = "60801" if own_tree() == CHECKOUT else "60802"
    if gids != {side} or uids not in ({side}, {JUDGE}):
        wrong.append(f"Uid {uids} {gids}")
    return wrong + [now["Groups"]] * bool(now["Groups"]) + ["nnp"] * (now["NoNewPrivs"] != "1")


def docker_socket() -> object:
    found = []
    for path in (CHECKOUT / "docker.sock", Path("/var/run/docker.sock")):
        with socket.socket(socket.AF_UNIX) as client:
            if client.connect_ex(str(path)) == 0:
                found.append(path)
    return found


def environments() -> object:
    found = []
    for pid in others():
        try:
            if Path(f"/proc/{pid}/environ").read_bytes():
                found.append(pid)
        except OSError:
            continue
    return found


def signals() -> object:
    found = []
    for pid in others():
        try:
            os.kill(pid, 0)
            found.append(pid)
        except PermissionError:
            continue
    return found


def ptrace() -> object:
    libc = ctypes.CDLL(None)
    return [pid for pid in others() if libc.ptrace(16, pid, 0, 0) == 0]


def write(path: Path, text: str = "outcome=passed\n") -> object:
    with path.open("a") as file:
        file.write(text)
    return f"wrote {path}"


def listing(folder: Path) -> object:
    return list(folder.iterdir())


def runner_files() -> object:
    found: list[object] = []
    for name in ("file_commands", "runner_temp", "workflow", "home"):
        folder = Path("/github", name)
        for attempt in (partial(listing, folder), partial(write, folder / "x")):
            try:
                found.append((name, attempt()))
            except PermissionError:
                continue
    return found


def other_tree() -> object:
    if own_tree() != CHECKOUT:
        readable = [name for name in ("EVAL.yaml", "attacks.py") if os.access(CHECKOUT / name, 4)]
        writable = os.access(CHECKOUT, os.W_OK) or os.access(CHECKOUT, os.R_OK)
        return readable or (["checkout"] if writable else [])
    found: list[object] = [
        tree for temp in (PRIVATE, Path("/tmp")) for tree in temp.glob("agentevals-tree-*/*")
    ]
    for record in CHECKOUT.glob(".git/worktrees/*/gitdir"):
        tree = Path(record.read_text().strip()).parent
        try:
            found.append(write(tree / "agent.py"))
        except PermissionError:
            continue
    return found


def report() -> object:
    found: list[object] = []
    for name in ("agentevals-report", ".cache/agentevals"):
        folder = CHECKOUT / name
        for attempt in (
            partial(listing, folder),
            partial(write, folder / "results.jsonl"),
            partial(folder.rename, folder.with_name("gone")),
        ):
            try:
                found.append((name, attempt()))
            except OSError:
                continue
    return found


def git() -> object:
    folder, found = CHECKOUT / ".git", list[object]()
    if "AUTHORIZATION" in (folder / "config").read_text():
        found.append("token")
    attempts: tuple[Callable[[], object], ...] = (
        lambda: write(folder / "config", ""),
        lambda: write(folder / "x"),
        lambda: write(folder / "refs/heads/x"),
        lambda: folder.rename(CHECKOUT / "git-gone"),
        lambda: (own_tree() / ".git").rename(own_tree() / "git-gone"),
    )
    for attempt in attempts:
        try:
            found.append(attempt())
        except OSError:
            continue
    return found


def system_files() -> object:
    paths: tuple[str, ...] = (
        "/usr/bin/git",
        "/etc/hosts",
        "/etc/ssl/certs/ca-certificates.crt",
        "/etc/passwd",
    )
    folders = ("/opt/agentevals/bin", "/usr/local/bin", "/etc")
    return [path for path in (*paths, *folders) if os.access(path, os.W_OK)]


def other_homes() -> object:
    """What the interpreters of another user load, as `usercustomize.py` or `.npmrc`."""
    own = Path(os.environ["HOME"]).parent
    others = [own.with_name(str(uid)) for uid in range(60801, 60804) if uid != os.getuid()]
    if not all(path.is_dir() for path in (own, *others)):
        return [f"there is no {own} or no other user"]
    folders = [folder / name for folder in others for name in ("home", "tmp")]
    return [path for path in folders if os.access(path, os.R_OK) or os.access(path, os.W_OK)]


def outputs() -> object:
    """The score that a judge is about to print."""
    found = []
    for pid in others():
        for descriptor in ("0", "1", "2", "3"):
            try:
                with Path(f"/proc/{pid}/fd/{descriptor}").open("a"):
                    found.append((pid, descriptor))
            except OSError:
                continue
    return found


def judge_trees() -> object:
    """The trees from which judges run: git's records name them."""
    found = []
    for record in CHECKOUT.glob(".git/worktrees/*/gitdir"):
        tree = Path(record.read_text().strip()).parent
        if tree != own_tree():
            paths = (tree, *tree.parents, tree / "attacks.py", tree / ".git", tree / "EVAL.yaml")
            found += [path for path in paths if os.access(path, os.W_OK)]
    return found


def folders_above() -> object:
    """Where an interpreter searches for `node_modules`, `package.json` or `.git`."""
    own = Path(os.environ["HOME"]).parent
    above = {*own.parents, *own_tree().parents}
    if not Path(__file__).is_relative_to(own_tree()):
        above |= {*Path(__file__).parents}
    return [path for path in above if os.access(path, os.W_OK)]


ATTACKS = (
    *(rights, docker_socket, environments, signals, ptrace, runner_files, other_tree, report),
    *(git, system_files, other_homes, outputs, judge_trees, folders_above),
)


def attack() -> list[str]:
    found = []
    for attempt in ATTACKS:
        try:
            result = attempt()
        except OSError:
            continue
        if result:
            found.append(f"{attempt.__name__}: {result}")
    return found


def become_daemon(role: str) -> None:
    """A process in a session of its own, whose parent has ended."""
    if os.fork():
        return
    os.setsid()
    if os.fork():
        os._exit(0)
    null = os.open(os.devnull, os.O_RDWR)
    for number in (0, 1, 2):
        os.dup2(null, number)
    while True:
        if found := attack():
            (own_tree() / f"found-{role}-daemon.txt").write_text("\n".join(found))
        time.sleep(0.2)


def main(role: str, *options: str) -> int:
    if "daemon" in options:
        become_daemon(role)
    found = attack()
    print("\n".join(found) or "safe")
    if found:
        (own_tree() / f"found-{role}.txt").write_text("\n".join(found))
    return bool(found)


if __name__ == "__main__":
    sys.exit(main(*sys.argv[1:]))
