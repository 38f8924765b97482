"""The life of the folders that agents work in: made, shared or fresh, reset, kept, removed; hooks
around them."""

import asyncio
import json
import os
import shutil
import stat
import subprocess
import sys
import tempfile
from collections.abc import Coroutine
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest

from agentevals_action.errors import AttemptError
from agentevals_action.system import process
from agentevals_action.system.isolation import ChildUser, Isolation
from tests.support import suites, workspaces

START: dict[str, str | bytes] = {
    "start/app.py": "one\n",
    "start/sub/x": "x\n",
    "start/.gitignore": "*.log\ncache/\n",
}
#: A hook that writes down its name and what it is actual, into a file outside; at once, as hooks run
#: side by side.
NOTE = 'import json, os, sys\nopen(sys.argv[2], "a").write(json.dumps([sys.argv[1], os.getcwd(), json.load(sys.stdin)]) + "\\n")\n'


def noting(tmp_path: Path, *names: str) -> str:
    """The hooks of these names, each noted in `notes`."""
    hooks = (
        f"{name}: {{command: [{sys.executable}, note.py, {name}, {tmp_path}/notes]}}"
        for name in names
    )
    return "".join(f"    {hook}\n" for hook in hooks)


def notes(tmp_path: Path) -> list[tuple[str, str, dict[str, Any]]]:
    path = tmp_path / "notes"
    return (
        [tuple(json.loads(line)) for line in path.read_text().splitlines()] if path.exists() else []
    )


def made(
    tmp_path: Path, workspace: str, files: dict[str, str | bytes] | None = None, **options: Any
) -> workspaces.Run:
    root = workspaces.suite(
        tmp_path / "repository", workspace, {**START, "note.py": NOTE, **(files or {})}
    )
    return workspaces.run(root, tmp_path / "scratch", **options)


def left(tmp_path: Path) -> list[Path]:
    return list((tmp_path / "scratch").iterdir())


def run(work: Coroutine[Any, Any, None]) -> None:
    asyncio.run(work)


def test_template__is_copied_with_modes_and_links(tmp_path: Path) -> None:
    job = made(tmp_path, "  template: start")
    start = tmp_path / "repository" / "start"
    (start / "app.py").chmod(0o755)
    (start / "link").symlink_to("sub/x")
    (start / "sub" / ".git").write_text("gitdir: ../../..\n")
    job.suite = suites.load_valid(tmp_path / "repository")

    async def work() -> None:
        session = await job.enter()
        assert sorted(path.name for path in session.path.iterdir()) == [
            ".gitignore",
            "app.py",
            "link",
            "sub",
        ]
        assert (session.path / "link").readlink() == Path("sub/x")
        assert stat.S_IMODE((session.path / "app.py").stat().st_mode) == 0o755
        assert [path.name for path in (session.path / "sub").iterdir()] == ["x"]
        await session.leave(failed=False)
        await job.workspaces.close()

    run(work())
    assert left(tmp_path) == []
    assert (start / "app.py").read_text() == "one\n"


def test_template__a_link_that_came_to_lead_out(tmp_path: Path) -> None:
    job = made(tmp_path, "  template: start")
    (tmp_path / "repository" / "start" / "link").symlink_to("/etc/passwd")

    async def work() -> None:
        for _ in range(2):
            with pytest.raises(
                AttemptError, match="the link 'link' leads out of 'start'"
            ) as caught:
                await job.enter()
            assert caught.value.kind == "workspace"
        await job.workspaces.close()

    run(work())
    assert left(tmp_path) == []


