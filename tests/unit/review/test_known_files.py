"""Which changed files are no part of an agent although no suite covers them."""

import asyncio
from pathlib import Path

import pytest

from agentevals_action.review.known_files import KnownFiles, read_known_files
from agentevals_action.settings import Settings
from agentevals_action.system.git import GitRepository
from tests.support.repositories import Repository

FILES = {
    "README.md": "How to use it\n",
    "docs/how-to.md": "First, …\n",
    "docs/policy/refunds.md": "30 days\n",
    "packages/bot/package.json": "{}\n",
    "packages/bot/README.md": "A bot\n",
    ".github/workflows/evals.yml": "- uses: org/agentevals-action@v1\n",
    ".github/workflows/lint.yml": "- run: ruff check\n",
}


async def read(folder: Path, files: dict[str, str], **inputs: str) -> KnownFiles:
    Repository.create(folder, {**FILES, **files})
    repository = await GitRepository.open(folder)
    settings = Settings.from_environ({f"INPUT_{name}": text for name, text in inputs.items()})
    tracked = (await repository.listing()).tracked
    return await read_known_files(repository, tracked, settings, ".github/workflows/own.yml")


def known(folder: Path, files: dict[str, str], **inputs: str) -> KnownFiles:
    return asyncio.run(read(folder, files, **inputs))


@pytest.mark.parametrize(
    ("path", "is_known"),
    [
        ("README.md", True),
        ("README.zh-CN.md", True),
        ("readme_agent.py", False),
        ("CHANGELOG.md", True),
        ("LICENSE", True),
        ("LICENSE-MIT", True),
        (".gitignore", True),
        ("CODEOWNERS", True),
        ("docs/how-to.md", True),
        ("docs/conf.py", True),
        ("packages/bot/README.md", True),
        ("packages/bot/docs/x.md", True),
        ("skills/refund/README.md", False),
        ("src/docs/x.md", False),
        ("notes.txt", False),
        ("prompts/system.md", False),
        ("SKILL.md", False),
        ("AGENTS.md", False),
        ("CLAUDE.md", False),
        ("requirements.txt", False),
        ("uv.lock", False),
        (".agentevals.yaml", True),
        ("agentevals-report/summary.json", True),
        ("replies/a.json", True),
        ("evals/base.jsonl", True),
        (".github/dependabot.yml", True),
        (".github/workflows/lint.yml", True),
        (".github/workflows/evals.yml", False),
        (".github/workflows/own.yml", False),
        (".github/copilot-instructions.md", False),
        (".github/skills/refund/SKILL.md", False),
        (".github/ISSUE_TEMPLATE/bug.md", True),
    ],
)
def test_known_files__are_documentation_by_place_and_the_action_s_own(
    tmp_path: Path, path: str, is_known: bool
) -> None:
    inputs = {"CACHE-DIR": "replies", "BASELINE-FILE": "evals/base.jsonl"}
    assert (path in known(tmp_path, {}, **inputs)) is is_known


@pytest.mark.parametrize(
    ("file", "text", "path", "is_known"),
    [
        ("agent.py", "open('docs/policy/refunds.md')", "docs/policy/refunds.md", False),
        ("agent.py", "open('docs/policy/refunds.md')", "docs/how-to.md", True),
        ("agent.py", "Path('docs').glob('**/*.md')", "docs/policy/refunds.md", False),
        ("agent.py", "f'{ROOT}/docs/{name}.md'", "docs/how-to.md", False),
        ("agent.ts", "readFileSync(`./docs/policy/${name}`)", "docs/policy/refunds.md", False),
        ("config.yaml", "knowledge: docs", "docs/how-to.md", False),
        ("config.yaml", "knowledge:\n  - docs/policy/", "docs/policy/refunds.md", False),
        ("evals/EVAL.yaml", "input: Summarise README.md", "README.md", False),
        ("agent.sh", "cat README.md", "README.md", False),
        ("agent.py", "# see the docs", "docs/how-to.md", True),
        ("agent.py", "# https://example.org/docs/how-to.md", "docs/how-to.md", True),
        ("pyproject.toml", "readme = 'README.md'", "README.md", True),
        ("docs/index.md", "[more](../README.md)", "README.md", True),
    ],
)
def test_known_files__what_the_agent_s_files_name_is_no_documentation(
    tmp_path: Path, file: str, text: str, path: str, is_known: bool
) -> None:
    assert (path in known(tmp_path, {file: f"{text}\n"})) is is_known
