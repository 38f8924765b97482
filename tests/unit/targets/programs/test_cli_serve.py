"""`cli` with `serve`: programs that stay, and answer each line with a line."""

import json
import sys
import textwrap
from pathlib import Path
from typing import Any

import pytest

from tests.support import targets
from tests.support.processes import gone

LOOP = """
import json, os, sys
def send(**answer): print(json.dumps(answer), flush=True)
for line in sys.stdin:
    question = json.loads(line)
    call, prompt = question["call"], question["prompt"]
"""
#: A program in another language: it needs no JSON library to repeat what it is asked.
SCRIPT = """while read -r line; do
    call=${line#*'"call": '}; echo "{\\"call\\": ${call%%,*}, \\"reply\\": \\"from sh\\"}"
done"""


def serve(root: Path, body: str, *prompts: str, **request: Any) -> list[str]:
    """The answers and errors of a program whose loop over its input has this body."""
    (root / "agent.py").write_text(LOOP + textwrap.indent(textwrap.dedent(body), "    "))
    return ask(root, [sys.executable, "agent.py"], *prompts, **request)


def ask(root: Path, command: Any, *prompts: str, **request: Any) -> list[str]:
    requests = [targets.request(root, prompt, **request) for prompt in prompts]
    definition = {"provider": "cli", "command": command, "serve": True}
    return [*map(targets.shown, targets.outcomes(definition, *requests))]


def test_complete__one_process_answers_many_lines(tmp_path: Path) -> None:
    first, second = serve(tmp_path, "send(call=call, reply=f'{prompt} {os.getpid()}')", "a", "b\nc")
    assert second == f"b\nc {first.removeprefix('a ')}"
    assert ask(tmp_path, SCRIPT, "a", "b") == ["from sh", "from sh"]


def test_complete__a_question_has_the_test_and_its_messages(tmp_path: Path) -> None:
    body = "send(call=call, reply='got ' + json.dumps(question))"
    request = {"metadata": {"team": "core"}, "conversation_id": "talk", "eval_id": "t1"}
    (answer,) = serve(tmp_path, body, "hello", **request)
    assert json.loads(answer.removeprefix("got ")) == {
        "call": 1,
        "prompt": "hello",
        "messages": [{"role": "user", "content": "hello"}],
        "test_id": "t1",
        "conversation_id": "talk",
        "metadata": {"team": "core"},
        "workspace": None,
        "mcp": None,
    }


def test_complete__each_workspace_has_a_process(tmp_path: Path) -> None:
    """A program that knows nothing of workspaces must not edit the files of another test."""
    folders = [tmp_path / name for name in ("one", "two")]
    for folder in folders:
        folder.mkdir()
    body = "send(call=call, reply=f'{os.getcwd()} {os.environ.get(\"WORKSPACE_PATH\")}')"
    found = [serve(tmp_path, body, "a", workspace=folder) for folder in (*folders, None)]
    assert found == [[f"{folder} {folder}"] for folder in folders] + [[f"{tmp_path} None"]]


@pytest.mark.parametrize(
    ("statement", "problem"),
    [
        ("print('Loading …', flush=True)", "the worker wrote 'Loading …' to its standard output: "),
        ("send(reply='x')", "the reply is not an answer of a worker: `call` is missing"),
        ("send(call=call + 1, reply='x')", "the worker answered call 2, and was asked call 1"),
        ("send(call=call, error='')", "the agent failed without a message"),
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


def test_complete__a_process_that_ended_is_replaced_and_asked_again(tmp_path: Path) -> None:
    """A server that serves one request. The next one may be on its way when it ends."""
    body = "send(call=call, reply=f'{prompt} {os.getpid()}'); sys.exit(3)"
    answers = serve(tmp_path, body, *map(str, range(8)))
    assert [answer.split()[0] for answer in answers] == [*map(str, range(8))]
    assert len({answer.split()[1] for answer in answers}) == 8


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
    (error,) = ask(tmp_path, ["nothing-like-it"], "a")
    assert error.startswith("target: the command cannot be started: ")
    assert "nothing-like-it" in error
