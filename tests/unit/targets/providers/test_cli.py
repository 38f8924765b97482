import asyncio
import base64
import json
import os
import sys
import tempfile
from collections.abc import Mapping
from pathlib import Path
from typing import Any

import pytest

from agentevals_action.errors import AttemptError, TargetDead
from agentevals_action.model.messages import read_message
from agentevals_action.model.suite import Block, Message, ToolCall
from agentevals_action.model.trace import Trace
from agentevals_action.model.validation.json_values import parse_json
from agentevals_action.system.files.paths import Folder
from agentevals_action.targets.base import Provider
from agentevals_action.targets.providers.cli import Cli
from tests.support import targets
from tests.support.cases import file_block

ENVIRONMENT = {"PATH": os.environ["PATH"]}


def connect(
    command: Any,
    allowed: Mapping[str, str] | None = None,
    withheld: tuple[str, ...] = (),
    **fields: Any,
) -> Provider:
    definition = {"provider": "cli", "command": command, **fields}
    return targets.options(definition).connect(
        targets.context(ENVIRONMENT, allowed, withheld=withheld)
    )


def answer(
    root: Path,
    command: Any,
    *messages: Message | str,
    request: Mapping[str, Any] | None = None,
    **fields: Any,
) -> Trace:
    return asyncio.run(
        connect(command, **fields).complete(
            targets.request(root, *(messages or ("hello",)), **(request or {}))
        )
    )


def refused(
    root: Path,
    command: Any,
    *messages: Message | str,
    request: Mapping[str, Any] | None = None,
    **fields: Any,
) -> AttemptError:
    with pytest.raises(AttemptError) as caught:
        answer(root, command, *messages, request=request, **fields)
    return caught.value


def python(code: str, *words: str) -> list[str]:
    return [sys.executable, "-c", code, *words]


def test_complete__prompt_on_standard_input_answer_on_standard_output(tmp_path: Path) -> None:
    trace = answer(tmp_path, ["cat"], "hello\nthere")
    assert (trace.output, trace.tool_calls, trace.llm_call_count, trace.usage.cost_usd) == (
        "hello\nthere",
        None,
        None,
        None,
    )


def test_complete__a_string_is_a_script(tmp_path: Path) -> None:
    assert answer(tmp_path, "cat | tr a-z A-Z; echo '!'", "hello").output == "HELLO!"


def test_complete__several_messages_are_headed_blocks(tmp_path: Path) -> None:
    assert (
        answer(tmp_path, ["cat"], Message("system", "brief"), "q").output
        == "@[System]:\nbrief\n\n@[User]:\nq"
    )


def test_complete__a_megabyte_by_standard_input_and_by_file(tmp_path: Path) -> None:
    prompt = "0123456789abcdef" * 65536
    assert answer(tmp_path, ["cat"], prompt).output == prompt
    assert answer(tmp_path, ["cat", "{PROMPT_FILE}"], prompt).output == prompt


@pytest.mark.parametrize(
    ("content", "mode", "reason", "hint"),
    [
        (None, 0, "there is no './agent.sh' in ", "set `cwd`"),
        ("#!/bin/sh\ncat\n", 0o644, "'./agent.sh' is not executable", "`chmod +x`"),
        ("#!/bin/sh\r\ncat\r\n", 0o755, "has the line ends of Windows", "those of Unix"),
        ("#!/no/such\ncat\n", 0o755, "needs '/no/such', which does not exist", "first line"),
        ("cat\n", 0o755, "the first line of './agent.sh' names no interpreter", "`#!/bin/sh`"),
    ],
)
@pytest.mark.parametrize("serve", [False, True])
def test_complete__a_program_that_cannot_be_started_is_explained(
    tmp_path: Path, content: str | None, mode: int, reason: str, hint: str, serve: bool
) -> None:
    if content is not None:
        (tmp_path / "agent.sh").write_bytes(content.encode())
        (tmp_path / "agent.sh").chmod(mode)

    error = refused(tmp_path, ["./agent.sh"], serve=serve)

    assert str(error).startswith("the command cannot be started: ")
    assert reason in str(error)
    assert hint in error.hint


