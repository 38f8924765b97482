"""JUnit XML of pytest and of others: what its tests mean, and what is refused."""

import os
import subprocess
import sys
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

import pytest
from pydantic import ValidationError

from agentevals_action.model.diagnostic import Location
from agentevals_action.model.files import NamedFile
from agentevals_action.model.suite import Suite
from agentevals_action.runners.formats import FORMATS
from agentevals_action.runners.formats.base import ResultsError, Row, Selection
from tests.support import suites

DATA = Path(__file__).resolve().parents[3] / "data/runners/junit"
FORMAT = FORMATS["junit"]
QUIET: Any = {"capture_output": True, "timeout": 60}


def suite(root: Path, path: str = "evals/test_a.py") -> Suite:
    fields = {"path": path, "root": root, "folder": (root / path).parent}
    files = (NamedFile(path, "suite"), NamedFile("evals/shared.py", "import"))
    return Suite().model_copy(update={**fields, "files": files})


def read(folder: Path, content: str | bytes, path: str = "evals/test_a.py") -> Sequence[Row]:
    suites.write(folder, {"junit.xml": content})
    return FORMAT.read(folder, suite(folder, path))


def recorded(folder: Path, name: str, path: str) -> Mapping[str, Row]:
    """The rows by id of a recorded file."""
    return {row.id: row for row in read(folder, (DATA / name).read_bytes(), path)}


def case(children: str = "", **attributes: str) -> str:
    """A file with one test."""
    attributes = {"classname": "evals.test_a", "name": "test_a", **attributes}
    text = " ".join(f'{name}="{value}"' for name, value in attributes.items())
    return f"<testsuites><testsuite><testcase {text}>{children}</testcase></testsuite></testsuites>"


#: The tests of `outcomes.py` that do not pass: error, why it was skipped, why it failed, line.
OUTCOMES = {
    "TestShared::test_inherited": ("", "", "AssertionError", ("evals/shared.py", 5)),
    "test_recorded": ("", "", "the answer was one two\nassert 'three' in 'one two'", 30),
    "test_chain": ("", "", "ConnectionError: HTTP 500", 43),
    "test_setup": ('failed on setup with "RuntimeError: no service"', "", "", 61),
    "test_teardown": ('failed on teardown with "RuntimeError: no end"', "", "", 65),
    "test_failure_and_teardown": (
        "",
        "",
        'Failed: wrong\nfailed on teardown with "RuntimeError: no end"',
        69,
    ),
    "test_expected_failure": ("", "known", "", 73),
    "test_expected_failure_without_reason": ("", "pytest.xfail", "", 78),
    "test_unexpected_pass": ("", "", "[XPASS(strict)] known", 83),
    "test_skipped": ("", "no key", "", 88),
    "test_subtests": ("", "", "assert 0 == 1\nassert 2 == 1\ncontains 2 failed subtests", 93),
    "TestUnit::test_unit": ("", "", "1 != 2", 106),
}


def test_read__every_outcome_of_pytest(tmp_path: Path) -> None:
    path = "evals/test_outcomes.py"
    suites.write(tmp_path, {"evals/shared.py": "", path: ""})

    rows = recorded(tmp_path, "pytest-9.2.xml", path)

    found = {}
    for row in rows.values():
        place = row.location
        assert place
        line = place.line if place.path == path else (place.path, place.line)
        if not row.passed:
            found[row.id] = (row.error, row.skipped, row.reason, line)
    long = found.pop("test_long")[2]
    assert found == OUTCOMES
    assert long.startswith(f"the answer was {'one two ' * 80}\nassert 'three' in 'one two")
    assert "full report" not in long
    assert list(rows)[:3] == [
        "test_imported",
        "TestShared::test_inherited",
        "TestShared::TestInner::test_nested",
    ]
    recording = rows["test_recorded"]
    assert (recording.question, recording.answer) == ("What\nis it?", "one <two>")
    assert (recording.score, recording.asked, recording.graded) == (0.25, None, None)
    assert [row.notice for row in rows.values() if row.notice] == [
        "the parameters of `test_numbered` are numbered (`question0`): one more of them changes "
        "what the others are; give them `ids=`"
    ]


