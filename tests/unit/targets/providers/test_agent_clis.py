"""What `claude-cli`, `codex-cli`, `copilot-cli` and `gemini-cli` have in common; their streams have
tests of their own."""

import json
import sys
import tomllib
from pathlib import Path
from typing import Any

import pytest

from agentevals_action.errors import AttemptError, TargetDead
from agentevals_action.model.suite import Message
from agentevals_action.system.files.paths import Folder
from agentevals_action.targets.agents.stream import StreamEvent as StreamEvent
from agentevals_action.targets.message_texts import prompt_text
from tests.support import agent_programs, targets
from tests.support.agent_runs import AgentRun

NAMES = ("claude", "codex", "copilot", "gemini")
SAID = {
    "claude": agent_programs.claude_said,
    "codex": agent_programs.codex_said,
    "copilot": agent_programs.copilot_said,
    "gemini": agent_programs.gemini_said,
}

each = pytest.mark.parametrize("name", NAMES)


@each
def test_complete__the_prompt_comes_on_standard_input(name: str, tmp_path: Path) -> None:
    prompt = "echo $(touch pwned) '\n--model evil " + "x" * 300_000
    seen = AgentRun(name, tmp_path).seen(prompt)
    assert seen["prompt"] == prompt
    assert not any("pwned" in word for word in seen["words"])
    assert not (tmp_path / "pwned").exists()


@each
def test_complete__several_messages_are_headed_blocks(name: str, tmp_path: Path) -> None:
    run = AgentRun(name, tmp_path).printing(SAID[name]("fine"))
    seen = run.seen(Message("assistant", "hello"), "q")
    assert seen["prompt"] == "@[Assistant]:\nhello\n\n@[User]:\nq"


#: The options of the programs for a system prompt beside their own, with its value.
SYSTEM_OPTIONS = {
    "claude": ("--append-system-prompt", "{}"),
    "codex": ("-c", "developer_instructions={}"),
}


@each
def test_complete__system_messages_go_to_the_programs_own_option(name: str, tmp_path: Path) -> None:
    run = AgentRun(name, tmp_path).printing(SAID[name]("fine"))
    asked = Message("system", "be brief"), Message("system", "and kind"), "q"
    seen = run.seen(*asked)
    if name != "claude":  # whose `system_prompt` replaces its own
        again = run.seen(*asked[1:], system_prompt="be brief")
        assert (again["words"], again["prompt"]) == (seen["words"], seen["prompt"])
    if name not in SYSTEM_OPTIONS:
        system = "@[System]:\nbe brief\n\n@[System]:\nand kind\n\n"
        assert seen["prompt"] == f"{system}@[User]:\nq"
        return
    option, value = SYSTEM_OPTIONS[name]
    text = "be brief\n\nand kind"
    assert seen["prompt"] == "q"
    assert seen["words"][seen["words"].index(option) + 1] == value.format(
        json.dumps(text) if name == "codex" else text
    )


@pytest.mark.parametrize("name", SYSTEM_OPTIONS)
@pytest.mark.parametrize("case", ["too long", "NUL", "in args", "later", "alone"])
def test_complete__system_messages_that_no_option_can_carry_precede_the_prompt(
    name: str, case: str, tmp_path: Path
) -> None:
    run = AgentRun(name, tmp_path).printing(SAID[name]("fine"))
    option = SYSTEM_OPTIONS[name]
    text = {"too long": "x" * 200_000, "NUL": "a\0b"}.get(case, "brief")
    args = [option[0], option[1].format("mine")] if case == "in args" else []
    system, asked = Message("system", text), Message("user", "q")
    messages = {"later": (asked, system), "alone": (system,)}.get(case, (system, asked))
    seen = run.seen(*messages, args=args)
    assert seen["prompt"] == prompt_text(messages)
    assert text not in seen["words"]


def test_complete__a_system_message_for_codex_is_a_toml_string(tmp_path: Path) -> None:
    text = '"x"\n[evil]\ny = 1 \x7f\x01 \\ ü\U0001f600 \u2028'
    run = AgentRun("codex", tmp_path).printing(SAID["codex"]("fine"))
    words = run.seen(Message("system", text), "q")["words"]
    value = next(word for word in words if word.startswith("developer_instructions="))
    assert tomllib.loads(value) == {"developer_instructions": text}


