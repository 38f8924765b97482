import asyncio
import os
import sys
import tempfile
from collections.abc import Mapping
from pathlib import Path
from typing import Any

import pytest
from pydantic import ValidationError

from agentevals_action.errors import AttemptError, TargetDead
from agentevals_action.model.suite import Block, Message, ToolCall
from agentevals_action.model.trace import Trace
from agentevals_action.paths import Folder
from agentevals_action.providers.base import Provider
from agentevals_action.providers.cli import Cli
from tests.support import targets

ENVIRONMENT = {"PATH": os.environ["PATH"]}


def connect(command: Any, allowed: Mapping[str, str] | None = None, withheld: tuple[str, ...] = (), **fields: Any) -> Provider:
    definition = {"provider": "cli", "command": command, **fields}
    return targets.options(definition).connect(targets.surroundings(ENVIRONMENT, allowed, withheld=withheld))


def answer(root: Path, command: Any, *messages: Message | str, request: Mapping[str, Any] | None = None, **fields: Any) -> Trace:
    return asyncio.run(connect(command, **fields).complete(targets.request(root, *(messages or ("hello",)), **(request or {}))))


def refused(root: Path, command: Any, *messages: Message | str, request: Mapping[str, Any] | None = None, **fields: Any) -> AttemptError:
    with pytest.raises(AttemptError) as caught:
        answer(root, command, *messages, request=request, **fields)
    return caught.value


def python(code: str, *words: str) -> list[str]:
    return [sys.executable, "-c", code, *words]


def test_complete__prompt_on_standard_input_answer_on_standard_output(tmp_path: Path) -> None:
    trace = answer(tmp_path, ["cat"], "hello\nthere")
    assert (trace.output, trace.tool_calls, trace.llm_call_count, trace.cost_usd) == ("hello\nthere", None, 1, None)


def test_complete__a_string_is_a_script(tmp_path: Path) -> None:
    assert answer(tmp_path, "cat | tr a-z A-Z; echo '!'", "hello").output == "HELLO!"


def test_complete__several_messages_are_headed_blocks(tmp_path: Path) -> None:
    assert answer(tmp_path, ["cat"], Message("system", "brief"), "q").output == "@[System]:\nbrief\n\n@[User]:\nq"


def test_complete__a_megabyte_by_standard_input_and_by_file(tmp_path: Path) -> None:
    prompt = "0123456789abcdef" * 65536
    assert answer(tmp_path, ["cat"], prompt).output == prompt
    assert answer(tmp_path, ["cat", "{PROMPT_FILE}"], prompt).output == prompt


def test_complete__a_megabyte_by_argument_is_an_error_with_advice(tmp_path: Path) -> None:
    for command in (["echo", "{PROMPT}"], "echo {PROMPT}"):
        error = refused(tmp_path, command, "x" * 1_048_576)
        assert (error.kind, "cannot be started" in str(error), "{PROMPT_FILE}" in error.hint) == ("target", True, True)


@pytest.mark.parametrize("prompt", ["$(touch pwned)", "'; touch pwned; '", '"$(touch pwned)"', "a\n`touch pwned`\n-e"])
def test_complete__a_prompt_is_never_code(tmp_path: Path, prompt: str) -> None:
    assert answer(tmp_path, "printf '<%s>' {PROMPT}", prompt).output == f"<{prompt}>"
    assert answer(tmp_path, ["printf", "<%s>", "{PROMPT}"], prompt).output == f"<{prompt}>"
    assert list(tmp_path.iterdir()) == []


def test_complete__with_a_placeholder_standard_input_is_empty(tmp_path: Path) -> None:
    assert answer(tmp_path, "cat; echo [{PROMPT}]", "hello").output == "[hello]"
    assert answer(tmp_path, "cat; cat {PROMPT_FILE}; echo", "hello").output == "hello"


def test_complete__answer_from_the_output_file(tmp_path: Path) -> None:
    assert answer(tmp_path, "echo log; tr a-z A-Z > {OUTPUT_FILE}", "hello").output == "HELLO"


def test_complete__test_id_and_attempt(tmp_path: Path) -> None:
    said = answer(tmp_path, ["echo", "{EVAL_ID}", "{ATTEMPT}"], request={"eval_id": "a b;c", "attempt": 2})
    assert said.output == "a b;c 2"


def test_complete__an_envelope_is_read(tmp_path: Path) -> None:
    envelope = '{"output": [{"role": "assistant", "content": "hi", "tool_calls": [{"tool": "t"}]}], "token_usage": {"input": 1, "output": 2}, "cost_usd": 0.5}'
    trace = answer(tmp_path, ["cat"], envelope)
    assert (trace.output, trace.tool_calls, trace.input_tokens, trace.cost_usd) == ("hi", (ToolCall("t"),), 1, 0.5)


