"""The table that `run` and `review` show on a terminal while they work."""

import re
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
    tests = ", ".join(f"{{id: '{one}', input: '{one}'}}" for one in inputs)
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
    """Whether one test is finished, and the two others run."""
    return any(line.startswith("1 of 3 tests") for line in lines) and any(
        "slow-1" in line and "slow-2" in line for line in lines
    )


@pytest.mark.parametrize("columns", [80, 200])
def test_run__shows_suites_what_runs_cost_and_time_and_ends_as_the_static_screen(
    repository: Repository, columns: int
) -> None:
    with Terminal(repository.path, "run", columns=columns) as terminal:
        shown = terminal.read_until(is_working)
        rows = [line.split() for line in shown]
        title = ["suite", "tests", "pass", "borderline", "fail", "error", "cost"]
        assert title in rows
        assert ["a/EVAL.yaml", "1/2", "1", "0", "0", "0", "$0.2500"] in rows
        assert ["b/EVAL.yaml", "0/1", "0", "0", "0", "0", "–"] in rows
        assert "now: slow-1, slow-2" in shown
        assert re.fullmatch(r"1 of 3 tests, .* s, about .* left, \$0\.2500", shown[-1].strip())
        assert max(map(len, shown)) <= columns
        (repository.path / "go").touch()
        shown = terminal.read_to_end()
    assert terminal.process.returncode == 0
    assert not any("now:" in line or line.startswith("3 of 3") for line in shown)
    assert {"This run cost $0.75 (source: reply).", "passed"} <= set(shown)


def test_review__has_a_column_for_each_side(repository: Repository) -> None:
    repository.commit("other", {"agent.sh": AGENT + "# other\n"})
    arguments = ("review", "--base", "HEAD~1", "--watch", "agent.sh")
    with Terminal(repository.path, *arguments, columns=100) as terminal:
        shown = terminal.read_until(
            lambda lines: any(line.startswith("a/EVAL.yaml  ") and "1/2" in line for line in lines)
        )
        (title,) = (line.split() for line in shown if line.startswith("suite "))
        assert title[-6:-4] != title[-5:-3]
        assert {"head", "pass"} < set(title)
        (repository.path / "go").touch()
        terminal.process.send_signal(signal.SIGINT)
        terminal.read_to_end()


@pytest.mark.parametrize("number", [signal.SIGINT, signal.SIGKILL])
def test_signal__leaves_a_clean_terminal(repository: Repository, number: signal.Signals) -> None:
    with Terminal(repository.path, "run") as terminal:
        terminal.read_until(is_working)
        terminal.process.send_signal(number)
        shown = terminal.read_to_end()
        assert terminal.shows_cursor
    if number is not signal.SIGKILL:
        assert not any("now:" in line for line in shown)
        assert shown[-1] == f"interrupted by {number.name}"
        assert terminal.process.returncode == 128 + number


def test_many_suites__fit_the_screen_and_those_that_run_are_shown(tmp_path: Path) -> None:
    files = {f"s{number:02}/EVAL.yaml": suite(f"s-{number}", "fast") for number in range(40)}
    files |= {"s39/EVAL.yaml": suite("s-39", "slow"), "agent.sh": AGENT}
    repository = Repository.create(tmp_path / "r", {**files, ".agentv/targets.yaml": TARGETS})
    with Terminal(repository.path, "run", lines=20) as terminal:
        shown = terminal.read_until(
            lambda lines: any(line.startswith("39 of 40 tests") for line in lines)
        )
        start = next(index for index, line in enumerate(shown) if line.startswith("suite "))
        assert len(shown) - start < 20
        assert any(line.startswith("s39/EVAL.yaml ") for line in shown)
        assert any(line.startswith("… and 29 more suites, 29 finished") for line in shown)
        terminal.resize(60, 12)
        shown = terminal.read_until(
            lambda lines: any(line.startswith("… and 37 more suites") for line in lines)
        )
        assert any(line.startswith("s39/EVAL.yaml ") for line in shown)
        (repository.path / "go").touch()
        assert "passed" in terminal.read_to_end()


def test_terminal_without_cursor_movement__gets_lines(repository: Repository) -> None:
    (repository.path / "go").touch()
    with Terminal(repository.path, "run", env={"TERM": "dumb"}) as terminal:
        shown = terminal.read_to_end()
    assert "tests: 3 of 3 tests" in shown
    assert b"\x1b" not in terminal.written


def test_no_color__has_no_colour(repository: Repository) -> None:
    (repository.path / "go").touch()
    with Terminal(repository.path, "run", env={"NO_COLOR": "1"}) as terminal:
        terminal.read_to_end()
    assert not re.search(rb"\x1b\[(?:\d+;)*[349][0-7]m", terminal.written)


def test_hostile_names__move_no_cursor_and_are_no_markup(tmp_path: Path) -> None:
    name = "\\e[2J\\e]0;x\\a[bold]\\n::error::x"
    tests = f'[{{id: "slow {name}", input: slow}}]'
    text = f"name: one\nassert: [{{type: contains, value: hello}}]\ntests: {tests}\n"
    files = {"EVAL.yaml": text, "agent.sh": AGENT, ".agentv/targets.yaml": TARGETS}
    repository = Repository.create(tmp_path / "r", files)
    with Terminal(repository.path, "run") as terminal:
        shown = terminal.read_until(lambda lines: any("now:" in line for line in lines))
        (now,) = (line for line in shown if line.startswith("now: "))
        assert now == "now: slow �[2J�]0;x�[bold] ::error::x"
        (repository.path / "go").touch()
        terminal.read_to_end()
    assert b"\x1b[2J" not in terminal.written
    assert b"\x1b]0;" not in terminal.written
