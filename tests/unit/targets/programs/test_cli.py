import asyncio
import base64
import json
import sys
import tempfile
from collections.abc import Mapping
from pathlib import Path
from typing import Any

import pytest

from agentevals_action.errors import AttemptError, TargetDead
from agentevals_action.model.messages import Block, Message, ToolCall
from agentevals_action.model.target import Provider, Target
from agentevals_action.model.trace import Trace
from agentevals_action.system.files.paths import Folder
from agentevals_action.targets.programs.cli import Cli
from tests.support import targets
from tests.support.cases import file_block


def cli(command: Any, **fields: Any) -> Target:
    return targets.target({"provider": "cli", "command": command, **fields})


def answer(
    root: Path,
    command: Any,
    *messages: Message | str,
    request: Mapping[str, Any] | None = None,
    allowed: Mapping[str, str] | None = None,
    withheld: tuple[str, ...] = (),
    **fields: Any,
) -> Trace:
    around = targets.context(allowed, withheld=withheld)
    return targets.ask(cli(command, **fields), root, *messages, around=around, **(request or {}))


def output(root: Path, command: Any, *messages: Message | str, **fields: Any) -> str:
    return answer(root, command, *messages, **fields).output


def refused(root: Path, command: Any, *messages: Message | str, **fields: Any) -> AttemptError:
    with pytest.raises(AttemptError) as caught:
        answer(root, command, *messages, **fields)
    return caught.value


def python(code: str, *words: str) -> list[str]:
    return [sys.executable, "-c", code, *words]


def test_complete__the_prompt_goes_in_and_the_answer_comes_out(tmp_path: Path) -> None:
    prompt = "hello\n" + "0123456789abcdef" * 65536
    trace = answer(tmp_path, ["cat"], prompt)
    assert (trace.output, trace.tool_calls, trace.llm_call_count) == (prompt, None, None)
    assert output(tmp_path, ["cat", "{PROMPT_FILE}"], prompt) == prompt
    assert output(tmp_path, "cat | tr a-z A-Z; echo '!'", "hello") == "HELLO!"
    assert output(tmp_path, "echo log; tr a-z A-Z > {OUTPUT_FILE}", "hello") == "HELLO"
    # With a placeholder for the prompt, standard input is empty.
    assert output(tmp_path, "cat; echo [{PROMPT}]", "hello") == "[hello]"
    messages = Message("system", "brief"), "q"
    assert output(tmp_path, ["cat"], *messages) == "@[System]:\nbrief\n\n@[User]:\nq"
    request = {"eval_id": "a b;c", "attempt": 2}
    assert output(tmp_path, ["echo", "{EVAL_ID}", "{ATTEMPT}"], request=request) == "a b;c 2"


@pytest.mark.parametrize(
    ("content", "mode", "reason", "hint"),
    [
        (None, 0, "there is no './agent.sh' in ", "set `cwd`"),
        ("#!/bin/sh\ncat\n", 0o644, "'./agent.sh' is not executable", "`chmod +x`"),
    ],
)
@pytest.mark.parametrize("serve", [False, True])
def test_complete__a_program_that_cannot_be_started_is_explained(
    tmp_path: Path, content: str | None, mode: int, reason: str, hint: str, serve: bool
) -> None:
    if content is not None:
        (tmp_path / "agent.sh").write_text(content)
        (tmp_path / "agent.sh").chmod(mode)
    error = refused(tmp_path, ["./agent.sh"], serve=serve)
    assert str(error).startswith("the command cannot be started: ")
    assert reason in str(error)
    assert hint in error.hint


@pytest.mark.parametrize("command", [["echo", "{PROMPT}"], "echo {PROMPT}"], ids=str)
def test_complete__a_megabyte_by_argument_is_an_error_with_advice(
    command: Any, tmp_path: Path
) -> None:
    error = refused(tmp_path, command, "x" * 1_048_576)
    assert "cannot be started" in str(error)
    assert "{PROMPT_FILE}" in error.hint


