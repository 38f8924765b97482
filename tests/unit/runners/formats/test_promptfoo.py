"""Results of promptfoo: recorded ones, other structures, and those of the real program."""

import json
import os
import shutil
from collections import Counter
from collections.abc import Mapping, Sequence
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest

from agentevals_action.model.files import NamedFile
from agentevals_action.model.suite import Suite
from agentevals_action.model.usage import Usage
from agentevals_action.runners.formats import FORMATS
from agentevals_action.runners.formats.base import Check, Row
from agentevals_action.runners.rows import rows_by_test
from tests.support.runners import started

DATA = Path(__file__).resolve().parents[3] / "data/runners/promptfoo"
PATHS = {"columns": "promptfooconfig.yaml", "cases": "evals/promptfooconfig.yaml"}
FILES = ("data/more.yaml", "data/tests.csv")
FORMAT = FORMATS["promptfoo"]


def checkout(tmp_path: Path, name: str = "cases") -> Suite:
    """The suite of a recording in a checkout of its own."""
    root = tmp_path.resolve() / "checkout"
    shutil.copytree(DATA / name, root)
    path = PATHS[name]
    return naming(Suite().model_copy(update={"path": path, "root": root}), *FILES)


def naming(suite: Suite, *names: str) -> Suite:
    """The suite with files in its folder that it names."""
    file = suite.root / suite.path
    named = [NamedFile(f"{Path(suite.path).parent}/{name}", "named file") for name in names]
    files = (NamedFile(suite.path, "suite"), *named)
    return suite.model_copy(update={"folder": file.parent, "files": files})


def recorded(suite: Suite) -> Any:
    """The recorded document, as of this checkout."""
    name = "columns.json" if suite.path == PATHS["columns"] else "results.json"
    text = (DATA / "recorded-0.123.1" / name).read_text(encoding="utf-8")
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


def test_ids__of_a_long_description_are_on_one_line(tmp_path: Path) -> None:
    suite = checkout(tmp_path)
    document = recorded(suite)
    for result in document["results"]["results"]:
        if result["testCase"].get("description") == "wrong":
            result["testCase"]["description"] = "wrong\n" * 100

    found = {row.id for row in read(suite, document)}

    assert "wrong " * 33 + "w…" in found


def test_select__all_run_where_promptfoo_cannot_tell_tests_apart(tmp_path: Path) -> None:
    suite = checkout(tmp_path)
    rows = cases(tmp_path / "other")
    assert len(FORMAT.select([row_of(rows, "wrong"), row_of(rows, "outage")], suite)) == 1
    assert FORMAT.select([row_of(rows, "wrong"), row_of(rows, "same")], suite) == ()


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


def test_verdict__a_test_without_assertions_is_not_scored_whatever_its_provider_says(
    tmp_path: Path,
) -> None:
    suite = checkout(tmp_path)
    document = recorded(suite)
    for result in document["results"]["results"]:
        if result["testCase"].get("description") == "unscored":
            result |= {"failureReason": 2, "success": False, "error": "503"}

    row = row_of(read(suite, document), "unscored")

    assert (row.passed, row.error, row.skipped) == (False, "", "it has no assertions")


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
        Check("contains: set", True, 1.0, "Assertion passed"),
        Check("contains: nothing", False, 0.0, 'Expected output to contain "nothing"'),
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


def test_figures__that_a_provider_does_not_count_are_unknown(tmp_path: Path) -> None:
    suite = checkout(tmp_path)
    document = recorded(suite)
    result = document["results"]["results"][0]
    result["response"] |= {"tokenUsage": {"prompt": 0, "completion": 0, "numRequests": 1}}
    document["results"]["results"] = [result]

    (row,) = read(suite, document)

    assert row.usage == Usage()


JUDGE_ERROR = {
    "pass": False,
    "score": 0,
    "reason": "API error: 503",
    "metadata": {"graderError": True},
    "assertion": {"type": "llm-rubric", "value": "is polite"},
}
CONTAINS = {"pass": False, "score": 0, "reason": "no", "assertion": {"type": "contains"}}


