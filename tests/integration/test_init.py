"""`init`: from a repository with an agent to a first red review, and what it never does."""

import subprocess
from pathlib import Path

import pytest
import yaml

from agentevals_action.settings import INPUTS
from tests.support import command
from tests.support.repositories import Files, Repository

AGENT: Files = {
    "agent.py": "import kb\nprint(kb.answer(input()))\n",
    "kb.py": "def answer(question):\n    return 'I am ready' if 'ready' in question else '?'\n",
}
CREATED = [
    "evals/EVAL.yaml",
    ".agentv/targets.yaml",
    ".agentevals.yaml",
    ".github/workflows/evals.yml",
    ".gitignore",
]


def initialised(folder: Path, *arguments: str, files: Files = AGENT) -> tuple[Repository, str]:
    repository = Repository.create(folder / "repository", files)
    done = command.run(repository.path, "init", *arguments)
    assert (done.code, done.err) == (0, "")
    return repository, done.out


def read(repository: Repository, path: str) -> dict[str, object]:
    found: dict[str, object] = yaml.safe_load((repository.path / path).read_text())
    return found


def test_init__a_change_of_a_module_that_the_agent_imports_ends_in_a_red_review(
    tmp_path: Path,
) -> None:
    repository, out = initialised(tmp_path, "--command", "python3 agent.py")
    assert [line.split() for line in out.splitlines()[:5]] == [
        ["created", path] for path in CREATED
    ]

    run = command.run(repository.path, "run")
    assert run.code == 0, run.err
    repository.commit("Add evals")
    repository.write({"kb.py": "def answer(question):\n    return 'no'\n"})
    review = command.run(repository.path, "review", "--base", "HEAD")

    assert review.code == 1, review.err
    assert "1 test regressed" in review.out
    assert repository.git("status", "--porcelain") == "M kb.py"


def test_init__an_existing_file_is_never_changed(tmp_path: Path) -> None:
    repository = Repository.create(tmp_path / "repository", AGENT)
    own = dict.fromkeys(CREATED, "# the user's own\n")
    own[".github/workflows/evals.yml"] = "# runs agentevals-action\n"
    repository.commit("own", own)

    done = command.run(repository.path, "init", "--model", "gpt-4o-mini")

    assert done.code == 0, done.err
    assert [line.split() for line in done.out.splitlines()[:5]] == [
        ["kept", path] for path in CREATED
    ]
    assert "echo /agentevals-report/ >> .gitignore" in done.out
    assert "echo .env >> .gitignore" in done.out
    assert repository.git("status", "--porcelain") == ""


def test_init__writes_through_no_link_of_the_repository(tmp_path: Path) -> None:
    """A link in place of a file would let the repository choose which file is created."""
    repository = Repository.create(tmp_path / "repository", AGENT)
    (repository.path / ".agentevals.yaml").symlink_to(tmp_path / "outside")
    (tmp_path / "folder").mkdir()
    (repository.path / ".agentv").symlink_to(tmp_path / "folder")

    done = command.run(repository.path, "init", "--command", "python3 agent.py")

    assert done.code == 2
    assert ".agentv/targets.yaml" in done.err
    assert "outside of the repository" in done.err
    assert not (tmp_path / "outside").exists()
    assert not list((tmp_path / "folder").iterdir())


def test_init__a_repository_with_suites_and_a_workflow_of_other_names_keeps_them(
    tmp_path: Path,
) -> None:
    files = {
        **AGENT,
        "checks/support.eval.yaml": "name: support\ntests: []\n",
        ".github/workflows/ci.yml": "steps: [{uses: org/agentevals-action@v1}]\n",
    }
    repository, out = initialised(tmp_path, "--command", "python3 agent.py", files=files)

    assert "kept     checks/support.eval.yaml" in out
    assert "kept     .github/workflows/ci.yml" in out
    assert not (repository.path / "evals").exists()


def test_init__a_suite_of_another_name_stays_the_only_one(tmp_path: Path) -> None:
    """`review` finds it as soon as it has the name that `init` proposes."""
    other = "tests: [{id: a, input: ready, assert: [{type: icontains, value: ready}]}]\n"
    files = {**AGENT, "evals/support.yaml": other, "promptfooconfig.yaml": "tests: []\n"}
    repository, out = initialised(tmp_path, "--command", "python3 agent.py", files=files)

    assert "kept     evals/support.yaml" in out
    assert not (repository.path / "evals/EVAL.yaml").exists()
    (move,) = (line for line in out.splitlines() if line.startswith("  mv "))
    subprocess.run(move, shell=True, cwd=repository.path, check=True)
    assert command.run(repository.path, "run").code == 0


def test_init__a_suite_that_the_configuration_names_keeps_its_name(tmp_path: Path) -> None:
    files = {
        **AGENT,
        "checks/support.yaml": "tests: [{id: a, input: q, criteria: c}]\n",
        ".agentv/config.yaml": "eval_patterns: [checks/*.yaml]\n",
    }
    _, out = initialised(tmp_path, "--command", "python3 agent.py", files=files)
    assert "kept     checks/support.yaml" in out
    assert "  mv " not in out


def test_init__a_python_function_is_imported_from_the_current_folder(tmp_path: Path) -> None:
    repository = Repository.create(tmp_path / "repository")
    code = "def answer(messages):\n    return 'I am ready'\n"
    repository.commit("agent", {"bot/shop/agent.py": code})

    done = command.run(repository.path / "bot", "init", "--python", "shop.agent:answer")

    assert done.code == 0, done.err
    (target,) = yaml.safe_load((repository.path / CREATED[1]).read_text())["targets"]
    assert target == {
        "name": "default",
        "provider": "python",
        "target": "shop.agent:answer",
        "cwd": "/bot",
    }
    run = command.run(repository.path, "run")
    assert run.code == 0, run.out + run.err