def test_complete__a_temporary_folder_that_needs_quotes_is_an_error_of_scripts(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    folder = tmp_path / "$(touch pwned)"
    folder.mkdir()
    monkeypatch.setattr(tempfile, "tempdir", str(folder))
    error = refused(tmp_path, "cat > {OUTPUT_FILE}")
    assert (error.kind, str(folder) in str(error)) == ("configuration", True)
    assert "set TMPDIR" in error.hint
    assert output(tmp_path, ["tee", "{OUTPUT_FILE}"], "hello") == "hello"


def test_complete__its_files_are_outside_of_the_workspace_and_deleted(tmp_path: Path) -> None:
    command = "ls -A; echo {OUTPUT_FILE} {PROMPT_FILE} | tee {OUTPUT_FILE}"
    for path in map(Path, output(tmp_path, command, request={"workspace": tmp_path}).split()):
        assert path.is_relative_to(tempfile.gettempdir())
        assert not path.is_relative_to(tmp_path)
        assert not path.parent.exists()


def test_complete__an_envelope_and_a_conversation_are_read(tmp_path: Path) -> None:
    envelope = {"output": "hi", "tool_calls": [{"tool": "t"}], "cost_usd": 0.5}
    trace = answer(tmp_path, ["cat"], json.dumps(envelope))
    assert (trace.output, trace.tool_calls) == ("hi", (ToolCall("t"),))
    assert trace.usage.cost_usd == 0.5
    items = [{"role": "user", "content": "hello"}, {"role": "assistant", "content": "hi"}]
    (tmp_path / "reply.json").write_text(json.dumps(items))
    trace = answer(tmp_path, ["cat", "reply.json"], "hello")
    assert trace.messages == (Message("assistant", "hi"),)  # without its question


JUNK = python("import sys; sys.stdout.buffer.write(bytes(range(256)))")


def test_complete__bytes_that_are_no_text_are_an_answer(tmp_path: Path) -> None:
    assert output(tmp_path, JUNK).startswith("\x00\x01")


WRITE_MUCH = "import sys; open(sys.argv[1], 'w').write('x' * 11_000_000)"


@pytest.mark.parametrize(
    ("command", "problem"),
    [
        (python("print('x' * 11_000_000)"), "the command wrote more than 10 MB"),
        (python(WRITE_MUCH, "{OUTPUT_FILE}"), "{OUTPUT_FILE} is over 10 MB"),
        ("kill -SEGV $$", "the command was ended by signal 11"),
        ('echo \'{"text": "hi", "cost_usd": "a lot"}\'', "`cost_usd` is not a number"),
        ("no-such-agent-here", "exit code 127: "),
        (["no-such-agent-here"], "there is no command 'no-such-agent-here'"),
        ("echo; echo why >&2", "the command succeeded without an answer: why"),
        ("echo {OUTPUT_FILE}", "did not write {OUTPUT_FILE}"),
        ("ln -s /etc/passwd {OUTPUT_FILE}", "{OUTPUT_FILE} cannot be read"),
        ("mkfifo {OUTPUT_FILE}", "{OUTPUT_FILE} cannot be read: it is not a regular file"),
        ("mkdir {OUTPUT_FILE}", "{OUTPUT_FILE} cannot be read: it is not a regular file"),
    ],
)
def test_complete__a_run_without_an_answer_is_an_error(
    command: Any, problem: str, tmp_path: Path
) -> None:
    error = refused(tmp_path, command)
    assert error.kind == "target"
    assert problem in str(error)


def test_complete__an_exit_code_is_an_error_with_the_first_and_last_lines(tmp_path: Path) -> None:
    error = refused(tmp_path, "echo answer; seq 1 30 >&2; exit 3", withheld=("OPENAI_API_KEY",))
    lines = "\n".join(map(str, [*range(1, 7), "… 16 more lines …", *range(23, 31)]))
    assert str(error) == f"the command ended with exit code 3:\n{lines}"
    withheld = "variables withheld from it: OPENAI_API_KEY; name those it needs in the input `env`"
    assert error.sentence == f"{error}\n{withheld}"


def test_complete__a_time_out_has_the_last_lines(tmp_path: Path) -> None:
    error = refused(tmp_path, "echo thinking >&2; sleep 300", request={"timeout": 0.5})
    expected = "the command did not end within 0.5 s: thinking"
    assert (error.kind, str(error)) == ("timeout", expected)


def test_complete__an_output_folder_replaced_by_a_link_is_not_followed(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(tempfile, "tempdir", str(tmp_path))  # the link stays
    (tmp_path / "output.txt").write_text("from elsewhere")
    swap = 'd=$(dirname {OUTPUT_FILE}); mv "$d" "$d.old"; ln -s "$PWD" "$d"'
    assert "replaced it, or a folder above it, by a link" in str(refused(tmp_path, swap))


def test_complete__runs_in_the_suites_folder_or_in_cwd(tmp_path: Path) -> None:
    suite = tmp_path / "evals" / "agent"
    suite.mkdir(parents=True)
    request = {"folder": suite}
    assert output(tmp_path, ["pwd"], request=request) == str(suite)
    assert output(tmp_path, ["pwd"], request=request, cwd="..") == str(suite.parent)
    assert output(tmp_path, ["pwd"], request=request, cwd="/") == str(tmp_path)


@pytest.mark.parametrize(
    ("cwd", "problem"),
    [
        ("..", "leaves the repository"),
        ("nowhere", "there is no folder 'nowhere'"),
        ("/srv", "there is no folder '/srv'; / is the repository's root"),
    ],
)
def test_complete__a_folder_outside_or_missing_is_an_error(
    tmp_path: Path, cwd: str, problem: str
) -> None:
    error = refused(tmp_path, ["pwd"], cwd=cwd)
    assert (error.kind, problem in error.sentence) == ("configuration", True)


SHOW = "env | cut -d= -f1 | sort | grep -v -x -e PWD -e _ -e SHLVL -e OLDPWD | tr '\\n' ' '"
ALLOWED = {
    "AGENT_KEY": "k",
    "AGENT_URL": "u",
    # The runner's own variables never go through.
    "GITHUB_TOKEN": "ghs_1",
    "INPUT_GITHUB-TOKEN": "ghs_1",
    "ACTIONS_RUNTIME_TOKEN": "r",
    "GITHUB_ENV": "/x",
}


@pytest.mark.parametrize(
    ("fields", "expected"),
    [
        ({}, "AGENT_KEY AGENT_URL PATH "),
        ({"env": ["AGENT_URL"]}, "AGENT_URL PATH "),
        ({"env": []}, "PATH "),
    ],
)
def test_environment__has_what_the_workflow_and_the_target_pass_on(
    fields: dict[str, Any], expected: str, tmp_path: Path
) -> None:
    assert output(tmp_path, SHOW, allowed=ALLOWED, **fields) == expected


@pytest.mark.parametrize("name", ["OPENAI_API_KEY", "GITHUB_TOKEN"])
def test_environment__a_name_that_the_workflow_does_not_pass_on_is_an_error(
    name: str, tmp_path: Path
) -> None:
    error = refused(tmp_path, SHOW, allowed=ALLOWED, env=["AGENT_URL", name])
    assert error.kind == "configuration"
    assert f"names {name}, which" in str(error)
    assert targets.read(Cli, {"command": "x", "env": ["A"]}).other_variables() == ("A",)


@pytest.mark.parametrize(
    ("check", "expected"),
    [
        ("echo x >> checks", "1"),
        ("echo x >> checks; echo down >&2; exit 1", "the healthcheck ended with exit code 1: down"),
        (
            {"command": ["sh", "-c", "echo x >> checks; sleep 300"], "timeout_seconds": 0.2},
            "the healthcheck did not end within 0.2 s",
        ),
    ],
)
def test_healthcheck__runs_once_before_the_first_call_and_ends_a_target_if_it_fails(
    tmp_path: Path, check: Any, expected: str
) -> None:
    async def complete_three(provider: Provider) -> list[Trace | BaseException]:
        calls = (targets.answer(provider, targets.request(tmp_path, "hello")) for _ in range(3))
        return await asyncio.gather(*calls, return_exceptions=True)

    found = targets.use(cli("wc -l < checks", healthcheck=check), complete_three)
    texts = {each.output.strip() if isinstance(each, Trace) else str(each) for each in found}
    assert texts == {expected}
    assert {type(each) for each in found} == {Trace if expected == "1" else TargetDead}
    assert (tmp_path / "checks").read_text() == "x\n"


def test_healthcheck__its_time_is_not_that_of_the_answer(tmp_path: Path) -> None:
    async def run() -> tuple[Trace, float]:
        calls, loop = targets.calls(), asyncio.get_running_loop()
        started = loop.time()
        target = cli(["cat"], healthcheck="sleep 0.3")
        trace = await calls.complete(target, targets.request(tmp_path, "hello"))
        return trace, (loop.time() - started) * 1000

    trace, elapsed_ms = asyncio.run(run())
    assert trace.duration_ms is not None
    assert trace.duration_ms <= elapsed_ms - 300


def test_check__runs_the_healthcheck_alone(tmp_path: Path) -> None:
    def check(**fields: Any) -> str:
        target = cli(["no-such-agent"], **fields)
        return asyncio.run(targets.calls().check(target, targets.request(tmp_path, "hello")))

    assert "it was not asked" in check()
    assert "its healthcheck succeeds" in check(healthcheck="exit 0")
    with pytest.raises(TargetDead, match=r"^the healthcheck ended with exit code 1"):
        check(healthcheck="exit 1")


PIXEL = "data:image/png;base64," + base64.b64encode(b"\x89PNG\r\n\x1a\n pixel").decode()
ARGUMENTS = "import sys; print('|'.join(sys.argv[1:]))"


@pytest.mark.parametrize(
    "command", [python(ARGUMENTS, "{FILES}"), f'python3 -c "{ARGUMENTS}" {{FILES}}']
)
def test_files__the_files_and_pictures_of_the_messages(tmp_path: Path, command: Any) -> None:
    note, picture = tmp_path / "a note.txt", tmp_path / "picture.png"
    note.write_text("noted")
    block = file_block("file", "a note.txt", note)
    messages = (
        Message("system", (block,)),
        Message("user", (block, Block("image", "picture.png", picture), Block("text", "hi"))),
    )
    assert output(tmp_path, command, *messages).split("|") == [str(note), str(picture)]
    named = output(tmp_path, command, *messages, files_format="--file {basename}")
    assert named == "--file|a note.txt|--file|picture.png"


def test_files__a_picture_in_the_suite_becomes_a_file(tmp_path: Path) -> None:
    show = python("import sys; path = sys.argv[1]; print(path, open(path, 'rb').read()[-5:])")
    found = output(tmp_path, [*show, "{FILES}"], Message("user", (Block("image", PIXEL),)))
    path, data = found.split(" ", 1)
    assert (Path(path).suffix, data, Path(path).exists()) == (".png", "b'pixel'", False)
    error = refused(tmp_path, ["echo", "{FILES}"], Message("user", (Block("image", "??"),)))
    assert (error.kind, "the prompt cannot be read" in str(error)) == ("configuration", True)


WHERE = "echo $PWD $WORKSPACE_PATH $AGENTV_WORKSPACE_PATH"


def test_workspace__the_agent_runs_in_it(tmp_path: Path) -> None:
    suite, workspace = tmp_path / "suite", tmp_path / "workspace"
    suite.mkdir()
    workspace.mkdir()
    request = {"folder": suite, "workspace": workspace}
    assert output(tmp_path, WHERE, request=request) == f"{workspace} {workspace} {workspace}"
    inside = output(tmp_path, WHERE, request=request, cwd=".")
    assert inside == f"{suite} {workspace} {workspace}"
    assert output(tmp_path, WHERE, request={"folder": suite}) == str(suite)
    assert output(tmp_path, 'echo "$AGENTEVALS_SUITE_DIR"', request=request) == str(suite)


@pytest.mark.parametrize("command", [[sys.executable, "agent.py"], ["./agent.sh"]])
def test_workspace__files_of_the_command_are_still_found(tmp_path: Path, command: Any) -> None:
    suite, workspace = tmp_path / "a suite", tmp_path / "workspace"
    for folder in (suite, workspace):
        folder.mkdir()
        (folder / "agent.py").write_text(f"print('{folder.name}')")
        (folder / "agent.sh").write_text(f'#!/bin/sh\necho "{folder.name}"')
        (folder / "agent.sh").chmod(0o755)
    request = {"folder": suite, "workspace": workspace}
    assert output(tmp_path, command, request=request) == "workspace"
    for name in ("agent.py", "agent.sh"):
        (workspace / name).unlink()
    assert output(tmp_path, command, request=request) == "a suite"


@pytest.mark.parametrize(
    ("fields", "expected"),
    [
        (
            {"command": ["python3", "../agent.py", "--x=config.json", "{PROMPT}", "run.sh"]},
            ("agent.py", "evals/config.json", "evals/run.sh"),
        ),
        (
            {"command": "./run.sh --config config.json > {OUTPUT_FILE} # agent.py"},
            ("evals/run.sh", "evals/config.json"),
        ),
        ({"command": ["agent.py", "run.sh"], "cwd": "/"}, ("agent.py",)),
        ({"command": ["sh", "-c", "exec python3 ../agent.py"]}, ("agent.py",)),
        ({"command": "timeout 9 /bin/bash -ceu 'cd . && ./run.sh'"}, ("evals/run.sh",)),
        ({"command": ["bash", "-c", "./run.sh 'unclosed"]}, ()),
        ({"command": ["agent", "-c", "run.sh config.json"]}, ()),
        ({"command": ["/etc/passwd", "../../etc/passwd", "../out/passwd", "a\0b"]}, ()),
        ({"command": ["x" * 10_000]}, ()),
        ({"command": "agent 'unclosed"}, ()),
    ],
    ids=str,
)
def test_files__words_that_are_files_of_the_repository(
    fields: dict[str, Any], expected: tuple[str, ...], tmp_path: Path
) -> None:
    suite = tmp_path / "evals"
    suite.mkdir()
    for name in ("agent.py", "evals/run.sh", "evals/config.json"):
        (tmp_path / name).write_text("x")
    (tmp_path / "out").symlink_to("/etc")
    found = targets.read(Cli, fields).named_files(Folder(tmp_path, suite))
    assert tuple(file.path for file in found) == expected