def test_complete__a_megabyte_by_argument_is_an_error_with_advice(tmp_path: Path) -> None:
    for command in (["echo", "{PROMPT}"], "echo {PROMPT}"):
        error = refused(tmp_path, command, "x" * 1_048_576)
        assert (error.kind, "cannot be started" in str(error), "{PROMPT_FILE}" in error.hint) == (
            "target",
            True,
            True,
        )


@pytest.mark.parametrize(
    "prompt", ["$(touch pwned)", "'; touch pwned; '", '"$(touch pwned)"', "a\n`touch pwned`\n-e"]
)
def test_complete__a_prompt_is_never_code(tmp_path: Path, prompt: str) -> None:
    assert answer(tmp_path, "printf '<%s>' {PROMPT}", prompt).output == f"<{prompt}>"
    assert answer(tmp_path, ["printf", "<%s>", "{PROMPT}"], prompt).output == f"<{prompt}>"
    assert list(tmp_path.iterdir()) == []


def test_complete__with_a_placeholder_standard_input_is_empty(tmp_path: Path) -> None:
    assert answer(tmp_path, "cat; echo [{PROMPT}]", "hello").output == "[hello]"
    assert answer(tmp_path, "cat; cat {PROMPT_FILE}; echo", "hello").output == "hello"


def test_complete__answer_from_the_output_file(tmp_path: Path) -> None:
    assert answer(tmp_path, "echo log; tr a-z A-Z > {OUTPUT_FILE}", "hello").output == "HELLO"


