"""`init` in a repository with suites of other programs: from nothing to the gate in one commit."""

import os
import shutil
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import pytest
import yaml

from agentevals_action.settings import INPUTS
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
CREATED = [".agentevals.yaml", WORKFLOW, ".gitignore"]


def initialised(folder: Path, files: Files) -> tuple[Repository, str]:
    repository = Repository.create(folder / "repository", files)
    done = command.run(repository.path, "init")
    assert (done.code, done.err) == (0, ""), done.err
    return repository, done.out


def read(repository: Repository, path: str) -> Any:
    return yaml.safe_load((repository.path / path).read_text())


def steps(repository: Repository) -> list[dict[str, Any]]:
    """The steps after the checkout."""
    workflow = read(repository, WORKFLOW)
    found: list[dict[str, Any]] = workflow["jobs"]["evals"]["steps"][1:]
    return found


def test_init__a_configuration_of_promptfoo_decides_the_entry_and_the_workflow(
    tmp_path: Path,
) -> None:
    repository, out = initialised(tmp_path, PROMPTFOO)

    assert [line.split() for line in out.splitlines()[:3]] == [
        ["created", path] for path in CREATED
    ]
    assert not (repository.path / "evals").exists()
    assert not (repository.path / ".agentv").exists()
    assert read(repository, ".agentevals.yaml") == {
        "runners": [
            {
                "name": "promptfoo",
                "results": "promptfoo",
                "suites": ["**/promptfooconfig.yaml"],
                "env": ["OPENAI_API_KEY"],
            }
        ],
    }
    text = (repository.path / ".agentevals.yaml").read_text()
    assert text.endswith(
        "# Without `watch`, a change of any file runs all suites, documentation aside. With it, only "
        "these files, the agent's own\n# code and prompts, and those that a suite names do:\n"
        '# watch:\n#   - "prompts/**"\n'
    )
    assert steps(repository) == [
        {"uses": "actions/setup-node@v5", "with": {"node-version": "22"}},
        {"run": "npm install -g promptfoo@0.123.1"},
        {
            "uses": "org/agentevals-action/composite@v1",
            "with": {"env": "OPENAI_API_KEY"},
            "env": {"OPENAI_API_KEY": "${{ secrets.OPENAI_API_KEY }}"},
        },
    ]
    assert "env" in INPUTS
    assert "each change runs it" in (repository.path / ".agentevals.yaml").read_text()
    assert "agentevals-action run --env OPENAI_API_KEY" in out
    assert "Add the secret OPENAI_API_KEY" in out


def test_init__tests_of_python_say_how_to_name_their_keys(tmp_path: Path) -> None:
    repository, out = initialised(tmp_path, PYTEST)

    (entry,) = read(repository, ".agentevals.yaml")["runners"]
    assert entry == {"name": "pytest", "results": "junit", "suites": ["evals/test_*.py"]}
    assert steps(repository) == [
        {"uses": "actions/setup-python@v5", "with": {"python-version": "3.13"}},
        {"run": "python3 -m pip install -r requirements.txt 'pytest>=8.2' deepeval"},
        {"uses": "org/agentevals-action/composite@v1"},
    ]
    assert "# env: [OPENAI_API_KEY]" in (repository.path / ".agentevals.yaml").read_text()
    workflow = (repository.path / WORKFLOW).read_text()
    assert '# env: {OPENAI_API_KEY: "${{ secrets.OPENAI_API_KEY }}"}' in workflow
    assert "secret" not in out
    assert "each change runs it" not in (repository.path / ".agentevals.yaml").read_text()


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


def test_init__an_agent_that_is_named_gets_a_suite_of_its_own(tmp_path: Path) -> None:
    repository = Repository.create(tmp_path / "repository", PROMPTFOO)

    done = command.run(repository.path, "init", "--model", "gpt-4o-mini")

    assert done.code == 0, done.err
    assert (repository.path / "evals/EVAL.yaml").is_file()
    assert read(repository, ".agentevals.yaml") is None
    proposal = done.out.partition("for .agentevals.yaml:\n")[2].partition("\n\n")[0]
    assert yaml.safe_load(proposal)["runners"][0]["results"] == "promptfoo"


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