def test_complete__a_system_message_for_claude_follows_that_of_the_target(tmp_path: Path) -> None:
    run = AgentRun("claude", tmp_path).printing(SAID["claude"]("fine"))
    words = run.seen(Message("system", "brief"), "q", append_system_prompt="be kind")["words"]
    # Of an option that stands there twice, the program takes the last one.
    assert words[-2:] == ["--append-system-prompt", "be kind\n\nbrief"]


@each
def test_complete__the_model_and_more_words(name: str, tmp_path: Path) -> None:
    more = {
        "claude": ["--permission-mode", "acceptEdits"],
        "codex": ["--sandbox", "workspace-write"],
        "copilot": ["--allow-tool", "write"],
        "gemini": ["--approval-mode", "auto_edit"],
    }[name]
    words = AgentRun(name, tmp_path).seen(model="some-model", args=more)["words"]
    assert words[words.index("--model") + 1] == "some-model"
    assert words[words.index(more[0]) + 1] == more[1]


@each
def test_complete__gives_no_permission_that_was_not_asked_for(name: str, tmp_path: Path) -> None:
    words = " ".join(AgentRun(name, tmp_path).seen()["words"])
    assert not any(
        sign in words
        for sign in (
            "--model",
            "allow",
            "skip-permissions",
            "sandbox",
            "bypass",
            "yolo",
            "full-auto",
        )
    )


@each
def test_complete__sees_a_scrubbed_environment(name: str, tmp_path: Path) -> None:
    allowed = {"AGENT_KEY": "k", "AGENT_URL": "u", "GITHUB_TOKEN": "ghs_1"}
    every = AgentRun(name, tmp_path, allowed).seen()["environment"]
    assert {"AGENT_KEY", "AGENT_URL"} <= every.keys()
    assert "GITHUB_TOKEN" not in every
    picked = AgentRun(name, tmp_path, allowed).seen(env=["AGENT_URL", "STAND_IN_SEEN"])[
        "environment"
    ]
    assert "AGENT_URL" in picked
    assert "AGENT_KEY" not in picked
    error = AgentRun(name, tmp_path, allowed).refused(env=["OTHER_KEY"])
    assert (error.kind, "OTHER_KEY" in str(error)) == ("configuration", True)


@each
def test_complete__runs_in_the_workspace(name: str, tmp_path: Path) -> None:
    suite, workspace = tmp_path / "suite", tmp_path / "workspace"
    suite.mkdir()
    workspace.mkdir()
    (suite / "agent.py").write_text(Path(agent_programs.__file__).read_text())
    command = [sys.executable, "agent.py", name]
    run = AgentRun(name, tmp_path)
    assert run.seen(request={"folder": suite}, command=command)["cwd"] == str(suite)
    seen = run.seen(request={"folder": suite, "workspace": workspace}, command=command)
    assert (seen["cwd"], seen["environment"]["WORKSPACE_PATH"]) == (str(workspace), str(workspace))
    assert run.seen(request={"folder": suite, "workspace": workspace}, command=command, cwd=".")[
        "cwd"
    ] == str(suite)


@each
def test_complete__a_command_may_be_one_text(name: str, tmp_path: Path) -> None:
    assert (
        AgentRun(name, tmp_path).answer(command=" ".join(agent_programs.program(name))).output
        == "hello"
    )


@each
def test_complete__a_program_that_is_not_installed_ends_the_target(
    name: str, tmp_path: Path
) -> None:
    for command in ("no-such-agent-here", "./no-such-agent-here"):
        error = AgentRun(name, tmp_path).refused(command=command)
        assert isinstance(error, TargetDead)
        assert f"is not installed: there is no command '{command}'" in str(error)
        assert "`setup` (`npm install -g @" in error.hint


@each
def test_complete__an_interpreter_that_is_missing_is_told(name: str, tmp_path: Path) -> None:
    agent = tmp_path / "agent"
    agent.write_text("#!/usr/bin/env no-such-interpreter\n")
    agent.chmod(0o755)
    error = AgentRun(name, tmp_path).refused(command="./agent")
    assert "ended with exit code 127" in str(error)
    assert "no-such-interpreter" in str(error)
    assert "`setup`" in error.hint


@each
def test_complete__no_login_ends_the_target(name: str, tmp_path: Path) -> None:
    error = AgentRun(name, tmp_path, withheld=("ANTHROPIC_API_KEY",)).refused("hello")
    assert isinstance(error, TargetDead)
    assert "the workflow's input `env`" in error.hint
    assert "variables withheld from it: ANTHROPIC_API_KEY" in error.hint


