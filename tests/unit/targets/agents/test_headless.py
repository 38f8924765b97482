"""What all command-line agents have in common, by a stand-in for each; `test_streams` has their
streams."""

import json
import shlex
import tomllib
from collections.abc import Sequence
from pathlib import Path
from typing import Any

import pytest

from agentevals_action.errors import AttemptError, TargetDead
from agentevals_action.model.messages import Message
from agentevals_action.targets.message_texts import prompt_text
from tests.support import agent_programs
from tests.support.agent_programs import AgentRun, answer_stream, lines

TITLES = {
    "claude": "Claude Code",
    "codex": "Codex",
    "copilot": "Copilot",
    "gemini": "Gemini CLI",
}
SYSTEM = Message("system", "be brief"), Message("system", "and kind")
MORE = {"model": "m", "args": ["--x"]}
CLAUDE = "-p --output-format stream-json --verbose"
CODEX = "exec --json --color never --skip-git-repo-check"
INSTRUCTIONS = """-c 'developer_instructions="be brief\\n\\nand kind"'"""

each = pytest.mark.parametrize("name", TITLES)


@pytest.mark.parametrize(
    ("name", "fields", "messages", "expected"),
    [
        ("claude", {}, (), CLAUDE),
        (
            *("claude", MORE, SYSTEM),
            f"{CLAUDE} --model m --append-system-prompt 'be brief\n\nand kind' --x",
        ),
        ("codex", {}, (), f"{CODEX} -"),
        ("codex", MORE, SYSTEM, f"{CODEX} --model m --x {INSTRUCTIONS} -"),
        ("copilot", MORE, SYSTEM, "--output-format json --no-color --no-ask-user --model m --x"),
        (
            *("gemini", MORE, SYSTEM),
            "--output-format stream-json --skip-trust --allowed-tools=activate_skill --model m --x",
        ),
    ],
)
def test_complete__the_command_line(
    name: str, fields: Any, messages: Sequence[Message], expected: str, tmp_path: Path
) -> None:
    words = AgentRun(name, tmp_path).seen(*messages, "q", **fields).words
    assert words == shlex.split(expected)


@each
def test_complete__the_prompt_is_standard_input(name: str, tmp_path: Path) -> None:
    run, prompt = AgentRun(name, tmp_path), "echo $(touch pwned) '\n--model evil " + "x" * 300_000
    assert run.seen(prompt).prompt == prompt
    assert not (tmp_path / "pwned").exists()
    messages = (*SYSTEM, Message("assistant", "hello"), Message("user", "q"))
    carried = name in ("claude", "codex")
    assert run.seen(*messages).prompt == prompt_text(messages[2:] if carried else messages)


@pytest.mark.parametrize(
    ("name", "marker"), [("claude", "--append-system-prompt"), ("codex", "developer_instructions=")]
)
@pytest.mark.parametrize("case", ["too long", "NUL", "in args", "later", "alone"])
def test_complete__system_messages_that_no_option_can_carry_precede_the_prompt(
    name: str, marker: str, case: str, tmp_path: Path
) -> None:
    text = {"too long": "x" * 200_000, "NUL": "a\0b"}.get(case, "brief")
    args = [marker, "mine"] if case == "in args" else []
    system, asked = Message("system", text), Message("user", "q")
    messages = {"later": (asked, system), "alone": (system,)}.get(case, (system, asked))
    seen = AgentRun(name, tmp_path).seen(*messages, args=args)
    assert seen.prompt == prompt_text(messages)
    assert text not in seen.words


def test_complete__a_system_message_for_codex_is_a_toml_string(tmp_path: Path) -> None:
    text = '"x"\n[evil]\ny = 1 \x7f\x01 \\ ü\U0001f600 \u2028'
    words = AgentRun("codex", tmp_path).seen(Message("system", text), "q").words
    assert tomllib.loads(words[-2]) == {"developer_instructions": text}


@each
def test_complete__runs_in_the_workspace(name: str, tmp_path: Path) -> None:
    suite, workspace = tmp_path / "suite", tmp_path / "workspace"
    suite.mkdir()
    workspace.mkdir()
    shell, stand_in, *streams = agent_programs.program(name)
    (suite / "agent.sh").write_text(Path(stand_in).read_text())
    fields: dict[str, Any] = {"command": [shell, "agent.sh", *streams]}
    request = {"folder": suite, "workspace": workspace}
    run = AgentRun(name, tmp_path)
    assert run.seen(request={"folder": suite}, **fields).cwd == str(suite)
    seen = run.seen(request=request, **fields)
    assert (seen.cwd, seen.environment["WORKSPACE_PATH"]) == (str(workspace), str(workspace))
    assert run.seen(request=request, cwd=".", **fields).cwd == str(suite)