def test_shared__one_folder_for_the_suite(tmp_path: Path) -> None:
    job = made(
        tmp_path,
        "  template: start\n  hooks:\n"
        + noting(tmp_path, "before_all", "before_each", "after_each", "after_all"),
    )

    async def work() -> None:
        first = await job.enter(0)
        (first.path / "app.py").write_text("two\n")
        assert "+two\n" in await first.diff()
        await first.leave(failed=False)
        second = await job.enter(1)
        assert second.path == first.path
        assert (second.path / "app.py").read_text() == "two\n"
        assert await second.diff() == ""
        await second.leave(failed=False)
        await job.workspaces.close()

    run(work())
    written = notes(tmp_path)
    assert [name for name, _, _ in written] == [
        "before_all",
        "before_each",
        "after_each",
        "before_each",
        "after_each",
        "after_all",
    ]
    assert {folder for _, folder, _ in written} == {str(tmp_path / "repository")}
    path = written[0][2]["workspace_path"]
    alone = {
        "workspace_path": path,
        "eval_run_id": "run-1",
        "case_input": None,
        "case_metadata": None,
    }
    assert written[0][2] == {**alone, "test_id": "__before_all__"}
    assert written[5][2] == {**alone, "test_id": "__after_all__"}
    assert written[1][2] == {
        **alone,
        "test_id": "a",
        "case_input": "first",
        "case_metadata": {"level": 1},
    }
    assert written[3][2] == {**alone, "test_id": "b", "case_input": "second"}
    assert left(tmp_path) == []
    assert job.notices == []


def test_shared_key__what_shares_a_folder(tmp_path: Path) -> None:
    tests = "  - {id: a, input: q, criteria: c}\n  - {id: b, input: q, criteria: c}\n  - {id: own, input: q, criteria: c, workspace: {repos: []}}\n"
    tests += "  - {id: fresh, input: q, criteria: c, workspace: {isolation: per_test}}\n"
    root = workspaces.suite(tmp_path / "one", "  template: start", START, tests)
    job = workspaces.run(root, tmp_path / "scratch")
    a, b, own, fresh = (job.workspaces.shared_key(job.suite, test) for test in job.tests)
    assert a == b
    assert None not in (a, own)
    assert a != own
    assert fresh is None


def test_own__a_test_with_a_workspace_has_a_folder_of_its_own(tmp_path: Path) -> None:
    hook = f"{{before_all: {{command: [{sys.executable}, note.py, own, {tmp_path}/notes]}}}}"
    tests = f"  - {{id: a, input: q, criteria: c}}\n  - {{id: b, input: ask, criteria: c, metadata: {{commit: abc}}, workspace: {{hooks: {hook}}}}}\n"
    root = workspaces.suite(
        tmp_path / "repository", "  template: start", {**START, "note.py": NOTE}, tests
    )
    job = workspaces.run(root, tmp_path / "scratch")

    async def work() -> None:
        first, second = await job.enter(0), await job.enter(1)
        assert first.path != second.path
        assert (second.path / "app.py").exists()
        again = await job.enter(1, sample=1)
        assert again.path == second.path
        await job.workspaces.close()

    run(work())
    ((_, _, actual),) = notes(tmp_path)
    assert (actual["test_id"], actual["case_input"], actual["case_metadata"]) == (
        "b",
        "ask",
        {"commit": "abc"},
    )


def test_per_test__a_fresh_folder_for_each_sample(tmp_path: Path) -> None:
    hooks = noting(tmp_path, "before_all", "before_each", "after_each", "after_all")
    job = made(tmp_path, f"  template: start\n  isolation: per_test\n  hooks:\n{hooks}")

    async def work() -> None:
        first, second = await asyncio.gather(job.enter(0), job.enter(0, sample=1))
        assert first.path != second.path
        (first.path / "app.py").unlink()
        assert await second.diff() == ""
        await first.leave(failed=False)
        assert not first.path.exists()
        await second.leave(failed=False)
        await job.workspaces.close()

    run(work())
    names = [name for name, _, _ in notes(tmp_path)]
    assert sorted(names) == sorted(["before_all", "before_each", "after_each", "after_all"] * 2)
    assert {actual["test_id"] for _, _, actual in notes(tmp_path)} == {"a"}