def test_complete__a_wrong_type_in_an_envelope_is_an_error(tmp_path: Path) -> None:
    assert "`cost_usd` is not a number" in str(refused(tmp_path, ["cat"], '{"text": "hi", "cost_usd": "a lot"}'))


def test_complete__binary_junk_is_an_answer(tmp_path: Path) -> None:
    assert answer(tmp_path, python("import sys; sys.stdout.buffer.write(bytes(range(256)))")).output.startswith("\x00\x01")


def test_complete__a_flood_is_an_error(tmp_path: Path) -> None:
    assert "wrote more than 10 MB" in str(refused(tmp_path, python("print('x' * 11_000_000)")))
    code = "import sys; open(sys.argv[1], 'w').write('x' * 11_000_000)"
    assert "{OUTPUT_FILE} is over 10 MB" in str(refused(tmp_path, python(code, "{OUTPUT_FILE}")))


def test_complete__an_exit_code_is_an_error_with_the_last_lines(tmp_path: Path) -> None:
    error = refused(tmp_path, "echo answer; seq 1 30 >&2; exit 3")
    assert str(error) == "the command ended with exit code 3:\n" + "\n".join(map(str, range(21, 31)))
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
    assert str(refused(tmp_path, "echo; echo why >&2")) == "the command succeeded without an answer:\nwhy"
    assert "did not write {OUTPUT_FILE}" in str(refused(tmp_path, "echo {OUTPUT_FILE}"))


@pytest.mark.parametrize("make", ["ln -s /etc/passwd {OUTPUT_FILE}", "mkfifo {OUTPUT_FILE}", "mkdir {OUTPUT_FILE}"])
def test_complete__only_a_plain_output_file_is_read(tmp_path: Path, make: str) -> None:
    assert "{OUTPUT_FILE}" in str(refused(tmp_path, make))


def test_complete__an_output_folder_swapped_for_a_link_is_not_followed(tmp_path: Path) -> None:
    (tmp_path / "output.txt").write_text("from elsewhere")
    swap = 'd=$(dirname {OUTPUT_FILE}); mv "$d" "$d.old"; ln -s "$PWD" "$d"; echo inside > "$d.old/output.txt"'
    assert answer(tmp_path, swap).output == "inside"


def test_complete__a_time_out_tells_the_last_lines(tmp_path: Path) -> None:
    error = refused(tmp_path, "echo thinking >&2; sleep 300", request={"timeout": 0.5})
    assert (error.kind, str(error)) == ("timeout", "no answer within 0.5 s:\nthinking")


def test_complete__leaves_no_temporary_file(tmp_path: Path) -> None:
    paths = answer(tmp_path, "echo {OUTPUT_FILE}, {PROMPT_FILE} | tee {OUTPUT_FILE}").output.split(", ")
    assert not any(Path(path).parent.exists() for path in paths)
    assert all(Path(path).is_relative_to(tempfile.gettempdir()) for path in paths)


def test_complete__runs_in_the_suites_folder_or_in_cwd(tmp_path: Path) -> None:
    suite = tmp_path / "evals" / "agent"
    suite.mkdir(parents=True)
    request = {"folder": suite}
    assert answer(tmp_path, ["pwd"], request=request).output == str(suite)
    assert answer(tmp_path, ["pwd"], request=request, cwd="..").output == str(suite.parent)
    assert answer(tmp_path, ["pwd"], request=request, cwd="/").output == str(tmp_path)


@pytest.mark.parametrize(("cwd", "problem"), [("..", "leaves the repository"), ("nowhere", "there is no folder 'nowhere'")])
def test_complete__a_folder_outside_or_missing_is_an_error(tmp_path: Path, cwd: str, problem: str) -> None:
    error = refused(tmp_path, ["pwd"], cwd=cwd)
    assert (error.kind, problem in str(error)) == ("configuration", True)


def test_complete__a_prompt_file_that_cannot_be_read_is_an_error(tmp_path: Path) -> None:
    error = refused(tmp_path, ["cat"], Message("user", (Block("file", "x", tmp_path / "x"),)))
    assert (error.kind, "the prompt cannot be read" in str(error)) == ("configuration", True)


SHOW = "env | cut -d= -f1 | sort | grep -v -x -e PWD -e _ -e SHLVL -e OLDPWD | tr '\\n' ' '"
ALLOWED = {"AGENT_KEY": "k", "AGENT_URL": "u"}


def test_environment__by_default_all_that_the_workflow_lets_through(tmp_path: Path) -> None:
    assert answer(tmp_path, SHOW, allowed=ALLOWED).output == "AGENT_KEY AGENT_URL PATH "


