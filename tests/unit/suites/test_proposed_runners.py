"""The entries of runners for the files of other programs in a repository."""

from pathlib import Path

import pytest

from agentevals_action.suites.proposed_runners import propose_runners

DEEPEVAL = "from deepeval import assert_test\n"
PYDANTIC = "import pytest\nfrom pydantic_evals import Dataset\n"
TASK = "from inspect_ai import (\n    Task,\n    task,\n)\n\n\n@task\ndef ready(): ...\n"
CLAUDE = ("ANTHROPIC_API_KEY",), "npm install -g @anthropic-ai/claude-code@2.1.330"

#: Files, and the results, globs, keys and installation of each entry.
CASES = [
    ({"README.md": "", "EVAL.yaml": "tests: []\n", "notes/promptfooconfig.txt": ""}, []),
    (
        {"promptfooconfig.yaml": "providers: ['openai:chat:gpt-4o', anthropic:messages:claude]\n"},
        [
            (
                "promptfoo",
                ("**/promptfooconfig.yaml",),
                ("OPENAI_API_KEY", "ANTHROPIC_API_KEY"),
                "npm install -g promptfoo@0.123.1",
            )
        ],
    ),
    (
        {
            "a/promptfooconfig.yaml": "# openai:gpt\nproviders: [google:gemini] # xai:grok\n",
            "b/promptfooconfig.js": "// groq:x\nheaders: {k: process.env.SHOP_API_KEY}\n",
            "c/promptfooconfig.yaml": "providers: [file://openai.py, 'exec:openai: no']\n",
            "d/promptfooconfig.prod.yaml": "providers: [echo]\n",
            "node_modules/x/promptfooconfig.json": '{"providers": ["mistral:x"]}',
        },
        [
            (
                "promptfoo",
                (
                    *("**/promptfooconfig.yaml", "**/promptfooconfig.js"),
                    "**/promptfooconfig.prod.yaml",
                ),
                ("GOOGLE_API_KEY", "SHOP_API_KEY"),
                "npm install -g promptfoo@0.123.1",
            )
        ],
    ),
    (
        {
            "evals/test_a.py": DEEPEVAL,
            "evals/test_b.py": PYDANTIC,
            "evals/requirements.txt": "",
            "other/requirements.txt": "",
            "requirements.txt": "",
        },
        [
            (
                "junit",
                ("evals/test_*.py",),
                (),
                "python3 -m pip install -r evals/requirements.txt -r requirements.txt "
                "'pytest>=8.2' deepeval pydantic-evals",
            )
        ],
    ),
    (
        {
            "tests/test_eval.py": DEEPEVAL,
            "tests/test_in_function.py": "def test_a():\n    from deepeval import x\n",
            "tests/test_line.py": "def test_a(): import os, deepeval\n",
            "tests/test_skip.py": "import pytest\ndeepeval = pytest.importorskip('deepeval')\n",
            "tests/test_unit.py": "import pytest\n",
            "agent_test.py": DEEPEVAL,
            "conftest.py": DEEPEVAL,
            "test_text.py": "DOC = 'from deepeval import x'\n",
        },
        [
            (
                "junit",
                (
                    *("agent_test.py", "tests/test_eval.py", "tests/test_in_function.py"),
                    *("tests/test_line.py", "tests/test_skip.py"),
                ),
                (),
                "python3 -m pip install 'pytest>=8.2' deepeval",
            )
        ],
    ),
    (
        {
            "evals/a.py": TASK,
            "evals/b.py": "import inspect_ai\n\n@inspect_ai.task\ndef ready(): ...\n",
            "evals/solver.py": "from inspect_ai.solver import solver\n",
            "celery.py": "from celery import task\n\n@task\ndef run(): ...\n",
        },
        [("inspect", ("evals/a.py", "evals/b.py"), (), "python3 -m pip install inspect-ai")],
    ),
    (
        {".claude-plugin/plugin.json": "{}", "evals/deep/one/case.yaml": ""},
        [("claude", ("**/.claude-plugin/plugin.json",), *CLAUDE)],
    ),
    (
        {
            "a/.claude-plugin/plugin.json": "{}",
            "a/evals/one/prompt.md": "",
            "b/.claude-plugin/plugin.json": "{}",
            "b/prompts/prompt.md": "",
            "c/evals/one/prompt.md": "",
        },
        [("claude", ("a/.claude-plugin/plugin.json",), *CLAUDE)],
    ),
]


@pytest.mark.parametrize(("files", "expected"), CASES)
def test_propose__by_names_and_contents(
    tmp_path: Path, files: dict[str, str], expected: list[tuple[object, ...]]
) -> None:
    for path, text in files.items():
        (tmp_path / path).parent.mkdir(parents=True, exist_ok=True)
        (tmp_path / path).write_text(text)

    found = propose_runners(tmp_path, [*files, "evals/deleted.py"])

    assert [(each.results, each.suites, each.env, each.install) for each in found] == expected


def test_propose__a_link_out_of_the_repository_is_not_read(tmp_path: Path) -> None:
    (tmp_path / "outside.yaml").write_text("providers: [openai:gpt]\n")
    root = tmp_path / "root"
    root.mkdir()
    (root / "promptfooconfig.yaml").symlink_to("../outside.yaml")

    assert not propose_runners(root, ["promptfooconfig.yaml"])
