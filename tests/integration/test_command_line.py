"""The help of the command line, and arguments that it refuses."""

import json
import os
import subprocess
import sys
from collections.abc import Sequence
from pathlib import Path

import pytest

from agentevals_action import __version__
from agentevals_action.settings import INPUTS
from tests.support import command

COMMANDS = (
    *("init", "review", "run", "merge", "compare", "report", "history", "validate"),
    *("list", "explain", "targets", "selftest", "judge", "record", "schema", "demo"),
    "action",
)


def helped(folder: Path, *arguments: str, columns: int = 80) -> str:
    done = command.run(folder, *arguments, "--help", env={"COLUMNS": str(columns)})
    assert (done.code, done.err) == (0, "")
    return done.out


def words(text: str) -> str:
    return " ".join(text.split())


@pytest.mark.parametrize("columns", [80, 300])
def test_help__names_every_command_in_order_with_its_whole_line(
    tmp_path: Path, columns: int
) -> None:
    shown = helped(tmp_path, columns=columns)

    listed = shown.partition("Commands:\n")[2]
    assert (
        tuple(
            line.split()[0]
            for line in listed.splitlines()
            if line.startswith("  ") and line[2] != " "
        )
        == COMMANDS
    )
    assert "Run suites often and report how often runs differ." in words(listed)
    assert "..." not in listed
    assert max(map(len, shown.splitlines())) <= min(columns, 120)


def test_help_of_a_command__describes_an_input_as_the_action_does(tmp_path: Path) -> None:
    shown = words(helped(tmp_path, "review"))

    for name in ("samples", "fail-on", "baseline", "alpha", "comment-template", "select"):
        described = INPUTS[name]
        default = f" [default: {described.default}]" if described.default else ""
        assert f"--{name} {described.kind.upper()} {described.description}{default}" in shown


def test_version__is_printed(tmp_path: Path) -> None:
    assert command.run(tmp_path, "--version") == command.Done(
        0, f"agentevals-action {__version__}\n", ""
    )


def test_no_command__shows_the_help_and_is_exit_code_2(tmp_path: Path) -> None:
    done = command.run(tmp_path)

    assert done.code == 2
    assert "  selftest " in done.err
    assert "Error" not in done.err


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        ("nope", "No such command 'nope'"),
        ("runn", "No such command 'runn'. Did you mean 'run'?"),
        ("list --confirm 2", "No such option '--confirm'"),
        ("list extra", "there is no file or folder extra"),
        ("review", "Missing option '--base'"),
        ("selftest --samples 1", "Invalid value for '--samples': 1 "),
    ],
)
def test_arguments__that_are_invalid_are_reported_with_exit_code_2(
    tmp_path: Path, arguments: str, message: str
) -> None:
    done = command.run(tmp_path, *arguments.split())

    assert (done.code, done.out) == (2, "")
    assert message in done.err


def test_no_suite__outside_of_a_repository_the_error_names_what_may_be_meant(
    tmp_path: Path,
) -> None:
    suite = "tests: [{id: a, input: q, assert: [{type: contains, value: a}]}]\n"
    (tmp_path / "support.yaml").write_text(suite)
    done = command.run(tmp_path, "run")
    assert (done.code, "`support.yaml` has tests" in done.err) == (2, True), done.err


@pytest.mark.parametrize("arguments", ["runn --json", "run --json --tset x", "run nope --json"])
def test_arguments__that_are_invalid_are_a_document_with_json(
    tmp_path: Path, arguments: str
) -> None:
    done = command.run(tmp_path, *arguments.split())

    assert done.code == 2
    (error,) = json.loads(done.out)["errors"]
    assert error["problem"] in done.err
    assert error["advice"]


#: What is typed, and what a shell proposes.
COMPLETIONS = {
    "va": ["validate"],
    "run ": ["evals/EVAL.yaml", "more/EVAL.yaml"],
    "validate m": ["more/EVAL.yaml"],
    "run --test ": ["one", "other"],
    "run more/EVAL.yaml --test o": ["other"],
    "run nope --test o": [],
    "explain on": ["one"],
}


