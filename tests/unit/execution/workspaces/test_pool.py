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
from collections.abc import Awaitable, Callable
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest

from agentevals_action.errors import AttemptError
from agentevals_action.system import process
from agentevals_action.system.isolation import ChildUser, Isolation
from agentevals_action.system.program import Program
from tests.support import suites, workspaces

START: dict[str, str | bytes] = {
    "start/app.py": "one\n",
    "start/sub/x": "x\n",
    "start/.gitignore": "*.log\ncache/\n",
}
FRESH = {".gitignore": "*.log\ncache/\n", "app.py": "one\n", "sub/x": "x\n"}
#: A hook that writes its name and its input into a file outside; at once, as hooks run side by
#: side.
NOTE = 'import json, sys\nopen(sys.argv[2], "a").write(json.dumps([sys.argv[1], json.load(sys.stdin)]) + "\\n")\n'
ALL_HOOKS = ("before_all", "before_each", "after_each", "after_all")


def noting(tmp_path: Path, *names: str) -> str:
    """The hooks of these names, each noted in `notes`."""
    command = f"{sys.executable}, note.py, {{}}, {tmp_path}/notes"
    hooks = (f"    {name}: {{command: [{command.format(name)}]}}\n" for name in names)
    return "  hooks:\n" + "".join(hooks)


def notes(tmp_path: Path) -> list[tuple[str, dict[str, Any]]]:
    path = tmp_path / "notes"
    return [tuple(json.loads(line)) for line in path.read_text().splitlines()] if path.exists() else []  # fmt: skip


def contents(folder: Path) -> dict[str, str]:
    files = (path for path in sorted(folder.rglob("*")) if path.is_file())
    return {path.relative_to(folder).as_posix(): path.read_text() for path in files}


def run(
    tmp_path: Path,
    workspace: str,
    work: Callable[[workspaces.Run], Awaitable[None]],
    tests: str = "",
    **options: Any,
) -> list[str]:
    """Works with the folders of a suite, closes them, and returns the notices. Nothing is left."""
    files = {**START, "note.py": NOTE}
    root = workspaces.suite(tmp_path / "repository", workspace, files, tests)
    job = workspaces.run(root, tmp_path / "scratch", **options)

    async def scenario() -> None:
        await work(job)
        await job.workspaces.close()

    asyncio.run(scenario())
    assert list((tmp_path / "scratch").iterdir()) == []
    return job.notices


def test_template__is_copied_with_modes_and_links(tmp_path: Path) -> None:
    start = tmp_path / "repository" / "start"

    async def work(job: workspaces.Run) -> None:
        (start / "app.py").chmod(0o755)
        (start / "link").symlink_to("sub/x")
        (start / "sub" / ".git").write_text("gitdir: ../../..\n")
        job.suite = suites.load_valid(tmp_path / "repository")
        folder = await job.enter()
        assert contents(folder.path) == {**FRESH, "link": "x\n"}
        assert (folder.path / "link").readlink() == Path("sub/x")
        assert stat.S_IMODE((folder.path / "app.py").stat().st_mode) == 0o755
        await job.leave(folder)

    run(tmp_path, "  template: start", work)
    assert (start / "app.py").read_text() == "one\n"


def test_template__a_link_that_leads_out_is_an_error_of_each_test(tmp_path: Path) -> None:
    async def work(job: workspaces.Run) -> None:
        (tmp_path / "repository" / "start" / "link").symlink_to("/etc/passwd")
        for number in range(2):
            with pytest.raises(AttemptError, match="the link 'link' leads out of 'start'") as error:
                await job.enter(number)
            assert error.value.kind == "workspace"

    run(tmp_path, "  template: start", work)


