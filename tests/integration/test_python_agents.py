"""Agents that are Python functions, in runs and reviews through the command line."""

import sys
from pathlib import Path

import pytest

from tests.support import command
from tests.support.processes import gone
from tests.support.repositories import Repository

TARGETS = f"""\
targets:
  - name: default
    provider: python
    target: shop.agent:answer
    python: {sys.executable}
    cwd: /
"""
SUITE = "name: shop\ntests:\n" + "".join(
    f"  - {{id: test-{number}, input: Ada, assert: [{{type: contains, value: Good day}}]}}\n"
    for number in range(4)
)
#: It notes its processes in a file outside of the tree, one line for each import.
AGENT = """\
import os
with open({log!r}, "a") as file:
    file.write("{side} " + str(os.getpid()) + "\\n")

def answer(messages):
    return "{greeting}, " + messages[0]["content"]
"""


@pytest.fixture
def log(tmp_path: Path) -> Path:
    return tmp_path / "imports"


def agent(log: Path, side: str, greeting: str = "Good day") -> dict[str, str | bytes | None]:
    return {"shop/agent.py": AGENT.format(log=str(log), side=side, greeting=greeting)}


@pytest.fixture
def repository(tmp_path: Path, log: Path) -> Repository:
    """A shop's agent on `main`, and a branch for its change."""
    files = {
        "evals/EVAL.yaml": SUITE,
        ".agentv/targets.yaml": TARGETS,
        ".gitignore": "/agentevals-report/\n__pycache__/\n",
        **agent(log, "base"),
    }
    made = Repository.create(tmp_path / "repository", files)
    made.git("checkout", "--quiet", "-b", "change")
    return made


def review(repository: Repository) -> command.Done:
    """With one worker a side."""
    return command.run(repository.path, "review", "--base", "main", "--max-concurrency", "1")


def imports(log: Path) -> dict[str, list[int]]:
    """The processes that imported the agent of each side."""
    found: dict[str, list[int]] = {}
    for line in log.read_text().splitlines():
        side, _, process = line.partition(" ")
        found.setdefault(side, []).append(int(process))
    return found


def test_review__head_and_base_have_their_own_workers(repository: Repository, log: Path) -> None:
    """The regression is found, with confirmation, although one import serves all of a side."""
    repository.commit("impolite", agent(log, "head", "Yo"))
    done = review(repository)
    assert done.code == 1, done.err
    assert "4 tests regressed" in done.out
    found = imports(log)
    assert {side: len(processes) for side, processes in found.items()} == {"base": 1, "head": 1}
    assert all(gone(process) for processes in found.values() for process in processes)


def test_review__a_change_of_the_module_affects_its_suite(
    repository: Repository, log: Path
) -> None:
    repository.commit("same", agent(log, "head"))
    done = review(repository)
    assert done.code == 0, done.err
    assert "shop/agent.py" in done.out
    assert "head" in imports(log)


@pytest.mark.parametrize(
    ("reply", "problem"),
    [
        ("{'answer': 'Good day'}", "the reply is an object without `output`, which cannot be read"),
        ("{'error': 'Good day is over'}", "the reply is an error: "),
    ],
)
def test_review__a_dict_without_an_answer_is_no_pass(
    repository: Repository, reply: str, problem: str
) -> None:
    repository.commit(
        "structured", {"shop/agent.py": f"def answer(messages):\n    return {reply}\n"}
    )
    done = review(repository)
    assert done.code == 3, done.err
    assert problem in done.out


def test_review__an_agent_that_cannot_be_imported_is_no_pass(
    repository: Repository, log: Path
) -> None:
    repository.commit("broken", {"shop/agent.py": "import nothing_like_it\n"})
    done = review(repository)
    assert done.code == 3, done.err
    assert "shop.agent:answer cannot be imported: ModuleNotFoundError" in done.out