def test_read__an_attempt_that_was_repeated_did_not_pass(tmp_path: Path) -> None:
    rows = recorded(tmp_path, "pytest-rerunfailures-16.7.xml", "evals/test_reruns.py")

    assert [(row.id, row.passed, row.answer) for row in rows.values()] == [
        ("test_second_attempt", True, "attempt 2"),
        ("test_never", False, ""),
    ]


def test_read__deepeval(tmp_path: Path) -> None:
    rows = recorded(tmp_path, "deepeval-4.3.xml", "evals/test_deep.py")

    assert [(row.id, row.passed, row.error) for row in rows.values()] == [
        ("test_mentions[words0-refund]", True, ""),
        ("test_mentions[words1-refund]", False, ""),
        ("test_broken_judge", False, ""),
    ]
    missed = rows["test_mentions[words1-refund]"]
    assert (missed.question, missed.answer) == ("Refund?", "Within 14 days.")
    assert missed.reason.startswith("Metrics: Mentions (score: 0.0, threshold: 0.5,")
    assert missed.reason.endswith(", months) failed.")
    assert rows["test_broken_judge"].reason == ("ConnectionError: the judge answered with HTTP 500")


def test_read__pydantic_evals(tmp_path: Path) -> None:
    rows = recorded(tmp_path, "pydantic-evals-2.62.xml", "evals/test_dataset.py")

    assert [(row.id, row.passed, row.reason) for row in rows.values()] == [
        ("test_capital[france]", True, ""),
        ("test_capital[spain]", False, "assert 'Paris' == 'Madrid'\n  \n  - Madrid\n  + Paris"),
    ]


def test_read__others_write_it_too(tmp_path: Path) -> None:
    """With a `command` of one's own; the tests of vitest have the names that it selects by."""
    of_vitest = recorded(tmp_path, "vitest-4.1.xml", "evals/support.test.ts")
    of_jest = recorded(tmp_path, "jest-junit-17.0.xml", "evals/support.test.js")

    assert {row.id: (row.passed, row.skipped) for row in of_vitest.values() if not row.reason} == {
        "support > refunds in time": (True, ""),
        "support > later": (False, "skipped"),
        "support > never": (False, "skipped"),
        "support > known": (True, ""),
        "each a": (True, ""),
    }
    assert {row.id: row.reason for row in of_vitest.values() if row.reason} == {
        "support > names the settings": "expected 'Open it.' to contain 'settings'",
        "support > breaks": "HTTP 500",
        "each b": "expected 'b' to be 'a' // Object.is equality",
    }
    assert [(row.passed, row.skipped, row.reason[:36]) for row in of_jest.values()] == [
        (True, "", ""),
        (False, "", "Error: expect(received).toContain(ex"),
        (False, "skipped", ""),
    ]


def test_read__a_file_that_vitest_cannot_load_is_an_error(tmp_path: Path) -> None:
    with pytest.raises(ResultsError, match=r"could not be collected: Cannot find module './none'"):
        recorded(tmp_path, "vitest-4.1-broken.xml", "evals/broken.test.ts")