def test_init__a_file_of_keys_is_not_added(tmp_path: Path) -> None:
    repository, out = initialised(tmp_path, "--command", "python3 agent.py")
    assert ".env" in (repository.path / ".gitignore").read_text().splitlines()
    assert "git add --all" in out

    files = {**AGENT, ".gitignore": "/agentevals-report/\n"}
    repository = Repository.create(tmp_path / "other", files)
    repository.write({"app/.env": "KEY=secret-1\n"})
    done = command.run(repository.path, "init", "--command", "python3 agent.py")

    assert "--all" not in done.out
    assert "echo .env >> .gitignore" in done.out
    (add,) = (line for line in done.out.splitlines() if "git add" in line)
    assert add.split()[2:6] == CREATED[:4]


@pytest.mark.parametrize(
    ("model", "provider", "key"),
    [
        ("gpt-4o-mini", "openai", "OPENAI_API_KEY"),
        ("claude-sonnet-4-5", "anthropic", "ANTHROPIC_API_KEY"),
        ("gemini-2.5-flash", "gemini", "GEMINI_API_KEY"),
    ],
)
def test_init__a_model_s_name_decides_its_provider_and_its_key(
    tmp_path: Path, model: str, provider: str, key: str
) -> None:
    repository, out = initialised(tmp_path, "--model", model)

    listed = read(repository, ".agentv/targets.yaml")["targets"]
    target = {"provider": provider, "model": model, "api_key": f"${{{{ {key} }}}}"}
    assert listed == [{"name": "default", **target}]
    assert f"export {key}=…" in out
    assert f"{key}: ${{{{ secrets.{key} }}}}" in (repository.path / CREATED[3]).read_text()
    assert command.run(repository.path, "validate").code == 0


def test_init__a_service_is_a_target_that_is_valid(tmp_path: Path) -> None:
    repository, _ = initialised(tmp_path, "--url", "https://agent.example.com/ask?a='#{x}\"")

    assert command.run(repository.path, "validate", "--strict").code == 0


def test_init__code_decides_what_is_watched_and_which_keys_the_agent_gets(tmp_path: Path) -> None:
    files = {
        "src/agent.py": "from openai import OpenAI\n",
        "src/tools.py": "import os\nos.environ['SEARCH_API_KEY']\n",
        "main.ts": "",
        "prompts/system.md": "Be brief.\n",
        "tests/test_agent.py": "OTHER_API_KEY = 1\n",
        "docs/guide.md": "",
        "requirements.txt": "openai\n",
    }
    repository, out = initialised(tmp_path, "--command", "python3 src/agent.py", files=files)

    rules = (repository.path / ".agentevals.yaml").read_text()
    assert rules.endswith('# watch:\n#   - "*.ts"\n#   - "prompts/**"\n#   - "src/**"\n')
    assert (
        "\nNo suites of promptfoo, pytest (deepeval, pydantic-evals), inspect or a plugin of Claude "
        "Code are here\n" in out
    )
    workflow = read(repository, ".github/workflows/evals.yml")
    assert workflow["jobs"] == {
        "evals": {
            "if": "github.event.action != 'edited' || github.event.changes.base",
            "runs-on": "ubuntu-latest",
            "steps": [
                {"uses": "actions/checkout@v5", "with": {"persist-credentials": False}},
                {"uses": "actions/setup-python@v5", "with": {"python-version": "3.13"}},
                {
                    "uses": "org/agentevals-action/composite@v1",
                    "with": {
                        "prepare": "python3 -m pip install -r requirements.txt",
                        "env": "OPENAI_API_KEY,SEARCH_API_KEY",
                    },
                    "env": {
                        "OPENAI_API_KEY": "${{ secrets.OPENAI_API_KEY }}",
                        "SEARCH_API_KEY": "${{ secrets.SEARCH_API_KEY }}",
                    },
                },
            ],
        }
    }
    assert {"prepare", "env"} <= set(INPUTS)
    assert "agentevals-action run --env OPENAI_API_KEY,SEARCH_API_KEY" in out


def test_init__the_command_of_a_subfolder_runs_there(tmp_path: Path) -> None:
    repository = Repository.create(tmp_path / "repository")
    repository.commit("agent", {f"bot/{name}": content for name, content in AGENT.items()})

    assert command.run(repository.path / "bot", "init", "--command", "python3 agent.py").code == 0
    done = command.run(repository.path / "bot", "run")

    assert done.code == 0, done.err
    assert (repository.path / "agentevals-report/results.jsonl").is_file()
    assert not (repository.path / "bot/agentevals-report").exists()


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        ((), "are here, and the agent is missing"),
        (("--model", "a", "--url", "https://b.example"), "specify one agent"),
        (("--python", "agent.py:answer"), "write `package.module:function`"),
        (("--url", "agent.example"), "'agent.example' is not a valid agent"),
        (("--command", " "), "' ' is not a valid agent"),
    ],
)
def test_init__an_agent_that_is_missing_or_invalid_writes_nothing(
    tmp_path: Path, arguments: tuple[str, ...], message: str
) -> None:
    repository = Repository.create(tmp_path / "repository", AGENT)

    done = command.run(repository.path, "init", *arguments)

    assert (done.code, done.out) == (2, "")
    assert message in done.err
    assert repository.git("status", "--porcelain") == ""


def test_init__outside_git_the_advice_is_for_a_person(tmp_path: Path) -> None:
    for arguments in (("init", "--model", "gpt-4o-mini"), ("review", "--base", "main")):
        done = command.run(tmp_path, *arguments)
        assert done.code == 2
        assert "git init" in done.err
        assert "actions/checkout" not in done.err