@pytest.mark.parametrize(
    ("components", "success", "error"),
    [
        ([JUDGE_ERROR], False, "llm-rubric: is polite: API error: 503"),
        ([{**CONTAINS, "pass": True}, JUDGE_ERROR], False, "llm-rubric: is polite: API error: 503"),
        (
            [{**CONTAINS, "componentResults": [JUDGE_ERROR]}, JUDGE_ERROR],
            False,
            "llm-rubric: is polite: API error: 503",
        ),
        ([CONTAINS, JUDGE_ERROR], False, ""),
        ([JUDGE_ERROR], True, ""),
        ([{**JUDGE_ERROR, "metadata": {"graderError": "true"}}], False, ""),
    ],
)
def test_verdict__a_judge_that_fails_is_an_error_unless_something_else_failed(
    tmp_path: Path, components: Any, success: bool, error: str
) -> None:
    suite = checkout(tmp_path)
    document = recorded(suite)
    result = document["results"]["results"][0]
    result |= {"success": success, "failureReason": int(not success)}
    result["gradingResult"]["componentResults"] = components
    document["results"]["results"] = [result]

    (row,) = read(suite, document)

    assert (row.error, row.passed) == (error, success)


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
    ("path", "value"),
    [
        ("config/defaultTest", None),
        ("config/defaultTest", "file://default.yaml"),
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
    assert FORMAT.select([row_of(rows, "wrong")], suite)


LINES = {
    "assertions": ("promptfooconfig.yaml", 9),
    "set": ("promptfooconfig.yaml", 22),
    "shipping (829aa931)": ("promptfooconfig.yaml", 31),
    "outage": ("promptfooconfig.yaml", 33),
    "list (73396a61)": ("promptfooconfig.yaml", 35),
    "list (2f121287)": ("promptfooconfig.yaml", 35),
    "same": ("promptfooconfig.yaml", 38),
    "unscored": ("promptfooconfig.yaml", 44),
    "from another file": ("data/more.yaml", 1),
    "wrong": ("data/more.yaml", 4),
    "first line (d6887e2c)": ("data/tests.csv", 2),
    "row with a name": ("data/tests.csv", 4),
    "scenario (ab8bc6e2)": ("promptfooconfig.yaml", 54),
    "scenario (73c73d1a)": ("promptfooconfig.yaml", 54),
}


def test_location__finds_items_and_rows(tmp_path: Path) -> None:
    suite = checkout(tmp_path)

    found = {}
    for row in read(suite, recorded(suite)):
        assert row.location
        found[row.id] = (row.location.path.removeprefix("evals/"), row.location.line)
    assert found == LINES


def test_location__does_not_know_what_it_cannot_read(tmp_path: Path) -> None:
    suite = checkout(tmp_path)
    for name in ("fifo.csv", "fifo.yaml"):
        os.mkfifo(suite.folder / name)
    (suite.folder / "bad.csv").write_bytes(b'question\n"\xff')
    (suite.folder / "bad.yaml").write_text("- {")
    (suite.folder / "text.yaml").write_text("text")
    (suite.folder / "odd.yaml").write_text("tests: [1, {vars: 2}]\nscenarios: [x, {tests: y}]")
    names = ("fifo.csv", "fifo.yaml", "bad.csv", "bad.yaml", "text.yaml", "odd.yaml", "gone.csv")
    (suite.root / suite.path).write_text("tests: [x")
    rows = read(naming(suite, *names), recorded(suite))

    assert {row.location for row in rows} == {None}


def test_location__a_configuration_that_is_a_program_has_no_places(tmp_path: Path) -> None:
    suite = naming(checkout(tmp_path).model_copy(update={"path": "evals/promptfooconfig.js"}))
    (suite.root / suite.path).write_text("module.exports = {};")
    (row, *_) = read(suite, recorded(suite))

    assert row.location is None


WANTED = (
    *("shipping (829aa931)", "list (2f121287)", "wrong", "first line (d6887e2c)"),
    "row with a name",
)


@pytest.mark.slow
def test_promptfoo__runs_the_selected_tests_again(tmp_path: Path) -> None:
    suite = checkout(tmp_path)
    config = suite.root / suite.path
    config.write_text(config.read_text().partition("scenarios:")[0])
    first = rows_by_test(started(FORMAT, suite, tmp_path / "first"), 2)

    again = selected(suite, first, WANTED, tmp_path / "again")

    assert sorted(again) == sorted(WANTED)


@pytest.mark.slow
def test_promptfoo__runs_the_selected_tests_of_scenarios_again(tmp_path: Path) -> None:
    suite = checkout(tmp_path)
    first = rows_by_test(started(FORMAT, suite, tmp_path / "first"), 2)
    assert first.keys() == rows_by_test(read(suite, recorded(suite)), 2).keys()

    selected(suite, first, [*WANTED, "scenario (73c73d1a)"], tmp_path / "again")


def selected(
    suite: Suite, first: Mapping[str, Sequence[Row]], wanted: Sequence[str], results: Path
) -> Mapping[str, Sequence[Row]]:
    """The rows of the wanted tests and others, run again with the same assertions and verdicts."""
    (selection,) = FORMAT.select([first[name][0] for name in wanted], suite)
    ids = {row.key: row.id for rows in first.values() for row in rows}
    rows = started(FORMAT, suite, results, selection)
    again = rows_by_test([replace(row, id=ids[row.key]) for row in rows], 2)
    for name in wanted:
        assert [row.checks for row in again[name]] == [row.checks for row in first[name]]
        assert [row.passed for row in again[name]] == [row.passed for row in first[name]]
    return again


@pytest.mark.slow
def test_promptfoo__finds_globs_of_prompts_beside_a_configuration_in_a_folder(
    tmp_path: Path,
) -> None:
    suite = checkout(tmp_path)
    (suite.folder / "prompts").mkdir()
    shutil.copy(suite.folder / "prompt.txt", suite.folder / "prompts")
    config = suite.root / suite.path
    config.write_text(config.read_text().replace("[file://prompt.txt]", "prompts/*.txt"))

    rows = started(FORMAT, suite, tmp_path / "results")

    assert {row.id for row in rows} >= set(WANTED)
