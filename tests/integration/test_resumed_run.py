"""Runs that are killed and continued: results in order."""

import json
import random
import time
from pathlib import Path
from typing import Any

import pytest

from agentevals_action.results.jsonl import read_results
from tests.support import command

MOCK = """\
targets:
  - name: default
    provider: mock
    responses:
      - {pattern: "7$", response: nothing of use}
      - {pattern: ".*", response: hello there}
"""
SUITE = "name: scale\nassert: [{type: contains, value: hello}, {name: polite, type: regex, value: there, required: true}]\ntests: rows.jsonl\n"


def write(folder: Path, tests: int) -> Path:
    (folder / ".agentv").mkdir(parents=True)
    (folder / ".agentv/targets.yaml").write_text(MOCK)
    (folder / "EVAL.yaml").write_text(SUITE)
    rows = (
        {
            "id": f"test-{number:05}",
            "input": f"Say hello to {number}",
            "metadata": {"number": number},
        }
        for number in range(tests)
    )
    (folder / "rows.jsonl").write_text("".join(json.dumps(row) + "\n" for row in rows))
    return folder


def timeless(data: Any) -> Any:
    """A row without what differs from run to run."""
    if isinstance(data, dict):
        return {
            key: timeless(value)
            for key, value in data.items()
            if key not in ("timestamp", "durationMs")
        }
    return [timeless(item) for item in data] if isinstance(data, list) else data


def rows(path: Path) -> list[Any]:
    return [timeless(json.loads(line)) for line in path.read_text().splitlines()]


@pytest.mark.slow
def test_run__killed_again_and_again_ends_as_one_that_was_not(tmp_path: Path) -> None:
    folder = write(tmp_path / "suite", 600)
    assert command.run(folder, "run", "--output", "whole.jsonl").code == 1
    output = folder / "killed.jsonl"
    chosen = random.Random(3)
    kept = 0
    for _ in range(6):
        size = output.stat().st_size if output.exists() else 0
        enough = size + chosen.randrange(1, 160_000)
        process = command.start(folder, "run", "--output", output.name, "--resume")
        while process.poll() is None and not (output.exists() and output.stat().st_size >= enough):
            time.sleep(0.002)
        process.kill()
        process.communicate()
        complete = output.read_bytes().count(b"\n")
        assert complete >= kept, "what was told once is kept"
        kept = complete

    done = command.run(folder, "run", "--output", output.name, "--resume")

    assert f"{kept} of 600 tests are kept" in done.err
    assert done.code == 1
    assert rows(output) == rows(folder / "whole.jsonl")
    assert [result.line for result in read_results(output)] == list(range(1, 601))


def test_run__resume_makes_again_what_is_another_test_by_now(tmp_path: Path) -> None:
    folder = write(tmp_path / "suite", 5)
    assert command.run(folder, "run", "--fail-on", "never").code == 0
    suite = folder / "EVAL.yaml"

    same = command.run(folder, "run", "--resume")
    suite.write_text(SUITE.replace("value: hello", "value: goodbye"))
    graded_otherwise = command.run(folder, "run", "--resume")
    more_samples = command.run(folder, "run", "--resume", "--samples", "2")

    assert "5 of 5 tests are kept" in same.err
    assert "are kept" not in graded_otherwise.err + more_samples.err
    assert graded_otherwise.code == 1
    (first, *_) = read_results(folder / "agentevals-report/results.jsonl")
    assert len(first.samples) == 2
    assert first.misses == ('does not contain "goodbye"',)
