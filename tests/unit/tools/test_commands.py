"""Stubs of commands: real processes that print what the session of an attempt answers."""

import asyncio
import os
import stat
from asyncio.subprocess import PIPE
from pathlib import Path

import pytest

from agentevals_action.model.tools import ToolAccess
from agentevals_action.tools.mcp import serve_tools
from tests.support.tool_sessions import calls, shop_session

VIEW = ("gh", "pr", "view", "7")


async def start(
    folder: Path, *words: str, stdin: int | None = None, shell: str = ""
) -> asyncio.subprocess.Process:
    path = f"{folder}{os.pathsep}{os.defpath}"
    command = ("sh", "-c", shell) if shell else words
    return await asyncio.create_subprocess_exec(
        *command, stdin=stdin, stdout=PIPE, stderr=PIPE, env={"PATH": path}
    )


async def finish(
    process: asyncio.subprocess.Process, stdin: bytes | None = None
) -> tuple[int | None, str, str]:
    output, errors = await process.communicate(stdin)
    return process.returncode, output.decode(), errors.decode()


def write_stubs(access: ToolAccess, folder: Path) -> Path:
    stubs = folder / "its stubs"
    stubs.mkdir()
    for name, text in access.stubs.items():
        (stubs / name).write_text(text, "utf-8")
        (stubs / name).chmod(0o700)
    return stubs


@pytest.mark.parametrize(
    ("shell", "result"),
    [
        ("gh pr view 7", (3, "seven\n", "warned\n")),
        ("gh 'a b' '' ü \"$'\"", (0, "ünder", "")),
        ("gh pr view 7 2>&1 | tr a-z A-Z", (0, "SEVEN\nWARNED\n", "")),
        ("gh pr view 7 >&-; echo $?", (0, "3\n", "warned\n")),
        ("printf ü | wc -l", (0, "1\n", "")),
        ("wc -l </dev/null", (0, "?\n", "")),
        ("gh pr close", (64, "", "The test has no reply for this call of gh.\n")),
    ],
)
def test_stub__prints_what_the_session_answers(
    shell: str, result: tuple[int, str, str], tmp_path: Path
) -> None:
    async def run() -> tuple[int | None, str, str]:
        async with serve_tools(shop_session()) as access:
            stubs = write_stubs(access, tmp_path)
            return await finish(await start(stubs, shell=shell))

    assert asyncio.run(run()) == result


def test_stub__does_not_read_an_input_that_decides_nothing(tmp_path: Path) -> None:
    async def run() -> int | None:
        async with serve_tools(shop_session()) as access:
            process = await start(write_stubs(access, tmp_path), *VIEW, stdin=PIPE)
            return await process.wait()  # its input is still open

    assert asyncio.run(run()) == 3


def test_stub__is_refused_after_the_end(tmp_path: Path) -> None:
    async def run() -> tuple[int | None, str, str]:
        session = shop_session()
        async with serve_tools(session) as access:
            stubs = write_stubs(access, tmp_path)
            assert (await finish(await start(stubs, *VIEW)))[0] == 3
        ended = await finish(await start(stubs, *VIEW))
        made = {"line": "pr view 7", "args": ["pr", "view", "7"]}
        assert calls(session) == [("gh", made)]
        return ended

    code, output, errors = asyncio.run(run())
    assert (code, output, errors.count("\n")) == (64, "", 1)
    assert "Connection refused" in errors


def test_stub__belongs_to_its_user_alone(tmp_path: Path) -> None:
    async def run() -> Path:
        async with serve_tools(shop_session()) as access:
            return write_stubs(access, tmp_path) / "gh"

    assert stat.S_IMODE(asyncio.run(run()).stat().st_mode) == stat.S_IRWXU