@each
def test_complete__no_login_told_before_there_is_a_stream_ends_the_target(
    name: str, tmp_path: Path
) -> None:
    told = "Error: Authentication token found but could not be validated.\n\n  GitHub returned: Bad credentials\n"
    assert isinstance(AgentRun(name, tmp_path).printing(told, code=1).refused(), TargetDead)
    assert isinstance(
        AgentRun(name, tmp_path).printing("", code=1, says="Not logged in\n").refused(), TargetDead
    )


@each
def test_complete__a_crash_is_an_error_with_the_last_lines(name: str, tmp_path: Path) -> None:
    error = (
        AgentRun(name, tmp_path)
        .printing(SAID[name]("hello"), code=3, says="first\nTypeError: boom\n")
        .refused()
    )
    assert (type(error), error.kind) == (AttemptError, "target")
    assert str(error).endswith("the command ended with exit code 3:\nfirst\nTypeError: boom")


@each
def test_complete__a_stream_that_is_cut_is_an_error(name: str, tmp_path: Path) -> None:
    whole = SAID[name]("hello")
    without_end = "".join(whole.splitlines(keepends=True)[:-1])
    assert "its stream ended before the run did" in str(
        AgentRun(name, tmp_path).printing(without_end).refused()
    )
    cut = AgentRun(name, tmp_path).printing(whole[:-20]).refused()
    assert "of its stream is not valid JSON: {" in str(cut)
    assert len(str(cut)) < 300


@each
@pytest.mark.parametrize("stream", ["", "\n\n", "hello\n", '{"result": "no type"}\n', "[1]\n"])
def test_complete__no_stream_is_an_error(name: str, stream: str, tmp_path: Path) -> None:
    assert "it wrote no JSON stream" in str(AgentRun(name, tmp_path).printing(stream).refused())


@each
def test_complete__what_stands_beside_the_stream_and_what_is_unknown_is_passed_over(
    name: str, tmp_path: Path
) -> None:
    unknown = agent_programs.lines(
        {"type": "brand.new", "data": [1], "item": 5, "message": None},
        {"type": "assistant.later", "data": "x"},
    )
    stream = f"Warning: an update is there\n\n{unknown}{SAID[name]('hello')}"
    assert AgentRun(name, tmp_path).printing(stream).answer().output == "hello"


@each
def test_complete__a_huge_line_is_read(name: str, tmp_path: Path) -> None:
    text = "0123456789abcdef" * 100_000
    assert AgentRun(name, tmp_path).printing(SAID[name](text)).answer().output == text


@each
def test_complete__nothing_said_is_an_error(name: str, tmp_path: Path) -> None:
    assert "it succeeded without an answer" in str(
        AgentRun(name, tmp_path).printing(SAID[name]("")).refused()
    )


@each
def test_complete__a_time_out(name: str, tmp_path: Path) -> None:
    error = AgentRun(name, tmp_path).refused(
        command=["sh", "-c", "echo thinking >&2; sleep 300"], request={"timeout": 0.5}
    )
    product = {
        "claude": "Claude Code",
        "codex": "Codex",
        "copilot": "Copilot",
        "gemini": "Gemini CLI",
    }[name]
    problem = f"no answer within 0.5 s: {product} did not end"
    assert (error.kind, str(error)) == ("timeout", f"{problem}:\nthinking")


@each
def test_files__words_that_are_files_of_the_repository(name: str, tmp_path: Path) -> None:
    (tmp_path / "agent.py").write_text("x")
    (tmp_path / "mcp.json").write_text("x")
    options = targets.options(
        {
            "provider": f"{name}-cli",
            "command": "python3 agent.py",
            "args": ["--mcp-config=mcp.json", "/etc/passwd"],
        }
    )
    assert options.files(Folder(tmp_path, tmp_path)) == ("agent.py", "mcp.json")
    assert options.variables() == ()


@each
@pytest.mark.parametrize(
    ("fields", "problem"),
    [
        ({"command": ""}, "the command is empty"),
        ({"command": []}, "the command is empty"),
        ({"command": "agent 'x"}, "its quotes are wrong"),
        ({"args": "--x"}, "args"),
        ({"model": ""}, "model"),
        ({"env": "KEY"}, "env"),
    ],
    ids=str,
)
def test_options__what_is_wrong_is_refused_on_loading(
    name: str, fields: dict[str, Any], problem: str
) -> None:
    with pytest.raises(ValueError, match=problem):
        targets.options({"provider": f"{name}-cli", **fields})