def test_shared__one_folder_for_the_suite(tmp_path: Path) -> None:
    async def work(job: workspaces.Run) -> None:
        first = await job.enter(0)
        (first.path / "app.py").write_text("two\n")
        assert "+two\n" in await first.changes()
        await job.leave(first)
        second = await job.enter(1)
        assert second.path == first.path
        assert (second.path / "app.py").read_text() == "two\n"
        assert await second.changes() == ""
        await job.leave(second, 1)

    assert run(tmp_path, "  template: start\n" + noting(tmp_path, *ALL_HOOKS), work) == []
    found = notes(tmp_path)
    of_suite = {
        "workspace_path": found[0][1]["workspace_path"],
        "eval_run_id": "run-1",
        "case_input": None,
        "case_metadata": None,
    }
    a = {**of_suite, "test_id": "a", "case_input": "first", "case_metadata": {"level": 1}}
    b = {**of_suite, "test_id": "b", "case_input": "second"}
    assert found == [
        ("before_all", {**of_suite, "test_id": "__before_all__"}),
        ("before_each", a),
        ("after_each", a),
        ("before_each", b),
        ("after_each", b),
        ("after_all", {**of_suite, "test_id": "__after_all__"}),
    ]


def test_shared_key__what_shares_a_folder(tmp_path: Path) -> None:
    tests = "".join(
        f"  - {{id: {name}, input: q, criteria: c{fields}}}\n"
        for name, fields in {
            "a": "",
            "b": "",
            "own": ", workspace: {repos: []}",
            "fresh": ", workspace: {isolation: per_test}",
        }.items()
    )

    async def work(job: workspaces.Run) -> None:
        a, b, own, fresh = (job.workspaces.shared_key(job.suite, test) for test in job.tests)
        assert a == b
        assert None not in (a, own)
        assert a != own
        assert fresh is None

    run(tmp_path, "  template: start", work, tests)


def test_own__a_test_with_a_workspace_has_a_folder_of_its_own(tmp_path: Path) -> None:
    hook = f"{{before_all: {{command: [{sys.executable}, note.py, own, {tmp_path}/notes]}}}}"
    tests = "  - {id: a, input: q, criteria: c}\n"
    tests += f"  - {{id: b, input: ask, criteria: c, workspace: {{hooks: {hook}}}}}\n"

    async def work(job: workspaces.Run) -> None:
        first, second = await job.enter(0), await job.enter(1)
        assert first.path != second.path
        assert contents(second.path) == FRESH
        again = await job.enter(1)
        assert again.path == second.path

    run(tmp_path, "  template: start", work, tests)
    ((_, facts),) = notes(tmp_path)
    assert (facts["test_id"], facts["case_input"]) == ("b", "ask")


def test_per_test__a_fresh_folder_for_each_sample(tmp_path: Path) -> None:
    async def work(job: workspaces.Run) -> None:
        first, second = await asyncio.gather(job.enter(0), job.enter(0))
        assert first.path != second.path
        (first.path / "app.py").unlink()
        assert await second.changes() == ""
        await job.leave(first)
        assert not first.path.exists()
        await job.leave(second)

    workspace = "  template: start\n  isolation: per_test\n" + noting(tmp_path, *ALL_HOOKS)
    run(tmp_path, workspace, work)
    found = sorted((name, facts["test_id"]) for name, facts in notes(tmp_path))
    assert found == sorted((name, "a") for name in ALL_HOOKS * 2)


def test_before_all__its_failure_is_an_error_of_every_test(tmp_path: Path) -> None:
    command = f"echo run >> {tmp_path}/runs; echo no space >&2; exit 3"

    async def work(job: workspaces.Run) -> None:
        for number in range(2):
            with pytest.raises(AttemptError) as caught:
                await job.enter(number)
            sentence = "the hook `before_all` (EVAL.yaml:7:17) ended with exit code 3: no space"
            assert str(caught.value) == sentence
            assert caught.value.kind == "workspace"
            assert "API_KEY" in caught.value.hint

    hooks = noting(tmp_path, *ALL_HOOKS[1:]) + f"    before_all: {{command: '{command}'}}"
    run(tmp_path, hooks, work)
    assert (tmp_path / "runs").read_text() == "run\n"
    assert notes(tmp_path) == []


