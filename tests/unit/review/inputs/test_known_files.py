"""Which changed files are no part of an agent although no suite covers them."""

import asyncio
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

import pytest

from agentevals_action.review.inputs.known_files import KnownFiles, read_known_files
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


async def read(
    folder: Path,
    files: dict[str, str],
    covered: Sequence[str] = (),
    links: Mapping[str, Sequence[str]] | None = None,
    **inputs: str,
) -> KnownFiles:
    Repository.create(folder, {**FILES, **files})
    repository = await GitRepository.open(folder)
    settings = Settings.from_environ({f"INPUT_{name}": text for name, text in inputs.items()})
    tracked = (await repository.listing()).tracked
    workflow = ".github/workflows/own.yml"
    own = dict.fromkeys(covered, True)
    return await read_known_files(repository, tracked, own, links or {}, settings, workflow)


def known(folder: Path, files: dict[str, str], **options: Any) -> KnownFiles:
    return asyncio.run(read(folder, files, **options))


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
        ("changelog-prompt.md", False),
        ("notes.txt", False),
        ("prompts/system.md", False),
        ("SKILL.md", False),
        ("AGENTS.md", False),
        ("CLAUDE.md", False),
        ("docs/AGENTS.md", False),
        ("docs/prompts/system.md", False),
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
        ("calibration.json", True),
        ("src/calibration.json", False),
        ("nodes.labels.yaml", False),
    ],
)
def test_known_files__are_documentation_by_place_and_the_action_s_own(
    tmp_path: Path, path: str, is_known: bool
) -> None:
    inputs = {"CACHE-DIR": "replies", "BASELINE-FILE": "evals/base.jsonl"}
    assert (path in known(tmp_path, {}, **inputs)) is is_known


@pytest.mark.parametrize(
    ("content", "is_known"),
    [
        ('{"version": 1, "day": "2026-01-02", "samples": 1, "judges": {}}', True),
        ('{"version": 1, "day": "2026-01-02"}', False),
        ('{"offset": 2}', False),
        ("[]", False),
        ("offset = 2", False),
    ],
)
def test_known_files__a_calibration_is_known_by_its_content(
    tmp_path: Path, content: str, is_known: bool
) -> None:
    files = {"bot/calibration.json": content, "calibration.json": "x"}
    found = known(tmp_path, files, **{"WORKING-DIRECTORY": "bot"})

    assert ("bot/calibration.json" in found) is is_known
    assert "calibration.json" not in found


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
        ("agent.py", "docs = retrieve(question)", "docs/how-to.md", True),
        ("agent.py", "run('find docs -name x')", "docs/how-to.md", False),
        ("agent.py", "Path('.').rglob('*.md')", "docs/how-to.md", False),
        ("agent.py", "Path('.').rglob('*.md')", "README.md", False),
        ("agent.py", "PROMPTS.glob('*.md')", "README.md", True),
        ("agent.py", "os.walk('.')\nname.endswith('.md')", "docs/how-to.md", False),
        ("agent.py", "name.endswith('.md')", "docs/how-to.md", True),
        ("agent.py", "read('.', recursive=True, exts=['.md'])", "docs/how-to.md", False),
        ("agent.go", "//go:embed docs", "docs/how-to.md", False),
        ("Makefile", "KB = docs", "docs/how-to.md", False),
        ("Makefile", ".PHONY: docs", "docs/how-to.md", True),
        ("agent.py", "open(f'README.{language}.md')", "README.de.md", False),
        ("agent.ipynb", '"open(\\"docs/how-to.md\\")"', "docs/how-to.md", False),
        ("agent.sh", "cd docs && cat policy/*", "docs/policy/refunds.md", False),
        ("agent.sh", "# the docs say more", "docs/how-to.md", True),
        ("Makefile", "docs: html", "docs/how-to.md", True),
        ("Makefile", "kb:\n\tcp -r docs kb", "docs/how-to.md", False),
        ("CLAUDE.md", "Follow @docs/how-to.md", "docs/how-to.md", False),
        ("CLAUDE.md", "See @README.md", "README.md", False),
        ("config.yaml", "prompt: file://docs/how-to.md", "docs/how-to.md", False),
        ("config.yaml", "command: [python3, agent.py, docs]", "docs/how-to.md", False),
        ("index.csv", "docs/how-to.md,How to", "docs/how-to.md", False),
        ("index.csv", "Read the README.md", "README.md", True),
        (".pre-commit-config.yaml", "exclude: ^docs/", "docs/how-to.md", True),
        ("pyproject.toml", "readme = 'README.md'", "README.md", True),
        (
            "pyproject.toml",
            "[tool.shop]\nknowledge = 'docs/policy'",
            "docs/policy/refunds.md",
            False,
        ),
        ("pyproject.toml", "[tool.shop]\nknowledge = 'docs'", "docs/policy/refunds.md", False),
        ("pyproject.toml", "exclude = ['docs', 'tests']", "docs/how-to.md", True),
        (
            ".github/workflows/evals.yml",
            "- agentevals: cp docs/how-to.md kb",
            "docs/how-to.md",
            False,
        ),
        (
            ".github/workflows/evals.yml",
            "- agentevals: ./.github/actions/x",
            ".github/actions/x/a.yml",
            False,
        ),
        (".github/copilot-instructions.md", "See docs/how-to.md", "docs/how-to.md", False),
        ("agent.sh", "cat .github/ISSUE_TEMPLATE/*", ".github/ISSUE_TEMPLATE/bug.md", False),
        ("agent.sh", "cat docs/index.md", "docs/how-to.md", True),
        ("docs/index.md", "[more](../README.md)", "README.md", True),
    ],
)
def test_known_files__what_the_agent_s_files_name_is_no_documentation(
    tmp_path: Path, file: str, text: str, path: str, is_known: bool
) -> None:
    assert (path in known(tmp_path, {file: f"{text}\n"})) is is_known


def test_known_files__a_named_document_names_others(tmp_path: Path) -> None:
    files = {"agent.sh": "cat docs/index.md\n", "docs/index.md": "See docs/how-to.md\n"}
    assert "docs/how-to.md" not in known(tmp_path, files)


@pytest.mark.parametrize(
    ("program", "path", "is_known"),
    [
        ("docs/bot/agent.py", "docs/policy/refunds.md", False),
        (".github/scripts/agent.py", ".github/scripts/system.md", False),
        (".github/scripts/agent.py", ".github/workflows/lint.yml", True),
        ("docs/question.md", "docs/policy/refunds.md", True),
    ],
)
def test_known_files__beside_a_program_there_may_be_its_files(
    tmp_path: Path, program: str, path: str, is_known: bool
) -> None:
    assert (path in known(tmp_path, {program: "x\n"}, covered=[program])) is is_known


def test_known_files__where_a_link_leads_is_no_documentation(tmp_path: Path) -> None:
    links = {"prompts": ["docs/policy"], "CLAUDE.md": ["README.md"], "docs/latest": ["docs/a.md"]}
    found = known(tmp_path, {}, links=links)
    paths = ("docs/policy/refunds.md", "README.md", "docs/a.md", "docs/how-to.md")
    assert [path in found for path in paths] == [False, False, True, True]
