"""The typical mistakes of a new user, each in a suite or a targets file that is valid without it: the
mistake is the only error, in these words, at this line and column."""

from pathlib import Path

import pytest
import yaml

from tests.support import suites

CASES = yaml.safe_load(
    (Path(__file__).resolve().parents[2] / "data/first_errors.yaml").read_text("utf-8")
)
SUITE = """\
name: support
tests:
  - id: refund
    criteria: Names the window
    input: How long?
    assert:
      - type: contains
        value: 30 days
"""
TARGETS = """\
- name: default
  provider: cli
  command: [cat]
"""


def write(folder: Path, suite: str = SUITE, targets: str = TARGETS) -> None:
    suites.write(folder, {"EVAL.yaml": suite, ".agentv/targets.yaml": targets})


@pytest.mark.parametrize("case", CASES, ids=lambda case: case["mistake"])
def test_mistake__is_the_only_error(tmp_path: Path, case: dict[str, str]) -> None:
    write(tmp_path, case.get("suite", SUITE), case.get("targets", TARGETS))
    assert suites.errors(tmp_path) == [case["first"]]


def test_mistake__there_is_none_without_it(tmp_path: Path) -> None:
    write(tmp_path)
    assert len(suites.load_valid(tmp_path).tests) == 1
