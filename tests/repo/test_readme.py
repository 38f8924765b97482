"""The README agrees with the code: its tables are the code's, its examples are valid, its
commands run."""

import os
import re
import shlex
import shutil
import subprocess
import sys
from pathlib import Path

import pytest
import yaml

from agentevals_action import evaluators, settings
from agentevals_action.suites import dialects
from agentevals_action.suites.catalog import Catalog
from agentevals_action.suites.load import load_suite
from agentevals_action.targets import providers
from tests.support.repositories import Repository

ROOT = Path(__file__).resolve().parents[2]
README = (ROOT / "README.md").read_text(encoding="utf-8")
BLOCKS = re.findall(r"^```(\w+)\n(.*?)^```", README, re.MULTILINE | re.DOTALL)
TARGETS = """\
- {name: default, provider: cli, command: [cat], judge_target: judge}
- {name: judge, provider: mock, responses: [{pattern: '.*', response: x}]}
"""
#: What the project's own check and its reader run, not its tests: they install, and the second is
#: the tests themselves.
INSTALLING = ("python3 -m pip install",)


def commands() -> list[str]:
    lines = [
        line.split("#")[0].strip()
        for language, block in BLOCKS
        if language == "sh"
        for line in block.splitlines()
    ]
    return [line for line in lines if line and not line.startswith(INSTALLING)]


def rows(table: str) -> dict[str, list[str]]:
    """First cell to the others, of the table whose header begins so."""
    lines = README[README.index(table) :].split("\n\n")[0].splitlines()[2:]
    cells = [
        [cell.strip() for cell in re.split(r"(?<!\\)\|", line.strip().strip("|"))] for line in lines
    ]
    return {row[0].strip("`"): row[1:] for row in cells}


def test_inputs__the_table_is_the_code_s() -> None:
    listed = rows("| input | default |")
    assert list(listed) == list(settings.INPUTS)
    for name, described in settings.INPUTS.items():
        assert listed[name] == [
            f"`{described.default}`" if described.default else "–",
            described.description.replace("|", "\\|"),
        ]


def test_outputs__the_table_is_the_code_s() -> None:
    assert rows("| output | meaning |") == {
        name: [meaning] for name, meaning in settings.OUTPUTS.items()
    }


def test_evaluators__each_has_a_row_in_the_registry_s_order() -> None:
    assert list(rows("| evaluator | passes when |")) == [
        options.type for options in evaluators.EVALUATORS.values()
    ]


@pytest.mark.parametrize("name", [options.type for options in evaluators.EVALUATORS.values()])
def test_evaluators__each_example_has_three_lines_and_is_valid(name: str, tmp_path: Path) -> None:
    example = rows("| evaluator | passes when |")[name][-1]
    lines = example.removeprefix("<pre>").removesuffix("</pre>").split("<br>")
    assert len(lines) == 3
    assert "|" not in example
    entry = yaml.safe_load("\n".join(lines))
    assert entry["type"] == name
    test = {
        "id": "a",
        "input": "q",
        "expected_output": {"order": "2077", "total": 3.5},
        "assert": [entry],
    }
    (tmp_path / "EVAL.yaml").write_text(yaml.safe_dump({"name": "suite", "tests": [test]}))
    (tmp_path / ".agentv").mkdir()
    (tmp_path / ".agentv/targets.yaml").write_text(TARGETS)
    suite = load_suite(
        tmp_path / "EVAL.yaml",
        tmp_path,
        Catalog(evaluators.EVALUATORS_BY_NAME, providers.PROVIDERS),
    )
    assert not getattr(suite, "errors", ())
    assert not getattr(suite, "warnings", ())


def test_evaluators_and_providers__all_are_named_in_the_text() -> None:
    text = re.sub(r"^\|.*$", "", README, flags=re.MULTILINE)
    for name in (options.type for options in evaluators.EVALUATORS.values()):
        assert (
            f"`{name}`" in text or f"`{name.removesuffix('_any').removesuffix('_all')}`" in text
        ), name
    assert all(f"`{name.replace('_', '-')}`" in README for name in providers.PROVIDERS)


