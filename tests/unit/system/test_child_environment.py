import asyncio
import os
from pathlib import Path

from agentevals_action.system import child_environment, process
from agentevals_action.system.program import Program

RUNNER = {
    "PATH": "/bin",
    "HOME": "/root",
    "LC_ALL": "C.UTF-8",
    "CI": "true",
    "GITHUB_SHA": "abc",
    "GITHUB_REF": "refs/heads/main",
    "RUNNER_OS": "Linux",
    "GITHUB_TOKEN": "ghs_0123456789",
    "ACTIONS_RUNTIME_TOKEN": "runtime-0123456789",
    "ACTIONS_CACHE_URL": "https://cache",
    "INPUT_GITHUB-TOKEN": "ghs_0123456789",
    "INPUT_ENV": "PATH",
    "GITHUB_ENV": "/runner/env",
    "GITHUB_OUTPUT": "/runner/output",
    "GITHUB_PATH": "/runner/path",
    "GITHUB_STATE": "/runner/state",
    "GITHUB_STEP_SUMMARY": "/runner/summary",
    "OPENAI_API_KEY": "sk-0123456789",
    "DATABASE_PASSWORD": "hunter2hunter2",
    "SOME_SETTING": "x",
}
SEEN = {"PATH", "HOME", "LC_ALL", "CI", "GITHUB_SHA", "GITHUB_REF", "RUNNER_OS"}


def test_scrub__keeps_what_a_tool_needs_and_nothing_else() -> None:
    environment, withheld = child_environment.scrub(RUNNER, [])
    assert environment == {name: RUNNER[name] for name in SEEN}
    assert withheld == ("DATABASE_PASSWORD", "OPENAI_API_KEY")


def test_scrub__lets_through_what_the_workflow_names() -> None:
    environment, withheld = child_environment.scrub(
        RUNNER, ["OPENAI_API_KEY", "SOME_SETTING", "NOT_SET"]
    )
    assert set(environment) == SEEN | {"OPENAI_API_KEY", "SOME_SETTING"}
    assert withheld == ("DATABASE_PASSWORD",)


def test_scrub__never_the_runners_own_whoever_names_them() -> None:
    environment, withheld = child_environment.scrub(RUNNER, list(RUNNER))
    hidden = {name for name in RUNNER if name not in environment}
    assert hidden == {name for name in RUNNER if name.startswith(("INPUT_", "ACTIONS_"))} | {
        "GITHUB_TOKEN",
        "GITHUB_ENV",
        "GITHUB_OUTPUT",
        "GITHUB_PATH",
        "GITHUB_STATE",
        "GITHUB_STEP_SUMMARY",
    }
    assert withheld == ()


def test_scrub__a_fact_that_carries_a_secret_is_no_fact() -> None:
    environment, _ = child_environment.scrub(
        {**RUNNER, "GITHUB_REF": "refs/heads/sk-0123456789"}, []
    )
    assert set(environment) == SEEN - {"GITHUB_REF"}


def test_context__states_the_names_that_are_not_set() -> None:
    context = child_environment.ChildContext.from_environ(RUNNER, ["SOME_SETTING", "NOT_SET"])
    assert context.unset == ("NOT_SET",)


def test_scrub__a_child_sees_no_credential(tmp_path: Path) -> None:
    environment, _ = child_environment.scrub({**RUNNER, "PATH": os.environ["PATH"]}, [])
    script = "! env | grep -i -E 'token|api_key|secret|password|ghs_|sk-'"
    program = Program(("sh", "-c", script), tmp_path, environment)
    done = asyncio.run(process.run(program, timeout=30))
    assert (done.returncode, done.stdout) == (0, "")
