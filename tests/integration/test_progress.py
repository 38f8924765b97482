"""The bars that `run` and `review` show on a terminal while they work."""

import signal
from pathlib import Path

import pytest

from tests.support.repositories import Repository
from tests.support.terminal import Terminal

#: Answers when a file `go` is there, and at once to `fast`. It outlives a run that is killed, and
#: ends when its folder is removed.
AGENT = """\
read question
case "$question" in fast*) ;; *) while [ -e agent.sh ] && [ ! -e go ]; do sleep 0.02; done ;; esac
echo '{"output": "hello", "cost_usd": 0.25}'
"""
TARGETS = "- {name: default, provider: cli, command: [sh, agent.sh], cwd: /}\n"


def suite(name: str, *inputs: str) -> str:
    tests = ", ".join(f"{{id: '{text}', input: '{text}'}}" for text in inputs)
    return f"name: {name}\nassert: [{{type: contains, value: hello}}]\ntests: [{tests}]\n"


@pytest.fixture
def repository(tmp_path: Path) -> Repository:
    files = {
        "a/EVAL.yaml": suite("suite-a", "fast-1", "slow-1"),
        "b/EVAL.yaml": suite("suite-b", "slow-2"),
        "agent.sh": AGENT,
        ".agentv/targets.yaml": TARGETS,
        ".gitignore": "go\nagentevals-report\n",
    }
    return Repository.create(tmp_path / "repository", files)


def is_working(lines: list[str]) -> bool:
    """Whether a test is finished, and two others run."""
    return any("1/3" in line and "now slow-1 and 1 more" in line for line in lines)


def test_run__shows_a_bar_that_is_gone_at_the_end(repository: Repository) -> None:
    with Terminal(repository.path, "run", columns=110) as terminal:
        shown = terminal.read_until(is_working)
        assert "1 pass, $0.2500, now slow-1 and 1 more" in shown[-1]
        assert max(map(len, shown)) <= 110
        (repository.path / "go").touch()
        shown = terminal.read_to_end()
    assert terminal.process.returncode == 0
    assert not any("now slow" in line or "3/3" in line for line in shown)
    assert {"This run cost $0.75 (source: reply).", "passed"} <= set(shown)


def test_review__has_a_bar_for_each_side(repository: Repository) -> None:
    repository.commit("other", {"agent.sh": AGENT + "# other\n"})
    arguments = ("review", "--base", "HEAD~1", "--watch", "agent.sh")
    with Terminal(repository.path, *arguments, columns=100) as terminal:
        terminal.read_until(
            lambda lines: (
                {"head", "base"} <= {line.split(" ")[0] for line in lines if "1/3" in line}
            )
        )
        (repository.path / "go").touch()
        terminal.process.send_signal(signal.SIGINT)
        terminal.read_to_end()


@pytest.mark.parametrize("number", [signal.SIGINT, signal.SIGKILL])
def test_signal__leaves_a_clean_terminal(repository: Repository, number: signal.Signals) -> None:
    temp = {"TMPDIR": str(repository.path.parent)}  # what a killed run leaves goes with the test
    with Terminal(repository.path, "run", env=temp) as terminal:
        terminal.read_until(lambda lines: any("1/3" in line for line in lines))
        terminal.process.send_signal(number)
        shown = terminal.read_to_end()
        assert terminal.shows_cursor
    if number is not signal.SIGKILL:
        assert shown[-1] == f"interrupted by {number.name}"
        assert terminal.process.returncode == 128 + number


def test_hostile_names__move_no_cursor_and_are_no_markup(tmp_path: Path) -> None:
    name = "\\e[2J\\e]0;x\\a[bold]\\n::error::x"
    tests = f'[{{id: "slow {name}", input: slow}}]'
    text = f"name: one\nassert: [{{type: contains, value: hello}}]\ntests: {tests}\n"
    files = {"EVAL.yaml": text, "agent.sh": AGENT, ".agentv/targets.yaml": TARGETS}
    repository = Repository.create(tmp_path / "r", files)
    temp = {"TMPDIR": str(tmp_path)}  # it is killed at the end of the block
    with Terminal(repository.path, "run", columns=120, env=temp) as terminal:
        terminal.read_until(
            lambda lines: any("now slow �[2J�]0;x�[bold] ::error::x" in line for line in lines)
        )
        (repository.path / "go").touch()
        terminal.read_to_end()
    assert b"\x1b[2J" not in terminal.written
    assert b"\x1b]0;" not in terminal.written