def test_before_each__its_failure_is_an_error_of_its_test(tmp_path: Path) -> None:
    async def work(job: workspaces.Run) -> None:
        with pytest.raises(AttemptError, match=r"the hook `before_each` .* ended with exit code 1"):
            await job.enter(0)
        await job.leave(await job.enter(1), 1)

    hook = "'case {{test_id}} in a) exit 1;; esac'"
    run(tmp_path, f"  hooks: {{before_each: {{command: {hook}}}}}", work)


def test_hook__sees_the_scrubbed_environment_and_its_placeholders(tmp_path: Path) -> None:
    async def work(job: workspaces.Run) -> None:
        folder = await job.enter()
        assert (tmp_path / "path").read_text() == str(folder.path)

    script = f"env > {tmp_path}/env; printf %s {{{{workspace_path}}}} > {tmp_path}/path"
    script += f"; printf %s {{{{case_input}}}} {{{{other}}}} > {tmp_path}/input"
    tests = '  - {id: a, input: "it\'s $(id) `id`", criteria: c}\n'
    run(tmp_path, f"  hooks: {{before_each: {{command: '{script}'}}}}", work, tests)
    assert (tmp_path / "input").read_text() == "it's $(id) `id`{{other}}"
    names = {line.partition("=")[0] for line in (tmp_path / "env").read_text().splitlines()}
    assert names <= {*workspaces.ENVIRONMENT, "PWD", "OLDPWD", "SHLVL", "_"}


def test_hook__its_changes_are_not_those_of_the_agent(tmp_path: Path) -> None:
    async def work(job: workspaces.Run) -> None:
        folder = await job.enter()
        assert (folder.path / "new").read_text() == "new\n"
        assert await folder.changes() == ""
        (folder.path / "new").unlink()
        assert "-new\n" in await folder.changes()

    hook = "{command: [sh, -c, 'echo set > \"$0/app.py\"; echo new > \"$0/new\"', '{{workspace_path}}']}"
    run(tmp_path, f"  template: start\n  hooks: {{before_all: {hook}, before_each: {hook}}}", work)


def test_after_hooks__their_failures_are_notices(tmp_path: Path) -> None:
    async def work(job: workspaces.Run) -> None:
        await job.leave(await job.enter())

    hooks = "{after_each: {command: 'echo bad >&2; exit 2'}, after_all: {command: 'exit 4'}}"
    hint = "; variables withheld from it: API_KEY; name those it needs in the input `env`"
    assert run(tmp_path, f"  hooks: {hooks}", work) == [
        f"EVAL.yaml: test `a`: the hook `after_each` (EVAL.yaml:3:23) ended with exit code 2: bad{hint}",
        f"EVAL.yaml: the hook `after_all` (EVAL.yaml:3:69) ended with exit code 4{hint}",
    ]


def spoil(folder: Path) -> None:
    """What one test may leave to the next."""
    (folder / "app.py").unlink()
    (folder / "app.py").mkdir()
    (folder / "deep" / "cache").mkdir(parents=True)
    for name in ("sub/x", "new", "run.log", "cache/x", "deep/cache/y", ".gitignore"):
        (folder / name).write_text("left\n")


STRICT = {**FRESH, "cache/x": "1\n"}
FAST = {**STRICT, "cache/x": "left\n", "deep/cache/y": "left\n", "run.log": "left\n"}
NOT_RESET = {**FAST, ".gitignore": "left\n", "new": "left\n", "sub/x": "left\n"}
del NOT_RESET["app.py"]


@pytest.mark.parametrize(
    ("reset", "expected"),
    [
        ("after_each: {reset: strict}", STRICT),
        ("before_each: {reset: strict}", STRICT),
        ("after_each: {reset: fast}", FAST),
        ("before_each: {reset: fast}", FAST),
        ("after_each: {reset: none}", NOT_RESET),
    ],
)
def test_reset__between_tests(tmp_path: Path, reset: str, expected: dict[str, str]) -> None:
    async def work(job: workspaces.Run) -> None:
        first = await job.enter(0)
        spoil(first.path)
        await job.leave(first)
        second = await job.enter(1)
        assert second.path == first.path
        assert contents(second.path) == expected
        assert await second.changes() == ""
        (second.path / "sub" / "x").write_text("two\n")
        assert "+two\n" in await second.changes()
        await job.leave(second, 1)

    script = "{command: [sh, -c, 'mkdir $0/cache; echo 1 > $0/cache/x', '{{workspace_path}}']}"
    workspace = f"  template: start\n  hooks: {{before_all: {script}, {reset}}}"
    assert run(tmp_path, workspace, work) == []