@pytest.mark.parametrize(
    ("path", "classname", "name", "expected"),
    [
        ("evals/a/test_b.py", "evals.a.test_b", "test_c", "test_c"),
        ("evals/a/test_b.py", "evals.a.test_b.TestC.TestD", "test_e[x]", "TestC::TestD::test_e[x]"),
        # The folder of pytest's configuration is below, above or beside the checkout.
        ("evals/a/test_b.py", "a.test_b.TestC", "test_d", "TestC::test_d"),
        ("evals/a/test_b.py", "test_b.TestC", "test_d", "TestC::test_d"),
        ("evals/a/test_b.py", "work.repo.evals.a.test_b.TestC", "test_d", "TestC::test_d"),
        ("evals/a/test_b.py", "", "test_d", "test_d"),
        ("evals/a/test_b.py", ".TestC", "test_d", "TestC::test_d"),
        # --junit-prefix
        ("evals/a/test_b.py", "my.evals.evals.a.test_b.TestC", "test_d", "TestC::test_d"),
        ("evals/a/test_b.py", "my.a.test_b.TestC", "test_d", "TestC::test_d"),
        # A folder, and a class, with the name of the file.
        ("test_a/test_a.py", "test_a.test_a.TestC", "test_d", "TestC::test_d"),
        ("test_a.py", "test_a.test_a", "test_d", "test_a::test_d"),
        ("evals/v1.2/test_b.py", "evals.v1.2.test_b", "test_c", "test_c"),
        # Others: vitest, jest-junit, go-junit-report.
        ("evals/a.test.ts", "evals/a.test.ts", "refunds &gt; in time", "refunds > in time"),
        ("evals/a.test.ts", "refunds in time", "in time", "refunds in time::in time"),
        ("evals/a_test.go", "example.org/evals", "TestA/b", "example.org/evals::TestA/b"),
    ],
)
def test_id__is_the_node_id_in_the_suite(
    tmp_path: Path, path: str, classname: str, name: str, expected: str
) -> None:
    (row,) = read(tmp_path, case(classname=classname, name=name), path)

    assert row.id == expected
    assert FORMAT.select([row], suite(tmp_path, path)) == [Selection(f"{path}::{expected}\n")]


@pytest.mark.parametrize(
    ("attributes", "location"),
    [
        ({"file": "evals/test_a.py", "line": "0"}, Location("evals/test_a.py", 1)),
        ({"file": "test_a.py", "line": "3"}, Location("evals/test_a.py", 4)),
        ({"file": "../w/evals/test_a.py", "line": "3"}, Location("evals/test_a.py", 4)),
        ({"file": "evals/shared.py", "line": "3"}, Location("evals/shared.py", 4)),
        ({"file": "evals/none.py", "line": "3"}, None),
        ({"file": "../outside.py", "line": "3"}, None),
        ({"file": "/etc/passwd", "line": "3"}, None),
        ({"file": "x" * 5000, "line": "3"}, None),
        ({"file": "evals/test_a.py"}, None),
        ({"line": "3"}, None),
    ],
)
def test_location__a_file_that_the_suite_depends_on(
    tmp_path: Path, attributes: dict[str, str], location: Location | None
) -> None:
    (row,) = read(tmp_path, case(**attributes))

    assert row.location == location


@pytest.mark.parametrize(
    ("children", "passed", "error", "skipped", "reason"),
    [
        ("", True, "", "", ""),
        ("<system-out>x</system-out><properties/>", True, "", "", ""),
        ("<failure/>", False, "", "", "failure"),
        ("<failure message=''>text\n</failure>", False, "", "", "text"),
        ("<error/>", False, "error", "", ""),
        ("<skipped/>", False, "", "skipped", ""),
        ("<skipped/><failure message='x'/>", False, "", "", "x"),
        ("<skipped message='s'/><error message='x'/>", False, "x", "", ""),
    ],
)
def test_outcome__only_a_test_without_another_one_passes(
    tmp_path: Path, children: str, passed: bool, error: str, skipped: str, reason: str
) -> None:
    (row,) = read(tmp_path, case(children))

    assert (row.passed, row.error, row.skipped, row.reason) == (passed, error, skipped, reason)


@pytest.mark.parametrize("status", ["disabled", "notrun"])
def test_outcome__of_one_that_did_not_run_is_skipped(tmp_path: Path, status: str) -> None:
    """CTest and GoogleTest have no element for it."""
    (row,) = read(tmp_path, case(status=status))

    assert (row.passed, row.error, row.skipped) == (False, "", status)


def test_outcome__of_one_that_ran_twice_is_the_worse(tmp_path: Path) -> None:
    """pytest-xdist with `--dist=each`: neither order makes it pass."""
    once = '<testcase name="test_a">{}</testcase>'
    for first, second in (("", "<failure/>"), ("<failure/>", "")):
        content = f"<testsuite>{once.format(first)}{once.format(second)}</testsuite>"

        (row,) = read(tmp_path, content)

        assert not row.passed


