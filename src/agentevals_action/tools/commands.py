"""Command stubs: programs in front of the agent's `PATH` that print what the suite answers."""

import json
import shlex
import sys

from pydantic import BaseModel, ConfigDict

from agentevals_action.system.loopback_server import HttpAnswer
from agentevals_action.tools import command_stub
from agentevals_action.tools.session import ToolSession


class _Question(BaseModel):
    """What a stub asks."""

    model_config = ConfigDict(strict=True)

    arguments: list[str]
    stdin: str | None


async def answer_stub(session: ToolSession, name: str, body: bytes) -> HttpAnswer:
    """The answer to a stub. ValidationError if it is none, UnknownTool."""
    asked = _Question.model_validate_json(body)
    done = await session.run_command(name, asked.arguments, asked.stdin)
    return HttpAnswer(json.dumps([done.stdout, done.stderr, done.exit_code]).encode("ascii"))


def write_stub(name: str, url: str, token: str, *, reads_stdin: bool) -> str:
    """The text of the program that stands in for a command. It contains what it needs, because an
    agent may not pass variables on."""
    host, _, port = url.removeprefix("http://").partition(":")
    facts = shlex.quote(f"{name} {host} {port} {token} {int(reads_stdin)}")
    program = shlex.join([sys.executable, "-IS", command_stub.__file__])
    return f'#!/bin/sh\nAGENTEVALS_COMMAND={facts} exec {program} "$@"\n'