@each
@pytest.mark.parametrize("command", ["no-such-agent-here", "./no-such-agent-here"])
def test_complete__a_program_that_is_not_installed_ends_the_target(
    name: str, command: str, tmp_path: Path
) -> None:
    error = AgentRun(name, tmp_path).refused(command=command)
    assert isinstance(error, TargetDead)
    assert f"is not installed: there is no command '{command}'" in str(error)
    assert "`setup` (`npm install -g @" in error.hint


@each
def test_complete__no_login_ends_the_target(name: str, tmp_path: Path) -> None:
    run = AgentRun(name, tmp_path, withheld=("ANTHROPIC_API_KEY",))
    message = "Error: Authentication token found but could not be validated.\nBad credentials\n"
    for error in (
        run.refused("hello"),
        run.printing(message, code=1).refused(),
        run.printing("", code=1, says="Not logged in\n").refused(),
    ):
        assert isinstance(error, TargetDead)
        assert "in the input `env` (`--env`)" in error.hint
        assert "variables withheld from it: ANTHROPIC_API_KEY" in error.hint


@each
@pytest.mark.parametrize("case", ["crash", "cut", "broken", "empty", "text", "list", "no answer"])
def test_complete__a_run_that_is_not_complete_is_an_error(
    name: str, case: str, tmp_path: Path
) -> None:
    stream = answer_stream(name, "hello")
    code, says, text, problem = {
        "crash": (3, "first\nboom\n", stream, " ended with exit code 3:\nfirst\nboom"),
        "cut": (0, "", stream[: stream.rindex("\n", 0, -1)], ": its stream ended before the run"),
        "broken": (0, "", stream[:-20], " of its stream is not valid JSON: {"),
        "empty": (0, "", "\n\n", ": it wrote no JSON stream"),
        "text": (0, "", 'hello\n{"result": "no type"}\n', ": it wrote no JSON stream"),
        "list": (0, "", "[1]\n", ": it wrote no JSON stream"),
        "no answer": (0, "", answer_stream(name, ""), ": it succeeded without an answer"),
    }[case]
    error = AgentRun(name, tmp_path).printing(text, code, says).refused()
    assert (type(error), error.kind) == (AttemptError, "target")
    assert str(error).startswith(TITLES[name])
    assert problem in str(error)
    assert len(str(error)) < 300


@each
def test_complete__other_lines_and_unknown_events_are_passed_over(
    name: str, tmp_path: Path
) -> None:
    unknown = lines({"type": "brand.new", "data": [1], "item": 5, "message": None})
    text = "0123456789abcdef" * 100_000
    stream = f"Warning: an update is there\n\n{unknown}{answer_stream(name, text)}"
    assert AgentRun(name, tmp_path).printing(stream).answer().output == text


@each
def test_complete__a_time_out(name: str, tmp_path: Path) -> None:
    command = ["sh", "-c", "echo thinking >&2; sleep 300"]
    error = AgentRun(name, tmp_path).refused(command=command, request={"timeout": 0.5})
    expected = f"{TITLES[name]} did not end within 0.5 s: thinking"
    assert (error.kind, str(error)) == ("timeout", expected)


def test_complete__a_refused_login_counts_at_a_time_out(tmp_path: Path) -> None:
    message = {"type": "error", "message": "unexpected status 401 Unauthorized"}
    command = ["sh", "-c", f"echo '{json.dumps(message)}'; sleep 300"]
    error = AgentRun("codex", tmp_path).refused(command=command, request={"timeout": 0.5})
    assert isinstance(error, TargetDead)


def retries(status: int) -> list[str]:
    """A recorded retry of Claude Code, which goes on for 300 s."""
    event = agent_programs.recorded(f"raw-claude-E{status}").splitlines()[1]
    return ["sh", "-c", f"echo '{event}'; sleep 300"]


def test_complete__a_retry_of_a_refused_key_ends_the_target_at_once(tmp_path: Path) -> None:
    error = AgentRun("claude", tmp_path).refused(command=retries(401))
    assert isinstance(error, TargetDead)
    problem = "a call of the API failed (401 authentication_failed), attempt 1 of 1"
    assert str(error) == f"Claude Code: {problem}"
    assert "name ANTHROPIC_API_KEY" in error.hint


@pytest.mark.parametrize(
    ("status", "cause"), [(429, "429 rate_limit"), (500, "500 server_error"), (529, "529 overload")]
)
def test_complete__a_retry_is_shown_while_it_waits_and_at_its_time_out(
    status: int, cause: str, tmp_path: Path, caplog: pytest.LogCaptureFixture
) -> None:
    run = AgentRun("claude", tmp_path)
    error = run.refused(command=retries(status), request={"timeout": 1})
    shown = f"Claude Code: a call of the API failed ({cause}"
    assert [message[: len(shown)] for message in caplog.messages] == [shown]
    assert str(error).startswith(f"Claude Code did not end within 1 s: {shown}")
    assert error.kind == "timeout"