def test_before_all__that_fails_is_an_error_of_every_test(tmp_path: Path) -> None:
    command = f"echo run >> {tmp_path}/runs; echo no space >&2; exit 3"
    hooks = f"  hooks:\n    before_all: {{command: '{command}'}}\n" + noting(
        tmp_path, "before_each", "after_each", "after_all"
    )
    job = made(tmp_path, hooks)

    async def work() -> None:
        for number in (0, 1):
            with pytest.raises(AttemptError) as caught:
                await job.enter(number)
            assert caught.value.kind == "workspace"
            assert (
                str(caught.value)
                == "the hook `before_all` (EVAL.yaml:4:17) ended with exit code 3: no space"
            )
            assert "API_KEY" in caught.value.hint
        await job.workspaces.close()

    run(work())
    assert (tmp_path / "runs").read_text() == "run\n"
    assert notes(tmp_path) == []
    assert left(tmp_path) == []


def test_before_each__that_fails_is_an_error_of_its_test(tmp_path: Path) -> None:
    hook = """'[ "$(cat)" != "" ]; case {{test_id}} in a) exit 1;; esac'"""
    job = made(tmp_path, f"  template: start\n  hooks:\n    before_each: {{command: {hook}}}\n")

    async def work() -> None:
        with pytest.raises(AttemptError, match=r"the hook `before_each` .* ended with exit code 1"):
            await job.enter(0)
        session = await job.enter(1)
        await session.leave(failed=False)
        await job.workspaces.close()

    run(work())


def test_hook__sees_the_scrubbed_environment_and_its_placeholders(tmp_path: Path) -> None:
    script = f"env > {tmp_path}/env; printf %s {{{{workspace_path}}}} > {tmp_path}/path; printf %s {{{{case_input}}}} {{{{other}}}} > {tmp_path}/input"
    tests = '  - {id: a, input: "it\'s $(id) `id`", criteria: c}\n'
    root = workspaces.suite(
        tmp_path / "repository", f"  hooks: {{before_each: {{command: '{script}'}}}}", {}, tests
    )
    job = workspaces.run(root, tmp_path / "scratch")

    async def work() -> None:
        session = await job.enter()
        assert (tmp_path / "path").read_text() == str(session.path)

    run(work())
    assert (tmp_path / "input").read_text() == "it's $(id) `id`{{other}}"
    names = {line.partition("=")[0] for line in (tmp_path / "env").read_text().splitlines()}
    assert names <= {*workspaces.ENVIRONMENT, "PWD", "OLDPWD", "SHLVL", "_"}


def test_hook__that_changes_the_folder_is_not_the_agent(tmp_path: Path) -> None:
    hook = "{command: [sh, -c, 'echo set > \"$0/app.py\"; echo new > \"$0/new\"', '{{workspace_path}}']}"
    job = made(tmp_path, f"  template: start\n  hooks: {{before_all: {hook}, before_each: {hook}}}")

    async def work() -> None:
        session = await job.enter()
        assert (session.path / "new").read_text() == "new\n"
        assert await session.diff() == ""
        (session.path / "new").unlink()
        assert "-new\n" in await session.diff()

    run(work())


def test_after_hooks__that_fail_are_notices(tmp_path: Path) -> None:
    hooks = (
        "  hooks: {after_each: {command: 'echo bad >&2; exit 2'}, after_all: {command: 'exit 4'}}"
    )
    job = made(tmp_path, hooks)

    async def work() -> None:
        session = await job.enter()
        await session.leave(failed=False)
        await job.workspaces.close()

    run(work())
    hint = "; variables withheld from it: API_KEY; name those it needs in the input `env`"
    assert job.notices == [
        f"EVAL.yaml: test `a`: the hook `after_each` (EVAL.yaml:3:23) ended with exit code 2: bad{hint}",
        f"EVAL.yaml: the hook `after_all` (EVAL.yaml:3:69) ended with exit code 4{hint}",
    ]


RESET = "  template: start\n  hooks: {before_all: {command: [sh, -c, 'mkdir $0/cache; echo 1 > $0/cache/x', '{{workspace_path}}']}, "


def spoil(folder: Path) -> None:
    """What one test may leave to the next."""
    (folder / "app.py").unlink()
    (folder / "app.py").mkdir()
    (folder / "sub" / "x").write_text("changed\n")
    (folder / "new").mkdir()
    (folder / "new" / "file").write_text("new\n")
    (folder / "run.log").write_text("log\n")
    (folder / "cache" / "x").write_text("2\n")
    (folder / "deep" / "cache").mkdir(parents=True)
    (folder / "deep" / "cache" / "y").write_text("y\n")
    (folder / ".gitignore").write_text("new\n")