@pytest.mark.parametrize(
    ("name", "is_numbered"),
    [
        ("test_a[c0]", True),
        ("test_a[x-expected_0]", True),
        ("test_a[input0-y]", True),
        ("test_a[c1]", False),
        ("test_a[c10]", False),
        ("test_a[0]", False),
        ("test_a[gpt-4.0]", False),
        ("test_c0", False),
    ],
)
def test_notice__of_numbered_parameters(tmp_path: Path, name: str, is_numbered: bool) -> None:
    (row,) = read(tmp_path, case(name=name))

    assert bool(row.notice) == is_numbered


_BOMB = (
    "<!DOCTYPE a ["
    + "".join(f'<!ENTITY e{index} "{f"&e{index - 1};" * 10}">' for index in range(1, 10))
    + '<!ENTITY e0 "ha">]><testsuites>&e9;</testsuites>'
)
#: Files that are refused, and a part of the sentence.
INVALID: dict[str, tuple[str | bytes, str]] = {
    "nothing": ("", "not complete XML"),
    "half": (case()[:-30], "not complete XML"),
    "text": ("collected 1 item", "not complete XML"),
    "bytes": (b"\x00\xff" * 500, "not complete XML"),
    "unknown encoding": ('<?xml version="1.0" encoding="x"?><testsuites/>', "not complete XML"),
    "wide encoding": ('<?xml version="1.0" encoding="big5"?><testsuites/>', "not complete XML"),
    "entity": ("<testsuites>&e9;</testsuites>", "undefined entity"),
    "entity bomb": (_BOMB, "DOCTYPE"),
    "entity bomb in UTF-16": (_BOMB.encode("utf-16"), "DOCTYPE"),
    "external entity": ('<!DOCTYPE a SYSTEM "file:///etc/passwd"><testsuites/>', "DOCTYPE"),
    "late entity": (f"<!--<testsuite {'x' * 4096}-->{_BOMB}", "not complete XML (limit on input"),
    "deep": ("<testsuites>" + "<a>" * 501_000, "not complete XML"),
    "wide": ("<testsuites>" + "<a/>" * 1_001_000, "more than 1,000,000 tags"),
    "huge": (b" " * (33 << 20), "larger than 32 MiB"),
    "new outcome": (case("<failed/>"), "a test has a <failed>, which the JUnit XML of pytest 9.2"),
    "test in a test": (case("<testcase name='x'/>"), "a test has a <testcase>"),
    "collection": (
        case("<error message='collection failure'>x\nE   ImportError: no a</error>", classname=""),
        "its tests could not be collected: ImportError: no a",
    ),
    "collection without words": (case("<error message='collection failure'/>"), "collected: "),
    # pytest.exit() in a test
    "no name": ("<testsuite><testcase time='0.0'/></testsuite>", "name"),
    "line": (case(line="-1"), "line"),
    "large line": (case(line="9" * 5000), "line"),
}


@pytest.mark.parametrize("name", INVALID)
def test_invalid__is_refused_in_a_sentence(tmp_path: Path, name: str) -> None:
    content, sentence = INVALID[name]

    with pytest.raises((ResultsError, ValidationError)) as caught:
        read(tmp_path, content)

    assert sentence in str(caught.value)
    assert len(str(caught.value)) < 400


def test_read__no_file_is_an_error(tmp_path: Path) -> None:
    with pytest.raises(ResultsError, match=r"it wrote no junit\.xml"):
        FORMAT.read(tmp_path, suite(tmp_path))


def run(root: Path, words: Sequence[str], **values: str) -> int:
    """Starts pytest with words of the default commands; its exit code."""
    for name, value in values.items():
        words = [word.replace(f"{{{name}}}", value) for word in words]
    clean = {name: text for name, text in os.environ.items() if not name.startswith("PYTEST_")}
    clean["PYTEST_DISABLE_PLUGIN_AUTOLOAD"] = "1"
    command = [sys.executable, "-m", "pytest", *words]
    done = subprocess.run(
        command, cwd=root, env=clean, timeout=60, capture_output=True, check=False
    )
    return done.returncode


