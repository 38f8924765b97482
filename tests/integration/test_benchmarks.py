"""The benchmarks run, so that the README's figures can be measured again."""

import subprocess
import sys
from pathlib import Path

import pytest

ROOT = Path(__file__).parents[2]


@pytest.mark.slow
def test_speed__prints_a_row_for_a_workload() -> None:
    command = [
        sys.executable,
        str(ROOT / "benchmarks" / "speed.py"),
        "validate",
        "http50",
        "--times",
        "1",
    ]
    done = subprocess.run(command, capture_output=True, text=True, check=False)

    assert done.returncode == 0, done.stderr
    heads, _, *rows = done.stdout.splitlines()
    assert heads.startswith("| workload | floor |")
    assert [row.count("|") for row in rows] == [heads.count("|")] * 2
    assert "50 concurrent calls" in rows[1]


@pytest.mark.slow
def test_python_agents__prints_a_row_for_a_target() -> None:
    script = ROOT / "benchmarks" / "python_agents.py"
    command = [sys.executable, str(script), "python", "--times", "1"]
    done = subprocess.run(command, capture_output=True, text=True, check=False)

    assert done.returncode == 0, done.stderr
    *_, row = done.stdout.splitlines()
    assert row.startswith("| `python` | ")


@pytest.mark.slow
def test_tools__prints_a_row_for_each_figure() -> None:
    command = [sys.executable, str(ROOT / "benchmarks" / "tools.py")]
    done = subprocess.run(command, capture_output=True, text=True, check=False)

    assert done.returncode == 0, done.stderr
    _, _, *rows = done.stdout.splitlines()
    assert [row.count(" ms |") for row in rows] == [2] * 4