def contents(folder: Path) -> dict[str, str]:
    return {
        path.relative_to(folder).as_posix(): path.read_text()
        for path in sorted(folder.rglob("*"))
        if path.is_file()
    }


FRESH = {".gitignore": "*.log\ncache/\n", "app.py": "one\n", "cache/x": "1\n", "sub/x": "x\n"}
IGNORED = {"cache/x": "2\n", "deep/cache/y": "y\n", "run.log": "log\n"}


@pytest.mark.parametrize("when", ["after_each", "before_each"])
@pytest.mark.parametrize(("mode", "expected"), [("strict", FRESH), ("fast", {**FRESH, **IGNORED})])
def test_reset__between_tests(
    tmp_path: Path, when: str, mode: str, expected: dict[str, str]
) -> None:
    job = made(tmp_path, f"{RESET}{when}: {{reset: {mode}}}}}")

    async def work() -> None:
        first = await job.enter(0)
        spoil(first.path)
        await first.leave(failed=False)
        second = await job.enter(1)
        assert second.path == first.path
        assert contents(second.path) == expected
        assert await second.diff() == ""
        (second.path / "app.py").write_text("two\n")
        assert "-one\n+two\n" in await second.diff()
        await second.leave(failed=False)
        await job.workspaces.close()

    run(work())
    assert job.notices == []


def test_reset__none(tmp_path: Path) -> None:
    job = made(tmp_path, f"{RESET}after_each: {{reset: none}}}}")

    async def work() -> None:
        first = await job.enter(0)
        spoil(first.path)
        await first.leave(failed=False)
        assert "new/file" in contents((await job.enter(1)).path)

    run(work())


def test_reset__comes_after_the_command_of_after_each(tmp_path: Path) -> None:
    command = (
        f"[sh, -c, 'cp $0/made {tmp_path}/collected; touch $0/leaked', '{{{{workspace_path}}}}']"
    )
    job = made(
        tmp_path,
        f"  template: start\n  hooks: {{after_each: {{reset: strict, command: {command}}}}}",
    )

    async def work() -> None:
        first = await job.enter(0)
        (first.path / "made").write_text("by the agent\n")
        await first.leave(failed=False)
        assert contents((await job.enter(1)).path) == {
            name: text for name, text in FRESH.items() if name != "cache/x"
        }

    run(work())
    assert job.notices == []
    assert (tmp_path / "collected").read_text() == "by the agent\n"


@pytest.mark.parametrize("how", ["gone", "a link", "a file"])
@pytest.mark.parametrize("mode", ["none", "fast", "strict"])
def test_shared__a_folder_that_an_agent_took_away_is_made_again(
    tmp_path: Path, how: str, mode: str
) -> None:
    (tmp_path / "elsewhere").mkdir()
    (tmp_path / "elsewhere" / "mine").write_text("mine\n")
    job = made(tmp_path, f"  template: start\n  hooks: {{after_each: {{reset: {mode}}}}}")

    async def work() -> None:
        first = await job.enter(0)
        shutil.rmtree(first.path)
        if how == "a link":
            first.path.symlink_to(tmp_path / "elsewhere")
        elif how == "a file":
            first.path.write_text("file\n")
        assert "-one\n" in await first.diff()
        await first.leave(failed=False)
        second = await job.enter(1)
        assert contents(second.path) == {
            name: text for name, text in FRESH.items() if name != "cache/x"
        }
        await second.leave(failed=False)
        await job.workspaces.close()

    run(work())
    assert (tmp_path / "elsewhere" / "mine").read_text() == "mine\n"
    assert left(tmp_path) == []


