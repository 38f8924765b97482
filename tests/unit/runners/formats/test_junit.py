"""JUnit XML: files that are hostile, and the real pytest. Recorded files are in `test_recorded`."""

import os
import subprocess
import sys
from collections.abc import Sequence
from pathlib import Path
from typing import Any

import pytest
from pydantic import ValidationError

from agentevals_action.model.diagnostic import Location
from agentevals_action.model.suite import Suite
from agentevals_action.runners.formats import FORMATS
from agentevals_action.runners.formats.base import ResultsError, Row
from tests.support import suites
from tests.support.runners import DATA, recorded

FORMAT = FORMATS["junit"]()
QUIET: Any = {"capture_output": True, "timeout": 60}
_BOMB = (
    "<!DOCTYPE a ["
    + "".join(f'<!ENTITY e{index} "{f"&e{index - 1};" * 10}">' for index in range(1, 10))
    + '<!ENTITY e0 "ha">]><testsuites>&e9;</testsuites>'
)
#: Files that are refused, and a part of the sentence.
HOSTILE: dict[str, tuple[str | bytes, str]] = {
    "a file that vitest cannot load": (
        (DATA / "junit/vitest-4.1-broken.xml").read_bytes(),
        "could not be collected: Cannot find module './none'",
    ),
    "bytes": (b"\x00\xff" * 500, "not complete XML"),
    "entity bomb": (_BOMB, "DOCTYPE"),
    "entity bomb in UTF-16": (_BOMB.encode("utf-16"), "DOCTYPE"),
    "late entity": (f"<!--<testsuite {'x' * 4096}-->{_BOMB}", "not complete XML (limit on input"),
    "deep": ("<testsuites>" + "<a>" * 501_000, "not complete XML"),
    "wide": ("<testsuites>" + "<a/>" * 1_001_000, "more than 1,000,000 tags"),
    "huge": (b" " * (33 << 20), "larger than 32 MiB"),
    "large line": (f'<testsuite><testcase name="a" line="{"9" * 5000}"/></testsuite>', "line"),
}


@pytest.mark.parametrize("name", HOSTILE)
def test_read__a_hostile_file_is_refused_in_a_sentence(tmp_path: Path, name: str) -> None:
    content, sentence = HOSTILE[name]
    suites.write(tmp_path, {"junit.xml": content})

    with pytest.raises((ResultsError, ValidationError)) as caught:
        FORMAT.read(tmp_path, Suite(path="evals/broken.test.ts", root=tmp_path))

    assert sentence in str(caught.value)
    assert len(str(caught.value)) < 400


def outcomes(rows: Sequence[Row]) -> list[tuple[object, ...]]:
    return [(row.id, row.passed, row.error, row.skipped, row.reason, row.answer) for row in rows]


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
    results, suite = recorded("junit", tmp_path)
    shared = (DATA / "junit/shared.py").read_text("utf-8")
    own = (DATA / "junit/outcomes.py").read_text("utf-8").replace("evals.shared", "shared")
    addopts = "[pytest]\naddopts = -x --junit-prefix=team.a\npythonpath = .\n"
    files = {suite.path: own, "evals/shared.py": shared, "evals/pytest.ini": addopts}
    root = suites.write(suite.root, files)
    first, again = tmp_path / "first", tmp_path / "again"

    code = run(root, FORMAT.command, SUITE=suite.path, RESULTS=str(first))
    rows = FORMAT.read(first, suite)
    (selection,) = FORMAT.select(rows, suite)
    (tmp_path / "selection").write_text(selection.text or "", encoding="utf-8")
    code_again = run(root, FORMAT.again, SELECTION=str(tmp_path / "selection"), RESULTS=str(again))

    known = [row[:4] for row in outcomes(FORMAT.read(results, suite))]
    assert [row[:4] for row in outcomes(rows)] == known
    assert {code, code_again} <= FORMAT.exit_codes
    assert [row[:4] for row in outcomes(FORMAT.read(again, suite))] == known
    assert rows[-1].location == Location(suite.path, 106)


@pytest.mark.slow
@pytest.mark.parametrize(
    ("file", "module", "name"),
    [
        ("deep.py", "deepeval", "junit-deepeval"),
        ("dataset.py", "pydantic_evals", "junit-pydantic-evals"),
        ("reruns.py", "pytest_rerunfailures", "junit-reruns"),
    ],
)
def test_recordings__are_what_the_real_ones_write(
    tmp_path: Path, file: str, module: str, name: str
) -> None:
    """With the default command and variables, in the Python of PATH."""
    results, suite = recorded(name, tmp_path)
    root = suites.write(suite.root, {suite.path: (DATA / "junit" / file).read_bytes()})
    program = FORMAT.program.split()
    known = subprocess.run([program[0], "-c", f"import {module}"], cwd=root, check=False, **QUIET)
    if known.returncode:
        pytest.skip(f"the python3 of PATH has no {module}")
    words = [word.format(SUITE=suite.path, RESULTS=root / "found") for word in FORMAT.command]
    environment = {**os.environ, **FORMAT.variables}

    subprocess.run([*program, *words], cwd=root, env=environment, check=False, **QUIET)

    found = FORMAT.read(root / "found", suite)
    assert outcomes(found) == outcomes(FORMAT.read(results, suite))


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
