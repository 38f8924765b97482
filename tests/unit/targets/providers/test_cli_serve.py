import asyncio
import os
import sys
import textwrap
from collections.abc import Sequence
from pathlib import Path
from typing import Any

import pytest

from agentevals_action.errors import AttemptError
from agentevals_action.targets.base import Provider
from tests.support import targets
from tests.support.processes import gone

LOOP = """
import json, os, sys
def send(**answer): print(json.dumps(answer), flush=True)
for line in sys.stdin:
    question = json.loads(line)
    call, prompt = question["call"], question["prompt"]
"""


def serve(root: Path, body: str, *prompts: str, **request: Any) -> list[str]:
    """The answers and errors of a program whose loop over its input has this body."""
    (root / "agent.py").write_text(LOOP + textwrap.indent(textwrap.dedent(body), "    "))

    async def run() -> list[str]:
        provider = connect()
        try:
            return [await outcome(provider, root, prompt, **request) for prompt in prompts]
        finally:
            await provider.close()

    return asyncio.run(run())


def connect(command: Any = (sys.executable, "agent.py")) -> Provider:
    options = targets.options({"provider": "cli", "command": command, "serve": True})
    return options.connect(targets.context({"PATH": os.environ["PATH"]}))


async def outcome(provider: Provider, root: Path, prompt: str, **request: Any) -> str:
    try:
        return (await provider.complete(targets.request(root, prompt, **request))).output
    except AttemptError as error:
        return f"{error.kind}: {error}"


def test_complete__one_process_answers_many_lines(tmp_path: Path) -> None:
    first, second = serve(tmp_path, "send(call=call, reply=f'{prompt} {os.getpid()}')", "a", "b\nc")
    assert first.startswith("a ")
    assert second == f"b\nc {first.split()[1]}"


def test_complete__a_script_can_be_a_worker(tmp_path: Path) -> None:
    """A program in another language: it needs no JSON library to repeat what it is asked."""
    script = """while read -r line; do
        call=${line#*'"call": '}; echo "{\\"call\\": ${call%%,*}, \\"reply\\": \\"from sh\\"}"
    done"""

    async def run() -> list[str]:
        provider = connect(script)
        try:
            return [await outcome(provider, tmp_path, prompt) for prompt in ("a", "b")]
        finally:
            await provider.close()

    assert asyncio.run(run()) == ["from sh", "from sh"]


def test_complete__a_question_has_the_test_and_its_messages(tmp_path: Path) -> None:
    (answer,) = serve(
        tmp_path,
        """
        del question["call"]
        send(call=call, reply="got " + json.dumps(question, sort_keys=True))
        """,
        "hello",
        metadata={"team": "core"},
        conversation_id="talk",
        eval_id="t1",
    )
    assert answer == (
        'got {"conversation_id": "talk", "messages": [{"content": "hello", "role": "user"}], '
        '"metadata": {"team": "core"}, "prompt": "hello", "test_id": "t1", "workspace": null}'
    )


def test_complete__each_workspace_has_a_process(tmp_path: Path) -> None:
    """A program that knows nothing of workspaces must not edit the files of another test."""
    folders = [tmp_path / name for name in ("one", "two")]
    for folder in folders:
        folder.mkdir()
    body = "send(call=call, reply=f'{os.getcwd()} {os.environ.get(\"WORKSPACE_PATH\")}')"
    (tmp_path / "agent.py").write_text(LOOP + textwrap.indent(body, "    "))

    async def run() -> Sequence[str]:
        provider = connect()
        try:
            return [
                await outcome(provider, tmp_path, "a", workspace=one) for one in (*folders, None)
            ]
        finally:
            await provider.close()

    expected = [*(f"{folder} {folder}" for folder in folders), f"{tmp_path} None"]
    assert asyncio.run(run()) == expected


@pytest.mark.parametrize(
    ("statement", "problem"),
    [
        ("print('Loading …', flush=True)", "the worker wrote 'Loading …' to its standard output: "),
        ("send(reply='x')", "the reply is not an answer of a worker: `call` is missing"),
        ("send(call=call + 1, reply='x')", "the worker answered call 2, and was asked call 1"),
        ("send(call=call, error='no stock')", "no stock"),
        ("send(call=call)", "the answer is empty (null)"),
        ("sys.exit('out of order')", "the worker ended with exit code 1: out of order"),
        ("os.close(1); prompt = input()", "the worker closed its standard output"),
    ],
)
def test_complete__what_is_not_an_answer_is_an_error_of_its_test(
    tmp_path: Path, statement: str, problem: str
) -> None:
    body = f"""
        if prompt == "bad":
            {statement}
        else:
            send(call=call, reply="fine")
        """
    error, after = serve(tmp_path, body, "bad", "good")
    assert error.startswith("target: ")
    assert problem in error
    assert after == "fine"


def test_complete__an_answer_too_many_is_not_that_of_the_next_test(tmp_path: Path) -> None:
    # One write, so that both lines are there when the first is read.
    body = """
        answer = json.dumps({"call": call, "reply": prompt}) + "\\n"
        sys.stdout.write(answer * 2 if prompt == "a" else answer)
        sys.stdout.flush()
        """
    first, second, third = serve(tmp_path, body, "a", "b", "c")
    assert first == "target: the worker wrote more than its answer to its standard output"
    assert (second, third) == ("b", "c")


def test_complete__an_answer_of_another_call_is_an_error(tmp_path: Path) -> None:
    body = "send(call=call - (prompt == 'b'), reply=prompt)"
    assert serve(tmp_path, body, "a", "b", "c") == [
        "a",
        "target: the worker answered call 1, and was asked call 2",
        "c",
    ]


@pytest.mark.slow
def test_complete__a_time_out_ends_the_process(tmp_path: Path) -> None:
    body = """
        if prompt == "slow":
            print(os.getpid(), file=sys.stderr, flush=True)
            sys.stdin.read()
        send(call=call, reply="fine")
        """
    slow, after = serve(tmp_path, body, "slow", "b", timeout=5)
    assert slow.startswith("timeout: no answer within 5 s: ")
    assert gone(int(slow.split()[-1]))
    assert after == "fine"


def test_complete__a_command_that_does_not_exist_is_named(tmp_path: Path) -> None:
    error = asyncio.run(outcome(connect(["nothing-like-it"]), tmp_path, "a"))
    assert error.startswith("target: the command cannot be started: ")
    assert "nothing-like-it" in error


@pytest.mark.parametrize(
    ("fields", "name"),
    [
        ({"command": "agent {PROMPT}"}, "{PROMPT}"),
        ({"command": ["agent", "--out={OUTPUT_FILE}"]}, "{OUTPUT_FILE}"),
        ({"command": "agent", "files_format": "-f {path}"}, "`files_format`"),
    ],
)
def test_serve__has_no_placeholders(fields: dict[str, Any], name: str) -> None:
    with pytest.raises(ValueError, match="on standard input") as caught:
        targets.options({"provider": "cli", "serve": True, **fields})
    assert name in str(caught.value)