def test_commands__run_a_suite_and_a_selection_of_it(tmp_path: Path) -> None:
    """With the installed pytest, a configuration below the root, and `-x` in it."""
    path = "evals/test_outcomes.py"
    shared = (DATA / "shared.py").read_text("utf-8")
    own = (DATA / "outcomes.py").read_text("utf-8").replace("evals.shared", "shared")
    addopts = "[pytest]\naddopts = -x --junit-prefix=team.a\npythonpath = .\n"
    files = {path: own, "evals/shared.py": shared, "evals/pytest.ini": addopts}
    root = suites.write(tmp_path / "checkout", files)
    first, again = tmp_path / "first", tmp_path / "again"

    code = run(root, FORMAT.command, SUITE=path, RESULTS=str(first))
    rows = FORMAT.read(first, suite(root, path))
    (selection,) = FORMAT.select(rows, suite(root, path))
    (tmp_path / "selection").write_text(selection.text or "", encoding="utf-8")
    code_again = run(root, FORMAT.again, SELECTION=str(tmp_path / "selection"), RESULTS=str(again))

    outcomes = [(row.id, row.passed, row.error, row.skipped) for row in rows]
    known = recorded(tmp_path, "pytest-9.2.xml", path).values()
    assert outcomes == [(row.id, row.passed, row.error, row.skipped) for row in known]
    assert {code, code_again} <= FORMAT.exit_codes
    repeated = FORMAT.read(again, suite(root, path))
    assert [(row.id, row.passed, row.error, row.skipped) for row in repeated] == outcomes
    assert rows[-1].location == Location(path, 106)


@pytest.mark.slow
@pytest.mark.parametrize(
    ("file", "module", "results"),
    [
        ("deep.py", "deepeval", "deepeval-4.3.xml"),
        ("dataset.py", "pydantic_evals", "pydantic-evals-2.62.xml"),
        ("reruns.py", "pytest_rerunfailures", "pytest-rerunfailures-16.7.xml"),
    ],
)
def test_recordings__are_what_the_real_ones_write(
    tmp_path: Path, file: str, module: str, results: str
) -> None:
    """With the default command and variables, in the Python of PATH."""
    path = f"evals/test_{file}"
    root = suites.write(tmp_path, {path: (DATA / file).read_bytes()})
    program = FORMAT.program.split()
    known = subprocess.run([program[0], "-c", f"import {module}"], cwd=root, check=False, **QUIET)
    if known.returncode:
        pytest.skip(f"the python3 of PATH has no {module}")
    words = [word.format(SUITE=path, RESULTS=root / "results") for word in FORMAT.command]
    environment = {**os.environ, **FORMAT.variables}

    subprocess.run([*program, *words], cwd=root, env=environment, check=False, **QUIET)

    rows = FORMAT.read(root / "results", suite(root, path))
    expected = recorded(tmp_path, results, path)
    assert [(row.id, row.passed, row.error, row.reason, row.answer) for row in rows] == [
        (row.id, row.passed, row.error, row.reason, row.answer) for row in expected.values()
    ]


#: Suites without complete results.
BROKEN = {
    "import": "import nothing_of_this_name",
    "syntax": "def test_a(:",
    "no test": "x = 1",
    "skipped": "import pytest\npytest.skip('x', allow_module_level=True)",
    "exit": "import pytest\ndef test_a(): pass\ndef test_b(): pytest.exit('x')",
    "interrupt": "def test_a(): pass\ndef test_b(): raise KeyboardInterrupt",
    "abort": "import os\ndef test_a(): os.abort()",
}


@pytest.mark.slow
@pytest.mark.parametrize("name", BROKEN)
def test_exit_code__of_a_run_without_complete_results_is_another(tmp_path: Path, name: str) -> None:
    root = suites.write(tmp_path, {"evals/test_a.py": BROKEN[name]})

    code = run(root, FORMAT.command, SUITE="evals/test_a.py", RESULTS=str(tmp_path / "results"))

    assert code not in FORMAT.exit_codes