def test_reset__comes_after_the_command_of_after_each(tmp_path: Path) -> None:
    async def work(job: workspaces.Run) -> None:
        first = await job.enter(0)
        (first.path / "made").write_text("by the agent\n")
        await job.leave(first)
        assert contents((await job.enter(1)).path) == FRESH

    script = f"cp $0/made {tmp_path}/collected; touch $0/leaked"
    command = f"[sh, -c, '{script}', '{{{{workspace_path}}}}']"
    hooks = f"{{after_each: {{reset: strict, command: {command}}}}}"
    assert run(tmp_path, f"  template: start\n  hooks: {hooks}", work) == []
    assert (tmp_path / "collected").read_text() == "by the agent\n"


@pytest.mark.parametrize("replacement", ["nothing", "a link", "a file"])
@pytest.mark.parametrize("mode", ["none", "fast", "strict"])
def test_shared__a_folder_that_an_agent_removed_is_made_again(
    tmp_path: Path, replacement: str, mode: str
) -> None:
    (tmp_path / "elsewhere").mkdir()
    (tmp_path / "elsewhere" / "mine").write_text("mine\n")

    async def work(job: workspaces.Run) -> None:
        first = await job.enter(0)
        shutil.rmtree(first.path)
        if replacement == "a link":
            first.path.symlink_to(tmp_path / "elsewhere")
        elif replacement == "a file":
            first.path.write_text("file\n")
        assert "-one\n" in await first.changes()
        await job.leave(first)
        second = await job.enter(1)
        assert contents(second.path) == FRESH
        await job.leave(second, 1)

    run(tmp_path, f"  template: start\n  hooks: {{after_each: {{reset: {mode}}}}}", work)
    assert (tmp_path / "elsewhere" / "mine").read_text() == "mine\n"


def test_close__removes_what_an_agent_made_unreadable(tmp_path: Path) -> None:
    async def work(job: workspaces.Run) -> None:
        folder = await job.enter()
        (folder.path / "sub").chmod(0)
        await job.leave(folder)

    try:
        run(tmp_path, "  template: start", work)
    finally:  # what is left of it pytest could not remove either
        subprocess.run(("rm", "-rf", "--", str(tmp_path / "scratch")), check=True)


@pytest.mark.skipif(os.geteuid() != 0, reason="only root can start other users' processes")
def test_judges__and_hooks_change_what_the_other_made(tmp_path: Path) -> None:
    root = Path(tempfile.mkdtemp(prefix="test-workspaces-"))  # every user can reach it
    root.chmod(0o755)
    uid = 61_000 + os.getpid() % 4_000  # the users of the image belong to other tests' containers
    head = ChildUser(uid, root, root)
    judge = replace(head, uid=uid + 4_000, group=uid)
    made = "umask 077; mkdir -p {0}; echo {0} > {0}/file; chmod -R go= {0}"
    change = "echo more >> {0}/file && echo new > {0}/new && rm -r {0}"

    async def sh(script: str, user: ChildUser, path: Path) -> None:
        program = Program(("sh", "-ec", script), path, workspaces.ENVIRONMENT, user)
        done = await process.run(program, timeout=60)
        assert done.returncode == 0, done.stderr

    async def work(job: workspaces.Run) -> None:
        folder = await job.enter()
        await sh(made.format("agent"), head, folder.path)
        await folder.changes()
        await sh(change.format("agent"), judge, folder.path)
        await sh("mkdir judge; echo x > judge/file", judge, folder.path)
        await sh(change.format("judge"), head, folder.path)
        await job.leave(folder)

    try:
        isolation = Isolation(root / "repository", head, head, judge)
        run(root, "  template: start", work, isolation=isolation)
    finally:
        shutil.rmtree(root)