def test_environment__the_targets_env_picks_from_those(tmp_path: Path) -> None:
    assert answer(tmp_path, SHOW, allowed=ALLOWED, env=["AGENT_URL"]).output == "AGENT_URL PATH "
    assert answer(tmp_path, SHOW, allowed=ALLOWED, env=[]).output == "PATH "


def test_environment__a_name_that_the_workflow_does_not_let_through_is_an_error(tmp_path: Path) -> None:
    error = refused(tmp_path, SHOW, allowed=ALLOWED, env=["AGENT_URL", "OPENAI_API_KEY"])
    assert (error.kind, "OPENAI_API_KEY" in str(error), "AGENT_URL" in str(error)) == ("configuration", True, False)
    assert Cli.model_validate({"command": "x", "env": ["A"]}).variables() == ("A",)


def test_environment__the_runners_own_never_go_through(tmp_path: Path) -> None:
    allowed = {**ALLOWED, "GITHUB_TOKEN": "ghs_1", "INPUT_GITHUB-TOKEN": "ghs_1", "ACTIONS_RUNTIME_TOKEN": "r", "GITHUB_ENV": "/x"}
    assert answer(tmp_path, SHOW, allowed=allowed).output == "AGENT_KEY AGENT_URL PATH "
    assert "GITHUB_TOKEN" in str(refused(tmp_path, SHOW, allowed=allowed, env=["GITHUB_TOKEN"]))


def test_healthcheck__runs_once_before_the_first_call(tmp_path: Path) -> None:
    provider = connect("wc -l < checks", healthcheck="echo x >> checks")

    async def three() -> list[Trace]:
        return list(await asyncio.gather(*(provider.complete(targets.request(tmp_path, "hello")) for _ in range(3))))

    assert [trace.output.strip() for trace in asyncio.run(three())] == ["1", "1", "1"]


@pytest.mark.parametrize("check", ["echo down >&2; exit 1", {"command": ["sh", "-c", "echo down >&2; exit 1"]}])
def test_healthcheck__failing_ends_the_target(tmp_path: Path, check: Any) -> None:
    error = refused(tmp_path, ["cat"], healthcheck=check)
    assert isinstance(error, TargetDead)
    assert str(error) == "the healthcheck ended with exit code 1:\ndown"


def test_healthcheck__its_own_time_limit(tmp_path: Path) -> None:
    error = refused(tmp_path, ["cat"], healthcheck={"command": "sleep 300", "timeout_seconds": 0.2})
    assert isinstance(error, TargetDead)
    assert "the healthcheck took over 0.2 s" in str(error)


@pytest.mark.parametrize(
    ("fields", "problem"),
    [
        ({}, "Field required"),
        ({"command": ""}, "the command is empty"),
        ({"command": []}, "the command is empty"),
        ({"command": 5}, "command"),
        ({"command": "agent {FILES}"}, r"`\{FILES\}` is not supported by this version yet"),
        ({"command": "agent 'x {PROMPT}'"}, "stands among other text in quotes"),
        ({"command": "agent", "files_format": "{path}"}, "`files_format` is not supported by this version yet"),
        ({"command": "agent", "provider_batching": True}, "`provider_batching` is not supported by this version yet"),
        ({"command": "agent", "env": "KEY"}, "env"),
        ({"command": "agent", "healthcheck": {"url": "http://x"}}, "a healthcheck by URL is not supported by this version yet"),
        ({"command": "agent", "healthcheck": ""}, "the command is empty"),
    ],
    ids=str,
)
def test_options__what_is_wrong_is_refused_on_loading(fields: dict[str, Any], problem: str) -> None:
    with pytest.raises(ValidationError, match=problem):
        Cli.model_validate(fields)


def test_files__words_that_are_files_of_the_repository(tmp_path: Path) -> None:
    suite = tmp_path / "evals"
    suite.mkdir()
    for name in ("agent.py", "evals/run.sh", "evals/config.json"):
        (tmp_path / name).write_text("x")
    (tmp_path / "out").symlink_to("/etc")

    def named(**fields: Any) -> tuple[str, ...]:
        return tuple(Cli.model_validate(fields).files(Folder(tmp_path, suite)))

    assert named(command=["python3", "../agent.py", "--config=config.json", "{PROMPT}", "run.sh"]) == (
        "agent.py",
        "evals/config.json",
        "evals/run.sh",
    )
    assert named(command="./run.sh --config config.json > {OUTPUT_FILE} # agent.py") == ("evals/run.sh", "evals/config.json")
    assert named(command=["agent.py", "run.sh"], cwd="/") == ("agent.py",)
    assert named(command=["/etc/passwd", "../../etc/passwd", "../out/passwd", "x" * 10_000, "a\0b"]) == ()
    assert named(command="agent 'unclosed") == ()
