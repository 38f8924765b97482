"""What each format reads: recorded results give the expected rows, edits of them others, and broken
ones are refused in one sentence."""

import json
import os
from pathlib import Path
from typing import Any

import pytest
import yaml
from pydantic import ValidationError

from agentevals_action.model.suite import Suite
from agentevals_action.runners.formats import FORMATS
from agentevals_action.runners.formats.base import ResultsError
from agentevals_action.validation.field_errors import invalid_json
from tests.conftest import Golden
from tests.support.runners import DATA, RECORDINGS, describe, recorded, runner

CHANGED = yaml.safe_load((DATA / "changed.yaml").read_text("utf-8"))
BROKEN = yaml.safe_load((DATA / "broken.yaml").read_text("utf-8"))


def name_case(case: dict[str, Any]) -> str:
    return f"{case['format']}: {case['name']}"


@pytest.mark.parametrize("name", RECORDINGS)
def test_read__a_recording_gives_these_rows(name: str, tmp_path: Path, golden: Golden) -> None:
    """What is unknown or empty is left out."""
    results, suite = recorded(name, tmp_path)
    rows = FORMATS[RECORDINGS[name]["format"]]().read(results, suite)
    described = [describe(row, suite.root).items() for row in rows]
    known = (
        {key: each for key, each in row if each not in (None, "", [], {})} for row in described
    )
    shown = [json.dumps(row, ensure_ascii=False) for row in known]
    golden.check(f"runner-rows/{name}.jsonl", "".join(f"{line}\n" for line in shown))


def prepared(case: dict[str, Any], place: Path) -> tuple[Path, Suite]:
    """The results of a case and their suite."""
    results, suite = recorded(case["format"], place)
    entry = runner(case["format"], **{name: case[name] for name in case.keys() & {"pass"}})
    own = {"path": case.get("suite", suite.path), "runner": entry}
    text = json.dumps(case).replace("{root}", str(suite.root))
    change(results / case["file"], json.loads(text))
    return results, suite.model_copy(update=own)


def change(file: Path, case: dict[str, Any]) -> None:
    """Changes a file as a case says."""
    content = file.read_text() if file.exists() else ""
    file.unlink(missing_ok=True)
    if "fifo" in case:
        os.mkfifo(file)
    elif "link" in case:
        file.symlink_to(case["link"])
    elif "set" in case or "merge" in case:
        first, separator, rest = (
            content.partition("\n") if file.suffix == ".jsonl" else (content, "", "")
        )
        holder = {"": json.loads(first)}
        container: Any = holder
        steps: list[Any] = ["", *(case["at"] if "merge" in case else case["set"])]
        last = steps.pop()
        for step in steps:
            container = container[step]
        container[last] = {**container[last], **case["merge"]} if "merge" in case else case["value"]
        file.write_text(json.dumps(holder[""]) + separator + rest)
    elif "nested" in case:
        file.write_text("[" * case["nested"])
    elif "lines" in case:
        file.write_text("".join(content.splitlines(keepends=True)[: case["lines"]]))
    elif "remove" not in case:
        file.write_text(case.get("text", content[: case.get("keep")]))


@pytest.mark.parametrize("case", CHANGED, ids=name_case)
def test_read__changed_results(case: dict[str, Any], tmp_path: Path) -> None:
    results, suite = prepared(case, tmp_path)

    rows = FORMATS[case["format"]]().read(results, suite)

    found = {row.id: describe(row, suite.root) for row in reversed(rows)}
    expected = case["rows"]
    assert {
        name: {field: found[name][field] for field in fields} for name, fields in expected.items()
    } == expected
    assert len(rows) == case.get("count", len(rows))


@pytest.mark.parametrize("case", BROKEN, ids=name_case)
def test_read__broken_results(case: dict[str, Any], tmp_path: Path) -> None:
    results, suite = prepared(case, tmp_path)

    with pytest.raises((ResultsError, ValidationError)) as caught:
        FORMATS[case["format"]]().read(results, suite)

    error = caught.value
    message = invalid_json(error) if isinstance(error, ValidationError) else str(error)
    assert case["part"] in message
    assert "\n" not in message
    assert len(message) < 400
