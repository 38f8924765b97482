"""What a test of pytest asks (`data/python_tests.yaml`): a change moves the digests of the tests that
use what it changes, and of no others."""

from collections.abc import Mapping, Sequence
from pathlib import Path

import pytest

from agentevals_action.execution.fingerprint import Fingerprints
from agentevals_action.model.path_patterns import read_rule
from agentevals_action.model.runner import Runner
from agentevals_action.runners.suites import find_runner_suites
from tests.support import data, suites
from tests.support.runners import checkout

DATA = data.read("python_tests.yaml")
FILES: Mapping[str, str] = DATA["files"]
TESTS: Sequence[str] = DATA["tests"]
SUITE = "evals/test_shop.py"
#: The rules of `watch` that match the agent.
AGENT = ("src/**", "prompts/**")


def digests(
    root: Path, files: Mapping[str, str], watch: Sequence[str] = AGENT, path: str = SUITE
) -> dict[str, str | None]:
    """The digest of each test of a suite in a repository of these files."""
    suites.write(root, files)
    runner = Runner.model_validate({"name": "pytest", "results": "junit", "suites": [path]})
    found, _ = find_runner_suites(checkout(root, files, runner))
    described = Fingerprints([read_rule(rule) for rule in watch]).of_runner(found[path])
    described.read()
    return {test: described.function(test) for test in (*TESTS, "test_made", "test_none")}


def moved(folder: Path, change: suites.Changes, watch: Sequence[str] = AGENT) -> Mapping[str, bool]:
    """Whether a change moves the digest of each test."""
    before = digests(folder / "before", FILES, watch)
    after = digests(folder / "after", suites.change(FILES, change), watch)
    assert all(before[test] and after[test] for test in TESTS)
    return {test: before[test] != after[test] for test in TESTS}


@pytest.mark.parametrize(
    ("change", "expected"),
    [case[1:] for case in DATA["moved"]],
    ids=[case[0] for case in DATA["moved"]],
)
def test_function__a_change_moves_what_uses_it(
    tmp_path: Path, change: suites.Changes, expected: Sequence[str]
) -> None:
    assert {test for test, is_moved in moved(tmp_path, change).items() if is_moved} == {*expected}


@pytest.mark.parametrize(("change", "watch", "is_helper"), DATA["modules"])
def test_function__a_module_is_a_helper_or_the_agent(
    tmp_path: Path, change: suites.Changes, watch: Sequence[str], is_helper: bool
) -> None:
    assert moved(tmp_path, change, watch)["test_cases[a]"] == is_helper


ENDLESS = {SUITE: {'"30" in': f"{'-' * 50_000}1 in"}}


@pytest.mark.parametrize("change", [*(change for _, change in DATA["unknown"]), ENDLESS])
def test_function__what_cannot_be_determined_is_unknown(
    tmp_path: Path, change: suites.Changes
) -> None:
    assert digests(tmp_path, suites.change(FILES, change))["test_alone"] is None


def test_function__one_that_the_file_does_not_have_is_unknown(tmp_path: Path) -> None:
    found = digests(tmp_path, FILES)
    assert (found["test_made"], found["test_none"]) == (None, None)


@pytest.mark.parametrize("folder", ["", "evals/"])
def test_function__beside_the_tests_a_module_is_the_agent_unless_it_is_known_where_that_is(
    tmp_path: Path, folder: str
) -> None:
    path = f"{folder}test_shop.py"
    suite = "from agent import answer\ndef test_alone(): assert answer(1)\n"
    first, second = (
        digests(tmp_path / name, {path: suite, f"{folder}agent.py": f"answer = {name}\n"}, (), path)
        for name in ("len", "id")
    )
    assert first["test_alone"] == second["test_alone"] is not None
