"""Results of promptfoo: recorded ones, other structures, and those of the real program."""

import json
import os
import shutil
import subprocess
from collections import Counter
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

import pytest
from pydantic import ValidationError

from agentevals_action.model.suite import Suite
from agentevals_action.model.usage import Usage
from agentevals_action.runners.formats import FORMATS
from agentevals_action.runners.formats.base import Check, ResultsError, Row
from agentevals_action.runners.rows import rows_by_test
from tests.support.runners import find_runner

DATA = Path(__file__).resolve().parents[3] / "data/runners/promptfoo"
PATHS = {"columns": "promptfooconfig.yaml", "cases": "evals/promptfooconfig.yaml"}
FORMAT = FORMATS["promptfoo"]


def checkout(tmp_path: Path, name: str = "cases") -> Suite:
    """The suite of a recording in a checkout of its own."""
    root = tmp_path / "checkout"
    shutil.copytree(DATA / name, root)
    path = PATHS[name]
    return Suite().model_copy(update={"path": path, "root": root, "folder": (root / path).parent})


def recorded(suite: Suite) -> Any:
    """The recorded document, as of this checkout."""
    text = (suite.root / "results-0.123.1.json").read_text(encoding="utf-8")
    return json.loads(text.replace("/checkout", str(suite.root)))


def read(suite: Suite, document: Any) -> Sequence[Row]:
    folder = suite.root.parent / "results"
    folder.mkdir(exist_ok=True)
    content = document if isinstance(document, bytes) else json.dumps(document).encode()
    (folder / "results.json").write_bytes(content)
    return FORMAT.read(folder, suite)


def cases(tmp_path: Path) -> Sequence[Row]:
    suite = checkout(tmp_path)
    return read(suite, recorded(suite))


def row_of(rows: Sequence[Row], name: str) -> Row:
    return next(row for row in rows if row.id == name)


def test_ids__are_readable_and_equal_for_samples(tmp_path: Path) -> None:
    rows = cases(tmp_path)

    assert Counter(row.id for row in rows) == {
        "assertions": 2,
        "set": 2,
        "shipping (829aa931)": 2,
        "outage": 2,
        "list (73396a61)": 2,
        "list (2f121287)": 2,
        "same": 4,
        "unscored": 2,
        "from another file": 2,
        "wrong": 2,
        "first line (d6887e2c)": 2,
        "row with a name": 2,
        "scenario (ab8bc6e2)": 2,
        "scenario (73c73d1a)": 2,
    }


def test_ids__the_samples_of_a_test_follow_each_other(tmp_path: Path) -> None:
    rows = cases(tmp_path)
    same = rows_by_test(rows, 2)

    assert [row.passed for row in same["same"]] == [True, True]
    assert [row.passed for row in same["same #2"]] == [False, False]


COLUMNS = [
    *(f"prompts/{name}" for name in ("short.txt", "two.txt", "two.txt 2", "chat.json")),
    *("prompt 1", "polite", "formal"),
]


def test_ids__name_prompts_and_providers_where_there_are_several(tmp_path: Path) -> None:
    suite = checkout(tmp_path, "columns")
    rows = read(suite, recorded(suite))

    providers = ("provider 1", "agent", "provider 2")
    assert [row.id for row in rows] == [
        f"returns [{prompt}, {provider}]" for provider in providers for prompt in COLUMNS
    ]
    assert {row.target for row in rows} == {"echo", "agent"}


def test_ids__stay_when_the_texts_of_prompts_the_model_and_defaults_change(tmp_path: Path) -> None:
    suite = checkout(tmp_path, "columns")
    document = recorded(suite)
    before = [row.id for row in read(suite, document)]
    text = json.dumps(document).replace("{{question}}", "the question: {{question}}, please")
    changed = json.loads(text.replace('"echo"', '"openai:gpt-9"'))
    changed["config"]["defaultTest"] = {"vars": {"tone": "rude"}}
    for result in changed["results"]["results"]:
        result["vars"]["tone"] = result["testCase"]["vars"]["tone"] = "rude"

    assert [row.id for row in read(suite, changed)] == before


def test_ids__of_one_prompt_and_provider_name_neither(tmp_path: Path) -> None:
    suite = checkout(tmp_path, "columns")
    document = recorded(suite)
    results = document["results"]
    results["prompts"] = results["prompts"][4:5]
    results["results"] = [
        {**result, "promptIdx": 0} for result in results["results"] if result["promptIdx"] == 4
    ]

    assert [row.id for row in read(suite, document)] == ["returns"]


