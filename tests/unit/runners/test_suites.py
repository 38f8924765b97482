"""The suites of runners in a checkout, and the files by which a change selects them."""

from collections.abc import Mapping
from pathlib import Path
from typing import Any

import pytest

from agentevals_action.model.runner import Runner
from agentevals_action.model.suite import Suite
from agentevals_action.runners.suites import find_runner_suites
from tests.support import suites
from tests.support.runners import checkout

OWN = {"name": "ours", "results": "agentevals", "command": ["run", "{SUITE}", "{RESULTS}"]}


def entry(*globs: str, **fields: Any) -> Runner:
    return Runner.model_validate({**OWN, "suites": globs, **fields})


def find(
    root: Path, files: Mapping[str, str], *runners: Runner, below: str = "."
) -> tuple[Mapping[str, Suite], list[str]]:
    suites.write(root, files)
    found, errors = find_runner_suites(checkout(root, files, *runners, below=below))
    return found, [error.message for error in errors]


def roles(suite: Suite) -> dict[str, str]:
    return {file.path: file.role for file in suite.files}


def test_find__patterns_are_from_the_root_or_from_the_searched_folder(tmp_path: Path) -> None:
    files = {"a/checks/x.toml": "", "a/checks/y.toml": "", "b/checks/x.toml": "", "x.toml": ""}
    runner = entry("checks/*.toml", "!a/checks/y.toml")
    found, errors = find(tmp_path, files, runner, below="a")
    assert ([*found], errors) == (["a/checks/x.toml"], [])
    assert found["a/checks/x.toml"].runner == runner
    assert found["a/checks/x.toml"].tests == ()


@pytest.mark.parametrize(
    ("runners", "expected"),
    [
        (
            [entry("*.md")],
            "no file matches the `suites` of the runner `ours`; correct them, or remove the entry",
        ),
        (
            [entry("*.toml"), entry("x.*")],
            "`x.toml` belongs to another runner, too; exclude it from one (`!pattern`)",
        ),
        ([entry("out.link")], "`out.link` is no file of the checkout; check out the whole repo"),
        ([entry("gone.txt")], "`gone.txt` is no file of the checkout; check out the whole repo"),
    ],
)
def test_find__an_entry_that_is_wrong_has_no_suite(
    tmp_path: Path, runners: list[Runner], expected: str
) -> None:
    root = suites.write(tmp_path / "root", {"x.toml": ""})
    (tmp_path / "secret").write_text("")
    (root / "out.link").symlink_to(tmp_path / "secret")
    files = ("gone.txt", "out.link", "x.toml")
    found, (error,) = find_runner_suites(checkout(root, files, *runners))
    assert error.message.startswith(expected)
    assert len(found) == len(runners) - 1


def test_find__a_hidden_folder_has_no_suites(tmp_path: Path) -> None:
    files = {".cache/x.toml": "", "node_modules/p/x.toml": "", "x.toml": ""}
    found, _ = find(tmp_path, files, entry("**/*.toml"))
    assert [*found] == ["x.toml"]


def test_find__a_hidden_folder_that_a_pattern_names_has_suites(tmp_path: Path) -> None:
    files = {".agents/skills/a/x.toml": "", ".cache/x.toml": ""}
    found, errors = find(tmp_path, files, entry(".agents/**/*.toml"))
    assert ([*found], errors) == ([".agents/skills/a/x.toml"], [])


def test_find__the_folder_of_a_plugin_is_a_suite(tmp_path: Path) -> None:
    files = {
        "plugins/a/.claude-plugin/plugin.json": '{"skills": "./skills"}',
        "plugins/a/skills/greet/SKILL.md": "",
        "plugins/a/evals/one/prompt.md": "",
        "plugins/a/evals/mocks/.replay/shop.json": "",
        "plugins/a/node_modules/x.json": "",
        "plugins/b/.claude-plugin/plugin.json": "{}",
        "src/other.py": "",
    }
    runner = Runner(name="p", results="claude", suites=("**/.claude-plugin/plugin.json",))
    found, errors = find(tmp_path, files, runner)

    assert (sorted(found), errors) == ([path for path in files if path.endswith("plugin.json")], [])
    suite = found["plugins/a/.claude-plugin/plugin.json"]
    assert (suite.name, suite.folder) == ("suite-plugins-a", tmp_path / "plugins/a")
    assert roles(suite) == {
        "plugins/a/.claude-plugin/plugin.json": "suite",
        "plugins/a/skills/greet/SKILL.md": "folder of the suite",
        "plugins/a/evals/one/prompt.md": "folder of the suite",
        "plugins/a/evals/mocks/.replay/shop.json": "folder of the suite",
    }


def test_files__are_those_that_the_suite_depends_on(tmp_path: Path) -> None:
    found, _ = find(
        tmp_path,
        {
            "evals/suite.yaml": """
                prompts: [file://../prompts/one.txt, "file://../more/*.txt"]
                providers: ["python:../agent/main.py:call"]
                tests: ./tests.csv  # see https://example.com/*
                # agent/from_root.txt
                """,
            "evals/tests.csv": "",
            "evals/unnamed.txt": "",
            "prompts/one.txt": "",
            "prompts/two.txt": "",
            "more/three.txt": "",
            "agent/main.py": "from agent import tools\n",
            "agent/tools.py": "",
            "agent/other.py": "",
            "agent/from_root.txt": "",
            "tools/run.py": "import rules\n",
            "tools/rules.py": "",
            ".agentevals.yaml": "",
            "README.md": "",
        },
        entry("evals/*.yaml", command=["python3", "tools/run.py", "{SUITE}", "{RESULTS}"]),
    )
    assert roles(found["evals/suite.yaml"]) == {
        "evals/suite.yaml": "suite",
        "prompts/one.txt": "named file",
        "agent/main.py": "named file",
        "evals/tests.csv": "named file",
        "agent/from_root.txt": "named file",
        "tools/run.py": "runner",
        "tools/rules.py": "program of the runner",
        "agent/tools.py": "import",
        "evals/unnamed.txt": "folder of the suite",
        "more/three.txt": "folder of the suite",
    }


def test_files__of_a_suite_at_the_root_are_all(tmp_path: Path) -> None:
    files = {"suite.toml": "", "app/main.py": "", ".github/workflows/ci.yml": ""}
    found, _ = find(tmp_path, files, entry("*.toml"))
    assert roles(found["suite.toml"]) == {
        "suite.toml": "suite",
        "app/main.py": "folder of the suite",
    }


def test_files__the_name_does_not_depend_on_the_folder_of_the_checkout(tmp_path: Path) -> None:
    for name in ("one", "two"):
        found, _ = find(tmp_path / name, {"Évals/x.test.toml": ""}, entry("**/*.toml"))
        assert [suite.name for suite in found.values()] == ["suite-vals-x-test"]
