"""`init` in a repository with suites of other programs: from nothing to the gate in one commit."""

import os
import shutil
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import pytest
import yaml

from tests.support import command
from tests.support.gate import opened
from tests.support.job import Job
from tests.support.repositories import Files, Repository

CONFIGURATION = """\
prompts: [file://prompts/answer.txt]
providers: ["openai:chat:gpt-4o-mini"]
tests:
  - description: return window
    vars: {question: "May I return shoes?"}
    assert: [{type: icontains, value: 30 days}]
  - description: names the question
    vars: {question: "May I return socks?"}
    assert: [{type: icontains, value: socks}]
"""
#: A provider of promptfoo that needs no key: it answers with its prompt.
ECHO = CONFIGURATION.replace('"openai:chat:gpt-4o-mini"', "echo")
PROMPTFOO: Files = {
    "promptfooconfig.yaml": CONFIGURATION,
    "prompts/answer.txt": "Within 30 days: {{question}}\n",
}
#: Tests that import a library of evaluations, which is in their folder here.
PYTEST: Files = {
    "agent.py": "def answer(question):\n    return 'within 30 days'\n",
    "evals/deepeval.py": "def assert_test(answer, words):\n    assert words in answer, answer\n",
    "evals/test_returns.py": (
        "from agent import answer\n"
        "from deepeval import assert_test\n\n\n"
        "def test_returns():\n    assert_test(answer('May I return shoes?'), '30 days')\n"
    ),
    "requirements.txt": "deepeval\n",
}
STAND_IN = Path(__file__).resolve().parents[1] / "support/promptfoo_stand_in.py"
WORKFLOW = ".github/workflows/evals.yml"


def initialised(folder: Path, files: Files) -> tuple[Repository, str]:
    repository = Repository.create(folder / "repository", files)
    done = command.run(repository.path, "init")
    assert (done.code, done.err) == (0, ""), done.err
    return repository, done.out


def steps(repository: Repository) -> list[dict[str, Any]]:
    """The steps after the checkout."""
    workflow = yaml.safe_load((repository.path / WORKFLOW).read_text())
    found: list[dict[str, Any]] = workflow["jobs"]["evals"]["steps"][1:]
    return found


def test_init__what_the_user_s_own_files_lack_is_printed_and_not_written(tmp_path: Path) -> None:
    own: Files = {".agentevals.yaml": "watch: src/**\n", WORKFLOW: "# agentevals-action\n"}
    repository, out = initialised(tmp_path, {**PROMPTFOO, **PYTEST, **own})

    assert repository.git("status", "--porcelain") == "?? .gitignore"
    _, entries, added = out.split("Add this to ")
    assert entries.startswith(".agentevals.yaml:")
    assert [entry["name"] for entry in yaml.safe_load(entries.partition(":")[2])["runners"]] == [
        "promptfoo",
        "pytest",
    ]
    assert added.startswith(f"{WORKFLOW}:")
    assert "- run: npm install -g promptfoo@0.123.1" in added

    repository.write({".agentevals.yaml": entries.partition(":")[2], WORKFLOW: f"# {added}"})
    again = command.run(repository.path, "init")
    assert "Add this" not in again.out
    assert "kept     .agentevals.yaml" in again.out


def files_of(repository: Repository) -> Files:
    """The files of a repository, as git would add them."""
    paths = repository.git("ls-files", "--cached", "--others", "--exclude-standard").splitlines()
    return {path: (repository.path / path).read_bytes() for path in paths}


@contextmanager
def proposed(repository: Repository, change: Files, path: str = "") -> Iterator[Job]:
    """The job of the workflow that `init` wrote, for a pull request that changes files of the
    commit with its files; `path` has programs that earlier steps installed."""
    step = steps(repository)[-1]
    keys = dict.fromkeys(step.get("env", {}), "key-1")
    with opened(repository.path.parent / "gate", files_of(repository), change) as gate:
        programs = {"PATH": f"{path}{os.pathsep}{command.PATH}"}
        yield gate.job(inputs=step.get("with", {}), env={**keys, **programs})


@pytest.mark.parametrize(
    ("days", "code", "words"),
    [("within 30 days, yes", 0, "1 test in 1 suite, all pass"), ("14 days", 1, "1 test regressed")],
)
def test_init__a_team_with_pytest_is_gated_from_the_next_pull_request(
    tmp_path: Path, days: str, code: int, words: str
) -> None:
    repository, _ = initialised(tmp_path, PYTEST)
    change: Files = {"agent.py": f"def answer(question):\n    return '{days}'\n"}
    with proposed(repository, change) as job:
        done = job.finish()
        assert done.code == code, done.log
        assert words in job.server.comments[0].body


#: Prompts of a pull request, and its outcome.
PROMPTS = [
    ("Of course, within 30 days: {{question}}\n", 0, "2 tests in 1 suite, all pass"),
    ("Of course: {{question}}\n", 1, "1 test regressed"),
]


@pytest.mark.parametrize(("prompt", "code", "words"), PROMPTS)
def test_init__a_team_with_promptfoo_is_gated_from_the_next_pull_request(
    tmp_path: Path, prompt: str, code: int, words: str
) -> None:
    repository, _ = initialised(tmp_path, PROMPTFOO)
    (tmp_path / "bin").mkdir()
    shutil.copy(STAND_IN, tmp_path / "bin/promptfoo")
    (tmp_path / "bin/promptfoo").chmod(0o755)
    with proposed(repository, {"prompts/answer.txt": prompt}, str(tmp_path / "bin")) as job:
        done = job.finish()
        assert done.code == code, done.log
        comment = job.server.comments[0].body
        assert words in comment
        if code:
            assert "return window" in comment
            assert "names the question" not in comment
            assert "Within 30 days: May I return shoes?" in comment
            assert "Of course: May I return shoes?" in comment


@pytest.mark.slow
@pytest.mark.skipif(not shutil.which("promptfoo"), reason="promptfoo is not installed")
@pytest.mark.parametrize(("prompt", "code", "words"), PROMPTS)
def test_init__a_team_with_the_real_promptfoo_is_gated(
    tmp_path: Path, prompt: str, code: int, words: str
) -> None:
    repository, _ = initialised(tmp_path, {**PROMPTFOO, "promptfooconfig.yaml": ECHO})
    with proposed(repository, {"prompts/answer.txt": prompt}, os.environ["PATH"]) as job:
        done = job.finish(timeout=300)
        assert done.code == code, done.log
        assert words in job.server.comments[0].body


def test_init__the_commit_with_its_files_is_a_green_pull_request(tmp_path: Path) -> None:
    repository, _ = initialised(tmp_path, PYTEST)
    added = {path: text for path, text in files_of(repository).items() if path not in PYTEST}
    with opened(tmp_path / "gate", PYTEST, added) as gate:
        done = gate.job().finish()
        assert done.code == 0, done.log
        assert "1 test is new" in gate.comments()[0]


def test_init__tests_beside_the_agent_are_no_part_of_it(tmp_path: Path) -> None:
    """A test that was edited is another one, not a regression."""
    beside = {path.removeprefix("evals/"): text for path, text in PYTEST.items()}
    repository, _ = initialised(tmp_path, beside)
    assert '#   - "*.py"\n' in (repository.path / ".agentevals.yaml").read_text()
    stricter = str(PYTEST["evals/test_returns.py"]).replace("'30 days'", "'31 days'")
    with proposed(repository, {"test_returns.py": stricter}) as job:
        done = job.finish()
        assert done.code == 0, done.log
        assert "1 test not compared: the question changed" in job.server.comments[0].body