def spellings() -> set[tuple[str, str]]:
    """Every name of the model with each other spelling of it."""
    shapes = (
        dialects.SUITE.fields,
        dialects.TEST.fields,
        dialects.BLOCK.fields,
        *(options.spellings for options in evaluators.EVALUATORS.values()),
    )
    found = {
        (name, other) for fields in shapes for name, others in fields.items() for other in others
    }
    found |= {
        (options.type, alias)
        for options in evaluators.EVALUATORS.values()
        for alias in options.aliases
    }
    return found | {
        ("outcome", "expected_outcome"),
        ("judge_target", "grader_target"),
        *(("assert", name) for name in dialects.EVALUATOR_LISTS),
    }


def dialect_lines() -> list[set[str]]:
    """The names in each row of the table of dialects, and in each clause of the sentence after it,
    with `_` for `-`."""
    section = README[README.index("| | AgentEvals today |") :].split("</details>")[0]
    table, _, after = section.partition("\n\n")
    parts = [*table.splitlines()[2:], after.replace("\n", " ").split(" A feature")[0]]
    return [{name.replace("-", "_") for name in re.findall(r"`([^`]+)`", part)} for part in parts]


def test_dialects__every_spelling_is_listed_with_its_name() -> None:
    lines = dialect_lines()
    assert [
        pair for pair in sorted(spellings()) if not any(set(pair) <= line for line in lines)
    ] == []


def test_dialects__nothing_else_is_listed() -> None:
    known = (
        {name for pair in spellings() for name in pair}
        | set(evaluators.EVALUATORS_BY_NAME)
        | {"execution"}
    )
    assert {name for line in dialect_lines() for name in line} - known == set()


def test_examples__the_suite_and_its_targets_are_valid(tmp_path: Path) -> None:
    for language, block in BLOCKS:
        if (
            language == "yaml"
            and (named := re.match(r"# (\S+)\n", block))
            and not named[1].startswith(".github")
        ):
            (tmp_path / named[1]).parent.mkdir(parents=True, exist_ok=True)
            (tmp_path / named[1]).write_text(block)
    suite = load_suite(
        tmp_path / "evals/EVAL.yaml",
        tmp_path,
        Catalog(evaluators.EVALUATORS_BY_NAME, providers.PROVIDERS),
    )
    assert not getattr(suite, "errors", ())
    assert not getattr(suite, "warnings", ())


def test_examples__the_workflow_takes_inputs_that_exist() -> None:
    workflow = next(yaml.safe_load(block) for language, block in BLOCKS if "runs-on" in block)
    step = workflow["jobs"]["evals"]["steps"][-1]
    assert set(step["with"]) <= set(settings.INPUTS)


def test_evaluator_example__is_the_one_in_the_code() -> None:
    shown = next(block for language, block in BLOCKS if language == "python")
    code = (ROOT / "src/agentevals_action/evaluators/metric_checks.py").read_text(encoding="utf-8")
    assert shown.strip() in code


@pytest.fixture(scope="module")
def reviewed(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """The demo's pull request as a working tree, with the results of one run."""
    repository = Repository.create(tmp_path_factory.mktemp("reviewed") / "repository")
    steps = ROOT / "examples" / "demo"
    shutil.copytree(steps / "base", repository.path, dirs_exist_ok=True)
    repository.commit("base")
    repository.git("checkout", "--quiet", "-b", "change")
    shutil.copytree(steps / "head", repository.path, dirs_exist_ok=True)
    repository.commit("head")
    environment = {**os.environ, "PATH": f"{Path(sys.executable).parent}:{os.environ['PATH']}"}
    done = subprocess.run(
        ["agentevals-action", "review", "--base", "main"],
        cwd=repository.path,
        env=environment,
        capture_output=True,
    )
    assert done.returncode == 1, done.stderr.decode()
    return repository.path


@pytest.fixture
def checkout(reviewed: Path, tmp_path: Path) -> Path:
    """A copy of it, for one command to do with as it likes."""
    return shutil.copytree(reviewed, tmp_path / "repository", symlinks=True)


@pytest.mark.parametrize("command", commands())
def test_commands__each_runs(command: str, checkout: Path) -> None:
    environment = {**os.environ, "PATH": f"{Path(sys.executable).parent}:{os.environ['PATH']}"}
    words = shlex.split(command)
    if words[:2] in (["python3", "-m"], ["bash", ".ci/run"]):
        pytest.skip("it is the project's own check")
    done = subprocess.run(
        words, cwd=checkout, env=environment, capture_output=True, text=True, timeout=110
    )
    # The demo's pull request fails its gate, so 1 is the right answer of what runs it; 2 and over
    # would be a command that is wrong.
    assert done.returncode in (0, 1), done.stderr
    assert done.stdout.strip()