def test_verdict__is_that_of_promptfoo(tmp_path: Path) -> None:
    rows = cases(tmp_path)
    found = {row.id: (row.passed, bool(row.error), row.skipped) for row in rows}

    passed, failed = (True, False, ""), (False, False, "")
    assert found == {
        "assertions": failed,
        "set": passed,
        "shipping (829aa931)": passed,
        "outage": (False, True, ""),
        "list (73396a61)": passed,
        "list (2f121287)": passed,
        "same": failed,
        "unscored": (True, False, "it has no assertions"),
        "from another file": passed,
        "wrong": failed,
        "first line (d6887e2c)": passed,
        "row with a name": failed,
        "scenario (ab8bc6e2)": passed,
        "scenario (73c73d1a)": passed,
    }
    outage = row_of(rows, "outage").error
    assert outage.startswith("Error: Command failed: python3 agent.py A friendly answer to outage")
    assert outage.endswith("503 Service Unavailable")


def test_checks__of_ten_types(tmp_path: Path) -> None:
    rows = cases(tmp_path)
    row = row_of(rows, "assertions")

    assert [(check.name, check.passed) for check in row.checks] == [
        ("latency", True),
        ("contains: policy", True),
        ("icontains: THE", True),
        ("exact", False),
        ("not-contains: refused", True),
        ("regex: ^agent", True),
        ("starts-with: agent", True),
        ("javascript: output.length > 2", True),
        ("python: file://check.py", True),
        ("word-count", True),
        ("levenshtein: x", True),
    ]
    assert row.reason == row.checks[3].reason
    assert row.reason.startswith('Expected output "agent: A friendly answer to returns')
    assert row.score == pytest.approx(11 / 12)


def test_checks__children_of_a_set_count_once(tmp_path: Path) -> None:
    rows = cases(tmp_path)

    assert row_of(rows, "set").checks == (
        Check("latency", True, 1.0, "Assertion passed"),
        Check("assert-set", True, 0.5, "Aggregate score 0.50 ≥ 0.5 threshold"),
        Check("in a set: contains: set", True, 1.0, "Assertion passed"),
        Check("in a set: contains: nothing", False, 0.0, 'Expected output to contain "nothing"'),
        Check("contains: agent", True, 1.0, "Assertion passed"),
    )


def test_row__says_what_was_asked_and_answered(tmp_path: Path) -> None:
    rows = cases(tmp_path)
    row = row_of(rows, "assertions")

    assert row.question == "tone: friendly\nquestion: returns\npolicy: file://data/policy.txt"
    assert row.answer == "agent: A friendly answer to returns: The policy: 30 days."
    assert row.target == "exec:python3 agent.py"
    assert row.usage == Usage()
    assert row.duration_ms


def test_figures__are_those_of_the_reply(tmp_path: Path) -> None:
    suite = checkout(tmp_path)
    document = recorded(suite)
    result = document["results"]["results"][0]
    result["response"] |= {"cost": 0.25, "tokenUsage": {"prompt": 10, "completion": 2}}
    document["results"]["results"] = [result]

    (row,) = read(suite, document)

    assert row.usage == Usage(input_tokens=10, output_tokens=2, cost_usd=0.25)


def test_fingerprints__follow_the_contents_of_files_in_any_checkout(tmp_path: Path) -> None:
    first = checkout(tmp_path / "a")
    second = checkout(tmp_path / "b")
    (second.folder / "check.py").write_text("def get_assert(*_):\n    return True\n")
    (second.folder / "data/policy.txt").write_text("60 days")
    before, after = read(first, recorded(first)), read(second, recorded(second))

    def differing(name: str) -> set[str]:
        return {
            old.id
            for old, new in zip(before, after, strict=True)
            if getattr(old, name) != getattr(new, name)
        }

    assert differing("asked") == differing("graded") == {"assertions"}


def edited(document: Any, path: str, value: Any) -> Any:
    *steps, last = (int(step) if step.isdigit() else step for step in path.split("/"))
    part = document
    for step in steps:
        part = part[step]
    part[last] = value
    return document


@pytest.mark.parametrize(
    ("path", "value", "problem"),
    [
        (
            "results/version",
            4,
            "its results.json is not one of promptfoo 0.123 (results version 3)",
        ),
        ("results/version", None, "is not one of promptfoo 0.123 (results version 3)"),
        ("results", [], "is not one of promptfoo 0.123 (results version 3)"),
        ("results/results/0/promptIdx", 9, "its results.json lacks the prompt of a result"),
        ("results/results/0/promptIdx", -1, "promptIdx"),
        ("results/results/0/success", "true", "success"),
        ("results/results/0/failureReason", None, "failureReason"),
        ("results/results/0/vars", None, "vars"),
        ("results/results/0/testCase", [], "testCase"),
        ("results/results", {}, "results"),
        ("results/prompts", None, "prompts"),
    ],
)
def test_read__refuses_another_structure(
    tmp_path: Path, path: str, value: Any, problem: str
) -> None:
    suite = checkout(tmp_path)

    with pytest.raises((ResultsError, ValidationError)) as error:
        read(suite, edited(recorded(suite), path, value))

    assert problem in str(error.value)


