"""Results that a program left half, or that are hostile: each is refused in one sentence."""

import json
import os
import shutil
from pathlib import Path
from typing import Any

import pytest
import yaml
from pydantic import ValidationError

from agentevals_action.model.runner import Runner
from agentevals_action.model.suite import Suite
from agentevals_action.runners.formats import FORMATS
from agentevals_action.runners.formats.base import ResultsError
from agentevals_action.validation.field_errors import invalid_json

DATA = Path(__file__).resolve().parents[3] / "data/runners"
CASES = yaml.safe_load((DATA / "broken.yaml").read_text())


def spoil(file: Path, case: dict[str, Any]) -> None:
    """Changes a file as a case says."""
    content = file.read_text() if file.exists() else ""
    file.unlink(missing_ok=True)
    if "fifo" in case:
        os.mkfifo(file)
    elif "link" in case:
        file.symlink_to(case["link"])
    elif "set" in case:
        first, separator, rest = (
            content.partition("\n") if file.suffix == ".jsonl" else (content, "", "")
        )
        data = container = json.loads(first)
        for step in case["set"][:-1]:
            container = container[step]
        container[case["set"][-1]] = case["value"]
        file.write_text(json.dumps(data) + separator + rest)
    elif "nested" in case:
        file.write_text("[" * case["nested"])
    elif "lines" in case:
        file.write_text("".join(content.splitlines(keepends=True)[: case["lines"]]))
    elif "remove" not in case:
        file.write_text(case.get("text", content[: case.get("keep")]))


@pytest.mark.parametrize("case", CASES, ids=lambda case: f"{case['format']}: {case['name']}")
def test_read__broken_results(case: dict[str, Any], tmp_path: Path) -> None:
    name = case["format"]
    (recorded,) = (DATA / name).glob("recorded-*")
    folder = Path(shutil.copytree(recorded, tmp_path.resolve() / "results"))
    spoil(folder / case["file"], case)
    runner = Runner(name=name, results=name, suites=("x",))
    suite = Suite().model_copy(update={"path": "x", "root": tmp_path, "runner": runner})

    with pytest.raises((ResultsError, ValidationError)) as caught:
        FORMATS[name].read(folder, suite)

    error = caught.value
    message = invalid_json(error) if isinstance(error, ValidationError) else str(error)
    assert case["part"] in message
    assert "\n" not in message