@pytest.mark.parametrize("typed", COMPLETIONS)
def test_completion__knows_suites_and_tests(tmp_path: Path, typed: str) -> None:
    for path, name in {"evals": "one", "more": "other", "danger": "$(touch x)"}.items():
        file = tmp_path / path / ("$(x).eval.yaml" if path == "danger" else "EVAL.yaml")
        file.parent.mkdir()
        file.write_text(f"name: greeter\ntests: [{{id: {name}, input: a, criteria: b}}]\n")
    shell = {"COMP_WORDS": f"agentevals-action {typed}", "COMP_CWORD": str(len(typed.split(" ")))}
    done = subprocess.run(
        [Path(sys.executable).with_name("agentevals-action")],
        cwd=tmp_path,
        env=command.environment({"_AGENTEVALS_ACTION_COMPLETE": "bash_complete", **shell}),
        capture_output=True,
        text=True,
        check=False,
    )
    proposed = [line.partition(",")[2] for line in done.stdout.splitlines() if line]
    assert proposed == COMPLETIONS[typed]
    assert done.stderr == ""


def run_into(
    folder: Path, arguments: Sequence[str], streams: tuple[int, int], *, at_once: bool
) -> int:
    """The exit code with these streams; `at_once` writes without a buffer."""
    environment = command.environment({"PYTHONUNBUFFERED": "1"} if at_once else {})
    with command.start_into(folder, arguments, environment, streams) as process:
        return process.wait(100)


@pytest.mark.parametrize("at_once", [True, False])
def test_output__that_nobody_can_read_is_no_success_and_no_crash(
    tmp_path: Path, at_once: bool
) -> None:
    (tmp_path / "EVAL.yaml").write_text(
        "name: greeter\ntests: [{id: one, input: hello, assert: [{type: contains, value: a}]}]\n"
    )
    reading, writing = os.pipe()
    os.close(reading)
    try:
        code = run_into(tmp_path, ["list"], (writing, writing), at_once=at_once)
    finally:
        os.close(writing)

    assert code == 1


@pytest.mark.skipif(
    not Path("/dev/full").exists(), reason="this system has no device that is always full"
)
@pytest.mark.parametrize("at_once", [True, False])
def test_output__without_space_is_reported_and_not_a_success(tmp_path: Path, at_once: bool) -> None:
    errors = tmp_path / "errors"
    with Path("/dev/full").open("wb") as full, errors.open("wb") as err:
        code = run_into(tmp_path, ["schema"], (full.fileno(), err.fileno()), at_once=at_once)
    assert code == 3
    assert errors.read_text().startswith("the machine has no disk space left for the run\n")


@pytest.mark.skipif(
    not Path("/dev/full").exists(), reason="this system has no device that is always full"
)
def test_output__of_an_error_without_space_keeps_its_exit_code(tmp_path: Path) -> None:
    errors = tmp_path / "errors"
    with Path("/dev/full").open("wb") as full, errors.open("wb") as err:
        streams = (full.fileno(), err.fileno())
        code = run_into(tmp_path, ["validate", "--json"], streams, at_once=True)
    assert code == 2
    assert errors.read_text().startswith("there is no suite in this repository; looked for ")


def test_output__that_its_encoding_cannot_express_ends_no_run(tmp_path: Path) -> None:
    (tmp_path / ".agentv").mkdir()
    (tmp_path / ".agentv/targets.yaml").write_text(
        'targets: [{name: default, provider: mock, responses: [{pattern: ".*", response: hi}]}]\n'
    )
    (tmp_path / "EVAL.yaml").write_text(
        "name: greeter\ntests: [{id: one, input: hello, assert: [{type: contains, value: Grüße}]}]\n",
        "utf-8",
    )
    done = command.run(tmp_path, "run", env={"PYTHONIOENCODING": "ascii"})

    assert done.code == 1, done.err
    assert 'does not contain "Gr??e"' in done.out