@pytest.mark.parametrize(
    ("path", "value"),
    [
        ("config/defaultTest", None),
        ("config/defaultTest/vars", "none"),
        ("results/results/0/response", None),
        ("results/results/0/gradingResult", None),
        ("results/results/0/score", None),
        ("results/results/0/provider", {}),
        ("results/results/0/testCase/description", ["not", "a", "text"]),
        ("results/results/0/testCase/options", "none"),
        ("results/results/0/testCase/metadata", 1),
        ("results/results/0/vars/policy", f"file://{'x' * 5000}"),
        ("results/results/0/vars/policy", "file:///etc/passwd"),
        ("results/results/0/vars/policy", "file://../../../../etc/passwd"),
        ("results/results/0/vars/policy", "file://\0"),
    ],
)
def test_read__tolerates_what_it_does_not_need(tmp_path: Path, path: str, value: Any) -> None:
    suite = checkout(tmp_path)
    rows = read(suite, edited(recorded(suite), path, value))

    assert len(rows) == 30
    assert FORMAT.select(rows, suite)


@pytest.mark.parametrize(
    "content", [b"", b"null", b"[]", b'{"results": {"version": 3, "prom', b"\xff"]
)
def test_read__refuses_what_is_no_document(tmp_path: Path, content: bytes) -> None:
    with pytest.raises((ResultsError, ValidationError)):
        read(checkout(tmp_path), content)


def test_read__an_answer_may_end_in_half_of_a_pair(tmp_path: Path) -> None:
    suite = checkout(tmp_path)
    document = recorded(suite)
    answer = "\ud83d\ude00 \\ud83d \ud83d"
    rows = read(suite, edited(document, "results/results/0/response/output", answer))

    assert "😀 \\ud83d �" in {row.answer for row in rows}


def test_read__without_a_file(tmp_path: Path) -> None:
    with pytest.raises(ResultsError, match=r"^it wrote no results\.json"):
        FORMAT.read(tmp_path, checkout(tmp_path))


def started(
    suite: Suite, words: Sequence[str], results: Path, selection: str = ""
) -> Sequence[Row]:
    """The rows of a start of the real program, with two samples."""
    file = results.with_name(f"{results.name}-selection.json")
    file.write_text(selection)
    results.mkdir()
    values = {"SUITE": suite.path, "SAMPLES": 2, "RESULTS": results, "SELECTION": file}
    state = str(results.with_name("state"))
    variables = {name: text.format(STATE=state) for name, text in FORMAT.variables.items()}
    process = subprocess.run(
        [find_runner("promptfoo"), *(word.format(**values) for word in words)],
        cwd=suite.root,
        env={**os.environ, **variables},
        capture_output=True,
        text=True,
        check=False,
    )
    assert process.returncode in FORMAT.exit_codes, process.stderr
    return FORMAT.read(results, suite)


WANTED = (
    *("shipping (829aa931)", "list (2f121287)", "same #2", "wrong", "first line (d6887e2c)"),
    "row with a name",
)


@pytest.mark.slow
def test_promptfoo__runs_the_selected_tests_again(tmp_path: Path) -> None:
    suite = checkout(tmp_path)
    config = suite.root / suite.path
    config.write_text(config.read_text().partition("scenarios:")[0])
    first = rows_by_test(started(suite, FORMAT.command, tmp_path / "first"), 2)

    again = selected(suite, first, WANTED, tmp_path / "again")

    # With the other test of the same description, and that of the same id.
    assert sorted(again) == sorted([*WANTED, "list (73396a61)", "same"])


@pytest.mark.slow
def test_promptfoo__runs_the_selected_tests_of_scenarios_again(tmp_path: Path) -> None:
    suite = checkout(tmp_path)
    first = rows_by_test(started(suite, FORMAT.command, tmp_path / "first"), 2)
    assert first.keys() == rows_by_test(read(suite, recorded(suite)), 2).keys()

    selected(suite, first, [*WANTED, "scenario (73c73d1a)"], tmp_path / "again")


def selected(
    suite: Suite, first: Mapping[str, Sequence[Row]], wanted: Sequence[str], results: Path
) -> Mapping[str, Sequence[Row]]:
    """The rows of the wanted tests and others, run again with the same assertions and verdicts."""
    (selection,) = FORMAT.select([first[name][0] for name in wanted], suite)
    again = rows_by_test(started(suite, FORMAT.again, results, selection.text or ""), 2)
    for name in wanted:
        assert [row.checks for row in again[name]] == [row.checks for row in first[name]]
        assert [row.passed for row in again[name]] == [row.passed for row in first[name]]
    return again
