"""Our own `results.jsonl` from a script of one's own: what a line means, and what is refused."""

import json
import re
import subprocess
import sys
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest
from jsonschema import Draft7Validator

from agentevals_action.cli.commands.schema import SCHEMAS
from agentevals_action.model.diagnostic import NamedFile
from agentevals_action.model.result import ErrorInfo, SampleResult, TraceSummary
from agentevals_action.model.suite import Suite
from agentevals_action.results.jsonl import encode_row
from agentevals_action.runners.formats import FORMATS
from agentevals_action.runners.formats.base import ResultsError, Row, Selection
from tests.support import results, suites

ROOT = Path(__file__).resolve().parents[4]
FORMAT = FORMATS["agentevals"]()
SCHEMA = Draft7Validator(SCHEMAS["own-results"]())
PAGE = ROOT / "docs/reference/own-runner.md"


def suite(root: Path, path: str = "checks/a.toml") -> Suite:
    fields = {"path": path, "root": root, "folder": (root / path).parent}
    files = (NamedFile(path, "suite"), NamedFile("checks/b.toml", "folder of the suite"))
    return Suite().model_copy(update={**fields, "files": files})


def read(folder: Path, *lines: Any) -> list[Row]:
    """The rows of a file of these objects, or texts."""
    texts = (line if isinstance(line, str) else json.dumps(line) for line in lines)
    (folder / "results.jsonl").write_text("\n".join(texts), encoding="utf-8")
    return list(FORMAT.read(folder, suite(folder)))


def test_own_results__are_read_and_valid_by_the_schema(tmp_path: Path) -> None:
    """One format for one fact: what our own runs write is what a script may write."""
    usage = TraceSummary(input_tokens=5, output_tokens=7, cost_usd=0.1)
    samples = (
        SampleResult(score=1.0, verdict="pass", candidate_answer="x", trace_summary=usage),
        SampleResult(error=ErrorInfo(kind="target", message="refused")),
        SampleResult(score=0.2, verdict="fail", candidate_answer="y"),
    )
    own = (
        replace(
            results.result("a", line=7, print=results.fingerprint("Q")),
            samples=samples,
            trace_summary=usage,
        ),
        results.result("b", None),
        results.result("c", "borderline", evaluator_results=(results.evaluated(),)),
    )
    lines = [encode_row(result).decode() for result in own]
    golden = (ROOT / "tests/golden/results.jsonl").read_text("utf-8").splitlines()

    for line in (*lines, *golden):
        SCHEMA.validate(json.loads(line))
    assert len(read(tmp_path, *golden)) == len(golden)
    rows = read(tmp_path, *lines)
    assert [(row.id, row.passed, row.error, row.answer) for row in rows] == [
        ("a", True, "", "an answer"),
        ("b", False, "connection refused", "an answer"),
        ("c", False, "", "an answer"),
    ]
    assert (rows[0].usage, rows[0].asked) == (usage.usage, "Q")


#: Lines that are refused, the field in the sentence, and whether the schema refuses them, too.
INVALID: dict[str, tuple[str, str, bool]] = {
    "no outcome": ('{"evalId": "a", "score": 1, "passed": true}', "`verdict`", True),
    "null outcome": ('{"evalId": "a", "verdict": null}', "`verdict`", False),
    "other verdict": ('{"evalId": "a", "verdict": "passed"}', "`verdict`", True),
    "boolean verdict": ('{"evalId": "a", "verdict": true}', "`verdict`", True),
    "no id": ('{"verdict": "pass"}', "`evalId`", True),
    "empty id": ('{"evalId": "", "verdict": "pass"}', "`evalId`", True),
    "id of two lines": ('{"evalId": "a\\nb", "verdict": "pass"}', "`evalId`", True),
    "number as id": ('{"evalId": 3, "verdict": "pass"}', "`evalId`", True),
    "error without words": ('{"evalId": "a", "error": {"message": ""}}', "`error.message`", True),
    "text as error": ('{"evalId": "a", "error": "x"}', "`error`", True),
    "negative cost": (
        '{"evalId": "a", "verdict": "pass", "traceSummary": {"costUsd": -1}}',
        "`traceSummary.costUsd`",
        True,
    ),
    "huge count": (
        '{"evalId": "a", "verdict": "pass", "traceSummary": {"inputTokens": 1%s}}' % ("0" * 4000),
        "`traceSummary.inputTokens`",
        True,
    ),
    "NaN": ('{"evalId": "a", "verdict": "pass", "score": NaN}', "`score`", False),
    "line 0": ('{"evalId": "a", "verdict": "pass", "line": 0}', "`line`", True),
    "half a line": ('{"evalId": "a", "verdict": "pa', "Invalid JSON", False),
    "half a pair": ('{"evalId": "a\\ud800", "verdict": "pass"}', "Invalid JSON", False),
    "a list": ("[]", "an object", True),
    "deep": ("[" * 20_000, "Invalid JSON", False),
    "not JSON": ("ok 1 - greets", "Invalid JSON", False),
}


@pytest.mark.parametrize("name", INVALID)
def test_invalid__names_the_line_and_the_field(tmp_path: Path, name: str) -> None:
    line, field, is_known_to_schema = INVALID[name]

    with pytest.raises(ResultsError) as caught:
        read(tmp_path, {"evalId": "first", "verdict": "pass"}, line)

    assert str(caught.value).startswith("line 2 of its results.jsonl: ")
    assert field in str(caught.value)
    assert len(str(caught.value)) < 300
    if is_known_to_schema:
        assert not SCHEMA.is_valid(json.loads(line))


def test_select__one_id_a_line(tmp_path: Path) -> None:
    rows = [Row("a b", passed=True), Row("ü", passed=False), Row("a b", passed=True)]

    assert FORMAT.select(rows, suite(tmp_path)) == [Selection("a b\nü\n")]


def test_page__its_script_writes_what_is_read(tmp_path: Path) -> None:
    """The documentation's script, with an agent that answers, fails and breaks."""
    script, tests = (
        re.search(rf"```{language}\n(.*?)```", PAGE.read_text("utf-8"), re.S)[1]  # type: ignore[index]
        for language in ("python", "toml")
    )
    other = '[[tests]]\nid = "{0}"\nquestion = "{0}"\ncontains = "Bob"\n'
    agent = (
        "import sys\ntext = input()\nprint(text)\nsys.exit('no server' if text == 'outage' else 0)"
    )
    suites.write(
        tmp_path,
        {
            "checks/run.py": script,
            "checks/a.toml": tests + other.format("wrong") + other.format("outage"),
            "agent.py": agent,
            "ids": "wrong\n",
        },
    )
    words = [sys.executable, "checks/run.py", "checks/a.toml", "results.jsonl"]

    subprocess.run(words, cwd=tmp_path, check=True, timeout=60)
    first = FORMAT.read(tmp_path, suite(tmp_path))
    subprocess.run([*words, "ids"], cwd=tmp_path, check=True, timeout=60)
    again = FORMAT.read(tmp_path, suite(tmp_path))

    assert [(row.id, row.passed, row.error.strip(), row.reason) for row in first] == [
        ("greets-by-name", True, "", ""),
        ("wrong", False, "", "'Bob' is not in the answer"),
        ("outage", False, "no server", ""),
    ]
    assert again == [first[1]]
    for line in (tmp_path / "results.jsonl").read_text("utf-8").splitlines():
        SCHEMA.validate(json.loads(line))