def test_complete__a_temporary_folder_that_needs_quotes_is_an_error_of_scripts(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    folder = tmp_path / "$(touch pwned)"
    folder.mkdir()
    monkeypatch.setattr(tempfile, "tempdir", str(folder))
    error = refused(tmp_path, "cat > {OUTPUT_FILE}")
    assert (error.kind, str(folder) in str(error), "set TMPDIR" in error.hint) == (
        "configuration",
        True,
        True,
    )
    assert answer(tmp_path, ["tee", "{OUTPUT_FILE}"], "hello").output == "hello"


@pytest.mark.parametrize(
    "command",
    [["sed", "s/^/in: /", "{MESSAGES_FILE}"], "cat; sed 's/^/in: /' {MESSAGES_FILE}"],
    ids=["words", "script"],
)
def test_complete__the_messages_as_json(tmp_path: Path, command: Any) -> None:
    messages = (
        Message("system", "be brief"),
        Message("user", (Block("text", 'say "ü"\ud800'), Block("json", {"n": [1]}))),
        Message("assistant", "", tool_calls=(ToolCall("look", {"at": 1}, id="c1"),)),
        Message("tool", "seen", tool_call_id="c1"),
    )
    read = parse_json(answer(tmp_path, command, *messages).output.removeprefix("in: "))
    assert tuple(map(read_message, read)) == messages


def test_complete__the_file_of_messages_is_outside_of_the_workspace_and_deleted(
    tmp_path: Path,
) -> None:
    workspace = tmp_path / "workspace"
    workspace.mkdir()
    done = answer(tmp_path, "ls -A; echo {MESSAGES_FILE}", request={"workspace": workspace}).output
    path = Path(done)
    assert path.name == "messages.json"
    assert not path.is_relative_to(tmp_path)
    assert not path.parent.exists()


def test_complete__test_id_and_attempt(tmp_path: Path) -> None:
    said = answer(
        tmp_path, ["echo", "{EVAL_ID}", "{ATTEMPT}"], request={"eval_id": "a b;c", "attempt": 2}
    )
    assert said.output == "a b;c 2"


def test_complete__an_envelope_is_read(tmp_path: Path) -> None:
    envelope = '{"output": [{"role": "assistant", "content": "hi", "tool_calls": [{"tool": "t"}]}], "token_usage": {"input": 1, "output": 2}, "cost_usd": 0.5}'
    trace = answer(tmp_path, ["cat"], envelope)
    assert (trace.output, trace.tool_calls, trace.usage.input_tokens, trace.usage.cost_usd) == (
        "hi",
        (ToolCall("t"),),
        1,
        0.5,
    )


def test_complete__a_wrong_type_in_an_envelope_is_an_error(tmp_path: Path) -> None:
    assert "`cost_usd` is not a number" in str(
        refused(tmp_path, ["cat"], '{"text": "hi", "cost_usd": "a lot"}')
    )


def test_complete__binary_junk_is_an_answer(tmp_path: Path) -> None:
    assert answer(
        tmp_path, python("import sys; sys.stdout.buffer.write(bytes(range(256)))")
    ).output.startswith("\x00\x01")


def test_complete__a_flood_is_an_error(tmp_path: Path) -> None:
    assert "wrote more than 10 MB" in str(refused(tmp_path, python("print('x' * 11_000_000)")))
    code = "import sys; open(sys.argv[1], 'w').write('x' * 11_000_000)"
    assert "{OUTPUT_FILE} is over 10 MB" in str(refused(tmp_path, python(code, "{OUTPUT_FILE}")))


def test_complete__an_exit_code_is_an_error_with_the_last_lines(tmp_path: Path) -> None:
    error = refused(tmp_path, "echo answer; seq 1 30 >&2; exit 3")
    assert str(error) == "the command ended with exit code 3:\n" + "\n".join(
        map(str, range(21, 31))
    )
    assert (error.kind, error.hint) == ("target", "")


def test_complete__a_signal_is_an_error(tmp_path: Path) -> None:
    assert "was ended by signal 11" in str(refused(tmp_path, "kill -SEGV $$"))


def test_complete__a_failure_says_what_was_withheld(tmp_path: Path) -> None:
    assert "OPENAI_API_KEY" in refused(tmp_path, "exit 1", withheld=("OPENAI_API_KEY",)).hint


def test_complete__a_missing_program_is_an_error(tmp_path: Path) -> None:
    error = refused(tmp_path, ["no-such-agent-here"])
    assert (error.kind, "no-such-agent-here" in str(error)) == ("target", True)
    assert "exit code 127" in str(refused(tmp_path, "no-such-agent-here"))


def test_complete__success_without_an_answer_is_an_error(tmp_path: Path) -> None:
    assert (
        str(refused(tmp_path, "echo; echo why >&2"))
        == "the command succeeded without an answer: why"
    )
    assert "did not write {OUTPUT_FILE}" in str(refused(tmp_path, "echo {OUTPUT_FILE}"))


@pytest.mark.parametrize(
    "make", ["ln -s /etc/passwd {OUTPUT_FILE}", "mkfifo {OUTPUT_FILE}", "mkdir {OUTPUT_FILE}"]
)
def test_complete__only_a_plain_output_file_is_read(tmp_path: Path, make: str) -> None:
    assert "{OUTPUT_FILE}" in str(refused(tmp_path, make))


def test_complete__an_output_folder_replaced_by_a_link_is_not_followed(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(tempfile, "tempdir", str(tmp_path))  # the link stays
    (tmp_path / "output.txt").write_text("from elsewhere")
    swap = 'd=$(dirname {OUTPUT_FILE}); mv "$d" "$d.old"; ln -s "$PWD" "$d"; echo inside > "$d.old/output.txt"'
    assert "replaced it, or a folder above it, by a link" in str(refused(tmp_path, swap))


def test_complete__a_time_out_tells_the_last_lines(tmp_path: Path) -> None:
    error = refused(tmp_path, "echo thinking >&2; sleep 300", request={"timeout": 0.5})
    assert (error.kind, str(error)) == ("timeout", "the command did not end within 0.5 s: thinking")


def test_complete__leaves_no_temporary_file(tmp_path: Path) -> None:
    paths = answer(tmp_path, "echo {OUTPUT_FILE}, {PROMPT_FILE} | tee {OUTPUT_FILE}").output.split(
        ", "
    )
    assert not any(Path(path).parent.exists() for path in paths)
    assert all(Path(path).is_relative_to(tempfile.gettempdir()) for path in paths)


def test_complete__runs_in_the_suites_folder_or_in_cwd(tmp_path: Path) -> None:
    suite = tmp_path / "evals" / "agent"
    suite.mkdir(parents=True)
    request = {"folder": suite}
    assert answer(tmp_path, ["pwd"], request=request).output == str(suite)
    assert answer(tmp_path, ["pwd"], request=request, cwd="..").output == str(suite.parent)
    assert answer(tmp_path, ["pwd"], request=request, cwd="/").output == str(tmp_path)


@pytest.mark.parametrize(
    ("cwd", "problem"),
    [("..", "leaves the repository"), ("nowhere", "there is no folder 'nowhere'")],
)
def test_complete__a_folder_outside_or_missing_is_an_error(
    tmp_path: Path, cwd: str, problem: str
) -> None:
    error = refused(tmp_path, ["pwd"], cwd=cwd)
    assert (error.kind, problem in str(error)) == ("configuration", True)


SHOW = "env | cut -d= -f1 | sort | grep -v -x -e PWD -e _ -e SHLVL -e OLDPWD | tr '\\n' ' '"
ALLOWED = {"AGENT_KEY": "k", "AGENT_URL": "u"}


def test_environment__by_default_all_that_the_workflow_lets_through(tmp_path: Path) -> None:
    assert answer(tmp_path, SHOW, allowed=ALLOWED).output == "AGENT_KEY AGENT_URL PATH "


def test_environment__the_targets_env_picks_from_those(tmp_path: Path) -> None:
    assert answer(tmp_path, SHOW, allowed=ALLOWED, env=["AGENT_URL"]).output == "AGENT_URL PATH "
    assert answer(tmp_path, SHOW, allowed=ALLOWED, env=[]).output == "PATH "


def test_environment__a_name_that_the_workflow_does_not_let_through_is_an_error(
    tmp_path: Path,
) -> None:
    error = refused(tmp_path, SHOW, allowed=ALLOWED, env=["AGENT_URL", "OPENAI_API_KEY"])
    assert (error.kind, "OPENAI_API_KEY" in str(error), "AGENT_URL" in str(error)) == (
        "configuration",
        True,
        False,
    )
    assert targets.read_options(Cli, {"command": "x", "env": ["A"]}).variables() == ("A",)


def test_environment__the_runners_own_never_go_through(tmp_path: Path) -> None:
    allowed = {
        **ALLOWED,
        "GITHUB_TOKEN": "ghs_1",
        "INPUT_GITHUB-TOKEN": "ghs_1",
        "ACTIONS_RUNTIME_TOKEN": "r",
        "GITHUB_ENV": "/x",
    }
    assert answer(tmp_path, SHOW, allowed=allowed).output == "AGENT_KEY AGENT_URL PATH "
    assert "GITHUB_TOKEN" in str(refused(tmp_path, SHOW, allowed=allowed, env=["GITHUB_TOKEN"]))


def test_healthcheck__runs_once_before_the_first_call(tmp_path: Path) -> None:
    provider = connect("wc -l < checks", healthcheck="echo x >> checks")

    async def three() -> list[Trace]:
        return list(
            await asyncio.gather(
                *(provider.complete(targets.request(tmp_path, "hello")) for _ in range(3))
            )
        )

    assert [trace.output.strip() for trace in asyncio.run(three())] == ["1", "1", "1"]


@pytest.mark.parametrize(
    "check", ["echo down >&2; exit 1", {"command": ["sh", "-c", "echo down >&2; exit 1"]}]
)
def test_healthcheck__failing_ends_the_target(tmp_path: Path, check: Any) -> None:
    error = refused(tmp_path, ["cat"], healthcheck=check)
    assert isinstance(error, TargetDead)
    assert str(error) == "the healthcheck ended with exit code 1: down"


def test_healthcheck__its_own_time_limit(tmp_path: Path) -> None:
    error = refused(tmp_path, ["cat"], healthcheck={"command": "sleep 300", "timeout_seconds": 0.2})
    assert isinstance(error, TargetDead)
    assert "the healthcheck did not end within 0.2 s" in str(error)


def test_healthcheck__failed_is_not_repeated(tmp_path: Path) -> None:
    provider = connect(["cat"], healthcheck="echo x >> checks; exit 1")

    async def three() -> list[BaseException | Trace]:
        return await asyncio.gather(
            *(provider.complete(targets.request(tmp_path, "hello")) for _ in range(3)),
            return_exceptions=True,
        )

    assert all(isinstance(error, TargetDead) for error in asyncio.run(three()))
    assert (tmp_path / "checks").read_text() == "x\n"


def test_check__runs_the_healthcheck_alone(tmp_path: Path) -> None:
    def check(**fields: Any) -> str:
        provider = connect(["no-such-agent"], **fields)
        return asyncio.run(provider.check(targets.request(tmp_path, "hello")))

    assert "it was not asked" in check()
    assert "its healthcheck succeeds" in check(healthcheck="exit 0")
    with pytest.raises(TargetDead, match="the healthcheck ended with exit code 1"):
        check(healthcheck="exit 1")


PIXEL = "data:image/png;base64," + base64.b64encode(b"\x89PNG\r\n\x1a\n pixel").decode()


ARGUMENTS = "import sys; print('|'.join(sys.argv[1:]))"


@pytest.mark.parametrize(
    "command", [python(ARGUMENTS, "{FILES}"), f'python3 -c "{ARGUMENTS}" {{FILES}}']
)
def test_files__the_files_and_pictures_of_the_messages(tmp_path: Path, command: Any) -> None:
    note, picture = tmp_path / "a note.txt", tmp_path / "picture.png"
    note.write_text("noted")
    blocks = (
        file_block("file", "a note.txt", note),
        Block("image", "picture.png", picture),
        file_block("file", "a note.txt", note),
        Block("text", "hi"),
    )
    messages = (
        Message("system", (file_block("file", "a note.txt", note),)),
        Message("user", blocks),
    )
    assert answer(tmp_path, command, *messages).output.split("|") == [str(note), str(picture)]
    assert (
        answer(tmp_path, command, *messages, files_format="--file {basename}").output
        == "--file|a note.txt|--file|picture.png"
    )


def test_files__a_picture_that_is_written_out_becomes_a_file(tmp_path: Path) -> None:
    show = "import sys; path = sys.argv[1]; print(path, open(path, 'rb').read()[-5:])"
    path, data = answer(
        tmp_path, python(show, "{FILES}"), Message("user", (Block("image", PIXEL),))
    ).output.split(" ", 1)
    assert (Path(path).suffix, data, Path(path).exists()) == (".png", "b'pixel'", False)


def test_files__a_picture_that_is_none_is_an_error(tmp_path: Path) -> None:
    error = refused(
        tmp_path,
        ["echo", "{FILES}"],
        Message("user", (Block("image", "data:image/png;base64,AAAA", None), Block("image", "??"))),
    )
    assert (error.kind, "the prompt cannot be read" in str(error)) == ("configuration", True)


WHERE = "echo $PWD $WORKSPACE_PATH $AGENTV_WORKSPACE_PATH"


def test_workspace__the_agent_runs_in_it_and_is_told_where(tmp_path: Path) -> None:
    suite, workspace = tmp_path / "suite", tmp_path / "workspace"
    suite.mkdir()
    workspace.mkdir()
    request = {"folder": suite, "workspace": workspace}
    assert answer(tmp_path, WHERE, request=request).output == f"{workspace} {workspace} {workspace}"
    assert (
        answer(tmp_path, WHERE, request=request, cwd=".").output
        == f"{suite} {workspace} {workspace}"
    )
    assert answer(tmp_path, WHERE, request={"folder": suite}).output == str(suite)


def test_workspace__a_script_finds_the_suites_folder(tmp_path: Path) -> None:
    request = {"folder": tmp_path / "a suite", "workspace": tmp_path / "workspace"}
    for path in request.values():
        path.mkdir()
    found = answer(tmp_path, 'echo "$AGENTEVALS_SUITE_DIR"', request=request).output
    assert found == str(request["folder"])


@pytest.mark.parametrize("command", [[sys.executable, "agent.py"], ["./agent.sh"]])
def test_workspace__files_of_the_command_are_still_found(tmp_path: Path, command: Any) -> None:
    suite, workspace = tmp_path / "a suite", tmp_path / "workspace"
    suite.mkdir()
    workspace.mkdir()
    (suite / "agent.py").write_text(
        "import os; print('the suite\\'s, in', os.path.basename(os.getcwd()))"
    )
    (suite / "agent.sh").write_text('#!/bin/sh\necho "the suite\'s, in $(basename $PWD)"')
    (suite / "agent.sh").chmod(0o755)
    request = {"folder": suite, "workspace": workspace}
    assert answer(tmp_path, command, request=request).output == "the suite's, in workspace"
    (workspace / "agent.py").write_text("print('its own')")
    (workspace / "agent.sh").write_text("#!/bin/sh\necho its own")
    (workspace / "agent.sh").chmod(0o755)
    assert answer(tmp_path, command, request=request).output == "its own"


@pytest.mark.parametrize(
    ("fields", "problem"),
    [
        ({}, "it is missing"),
        ({"command": ""}, "the command is empty"),
        ({"command": []}, "the command is empty"),
        ({"command": 5}, "command"),
        ({"command": "agent {GUIDELINES}"}, r"`\{GUIDELINES\}` is not a placeholder"),
        ({"command": "agent 'x {PROMPT}'"}, "stands among other text in quotes"),
        ({"command": "agent", "files_format": "--file"}, "it does not name a file"),
        ({"command": "agent", "env": "KEY"}, "env"),
        ({"command": "agent", "healthcheck": {"url": "http://x"}}, "it is missing"),
        ({"command": "agent", "healthcheck": ""}, "the command is empty"),
    ],
    ids=str,
)
def test_options__what_is_wrong_is_refused_on_loading(fields: dict[str, Any], problem: str) -> None:
    with pytest.raises(ValueError, match=problem):
        targets.read_options(Cli, fields)


def test_files__words_that_are_files_of_the_repository(tmp_path: Path) -> None:
    suite = tmp_path / "evals"
    suite.mkdir()
    for name in ("agent.py", "evals/run.sh", "evals/config.json"):
        (tmp_path / name).write_text("x")
    (tmp_path / "out").symlink_to("/etc")

    def named(**fields: Any) -> tuple[str, ...]:
        return tuple(targets.read_options(Cli, fields).files(Folder(tmp_path, suite)))

    assert named(
        command=["python3", "../agent.py", "--config=config.json", "{PROMPT}", "run.sh"]
    ) == (
        "agent.py",
        "evals/config.json",
        "evals/run.sh",
    )
    assert named(command="./run.sh --config config.json > {OUTPUT_FILE} # agent.py") == (
        "evals/run.sh",
        "evals/config.json",
    )
    assert named(command=["agent.py", "run.sh"], cwd="/") == ("agent.py",)
    assert (
        named(command=["/etc/passwd", "../../etc/passwd", "../out/passwd", "x" * 10_000, "a\0b"])
        == ()
    )
    assert named(command="agent 'unclosed") == ()


def test_complete__a_conversation_is_read_without_its_question(tmp_path: Path) -> None:
    """As LangChain's `messages_to_dict` returns it."""
    items = [
        {"type": "human", "data": {"content": "hello"}},
        {"type": "ai", "data": {"content": "", "tool_calls": [{"name": "look", "args": {}}]}},
        {"type": "ai", "data": {"content": "hi"}},
    ]
    (tmp_path / "reply.json").write_text(json.dumps(items))
    trace = answer(tmp_path, ["cat", "reply.json"], "hello")
    assert [message.role for message in trace.messages] == ["assistant", "assistant"]
    assert (trace.output, trace.tool_calls) == ("hi", (ToolCall("look", {}),))