@pytest.mark.parametrize("isolation", ["shared", "per_test"])
def test_keep__the_folder_of_a_test_that_failed(tmp_path: Path, isolation: str) -> None:
    (tmp_path / "secret").write_text("hunter2\n")
    keep = tmp_path / "kept"
    job = made(
        tmp_path,
        f"  template: start\n  isolation: {isolation}\n  hooks: {{after_each: {{reset: strict}}}}",
        keep=keep,
    )

    async def work() -> None:
        passed = await job.enter(0)
        await passed.leave(failed=False)
        failed = await job.enter(1)
        (failed.path / "app.py").write_text("as the agent left it\n")
        (failed.path / "out").symlink_to(tmp_path / "secret")
        (failed.path / "inside").symlink_to("app.py")
        os.mkfifo(failed.path / "pipe")
        await failed.leave(failed=True)
        again = await job.enter(1, sample=1)
        await again.leave(failed=True)
        await job.workspaces.close()

    run(work())
    assert sorted(path.relative_to(keep).as_posix() for path in keep.glob("*/*")) == [
        "EVAL.yaml/b",
        "EVAL.yaml/b-2",
    ]
    kept = keep / "EVAL.yaml" / "b"
    assert sorted(path.name for path in kept.iterdir()) == [".gitignore", "app.py", "inside", "sub"]
    assert (kept / "app.py").read_text() == "as the agent left it\n"
    assert job.notices[0] == f"the workspace of the test `b` is kept in {kept}"
    assert left(tmp_path) == []


def test_keep__names_cannot_lead_out(tmp_path: Path) -> None:
    tests = "  - {id: ../../x, input: q, criteria: c}\n  - {id: '..', input: q, criteria: c}\n"
    root = workspaces.suite(tmp_path / "repository", "  template: start", START, tests)
    job = workspaces.run(root, tmp_path / "scratch", tmp_path / "kept")

    async def work() -> None:
        for number in (0, 1):
            await (await job.enter(number)).leave(failed=True)
        await job.workspaces.close()

    run(work())
    assert sorted(path.name for path in (tmp_path / "kept" / "EVAL.yaml").iterdir()) == [
        "test",
        "x",
    ]


def test_remove__whatever_an_agent_left(tmp_path: Path) -> None:
    job = made(tmp_path, "  template: start")

    async def work() -> None:
        session = await job.enter()
        (session.path / "sub").chmod(0)
        await session.leave(failed=True)
        await job.workspaces.close()

    try:
        run(work())
        assert left(tmp_path) == []
    finally:  # what is left of it pytest could not remove either
        subprocess.run(("rm", "-rf", "--", str(tmp_path / "scratch")), check=True)


@pytest.mark.skipif(os.geteuid() != 0, reason="only root can start other users' processes")
def test_judges__and_hooks_change_what_the_other_made(tmp_path: Path) -> None:
    folder = Path(tempfile.mkdtemp(prefix="test-workspaces-"))  # every user can reach it
    folder.chmod(0o755)
    uid = 61_000 + os.getpid() % 4_000  # the users of the image belong to other tests' containers
    head = ChildUser(uid, folder, folder)
    judge = replace(head, uid=uid + 4_000, group=uid)
    made = "umask 077; mkdir -p {0}; echo {0} > {0}/file; chmod -R go= {0}"
    change = "echo more >> {0}/file && echo new > {0}/new && rm -r {0}"

    async def sh(script: str, user: ChildUser, path: Path) -> int:
        ran = process.run(
            ("sh", "-ec", script),
            cwd=path,
            environment=workspaces.ENVIRONMENT,
            timeout=60,
            user=user,
        )
        return (await ran).returncode

    async def work() -> list[int]:
        root = workspaces.suite(folder / "repository", "  template: start", START)
        job = workspaces.run(root, folder / "scratch", isolation=Isolation(root, head, head, judge))
        session = await job.enter()
        codes = [await sh(made.format("agent"), head, session.path)]
        await session.diff()
        codes += [await sh(change.format("agent"), judge, session.path)]
        codes += [await sh("mkdir judge; echo x > judge/file", judge, session.path)]
        codes += [await sh(change.format("judge"), head, session.path)]
        await session.leave(failed=False)
        await job.workspaces.close()
        return codes

    try:
        assert asyncio.run(work()) == [0, 0, 0, 0]
    finally:
        shutil.rmtree(folder)
