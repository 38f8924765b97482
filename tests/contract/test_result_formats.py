"""Every format of the registry: what it reads of recorded results is what the core needs, and
spoiled results are read or refused in one sentence, never an error of ours."""

import copy
import json
import os
import random
import shutil
from collections.abc import Iterator, Sequence
from contextlib import suppress
from pathlib import Path
from typing import Any

import pytest
from pydantic import ValidationError

from agentevals_action.model.result import Fingerprint
from agentevals_action.model.runner import PassRule, Runner
from agentevals_action.model.suite import Suite
from agentevals_action.results.jsonl import encode_row
from agentevals_action.runners.commands import find_problems
from agentevals_action.runners.formats import FORMATS
from agentevals_action.runners.formats.base import ResultsError, Row
from agentevals_action.runners.rows import build_result, rows_by_test
from agentevals_action.validation.field_errors import invalid_json

DATA = Path(__file__).resolve().parents[1] / "data/runners"
#: Of each format the recorded results (a folder, or a file), the name that its program gives to
#: such a file, and the path of the suite.
RECORDED = {
    "promptfoo": (
        "promptfoo/recorded-*/results.json",
        "results.json",
        "evals/promptfooconfig.yaml",
    ),
    "junit": ("junit/pytest-[0-9].*.xml", "junit.xml", "evals/test_a.py"),
    "inspect": ("inspect/recorded-*", "", "task.py"),
    "agentv": ("agentv/recorded-*", "", "capitals.eval.yaml"),
    "agentevals": ("../../golden/results.jsonl", "results.jsonl", "checks/a.toml"),
}
#: The folder of a suite, if it is not that of the format.
SUITES = {"promptfoo": "promptfoo/cases"}
#: What stands in place of any value of a JSON document, and of some bytes of any file.
VALUES: tuple[Any, ...] = (
    None,
    True,
    -1,
    1e308,
    10**30,
    "",
    "\x00",
    "a\nb",
    "x" * 5_000,
    [],
    {},
    [[]],
    {"a": {}},
)
BYTES = (b"", b"\x00", b"\xff", b"9" * 400, b'""')
CASES = 60

formats = pytest.mark.parametrize("name", FORMATS)


def entry(name: str) -> Runner:
    """An entry of `runners` for a format, with what it must have."""
    command = () if FORMATS[name].command else ("run", "{RESULTS}")
    rule = PassRule(scorer="match", at_least=0.5) if FORMATS[name].has_scores else None
    made = Runner(name=name, results=name, suites=("x",), command=command)
    return made.model_copy(update={"passes": rule})


def recorded(name: str, place: Path) -> tuple[Path, Suite]:
    """The folder of recorded results, and their suite in a checkout."""
    pattern, file, path = RECORDED[name]
    (found,) = DATA.glob(pattern)
    place = place.resolve()
    results, root = place / "results", place / "checkout"
    shutil.copytree(DATA / SUITES.get(name, name), root) if name != "agentevals" else root.mkdir()
    if file:
        results.mkdir()
        text = found.read_text("utf-8").replace("/checkout", str(root))
        (results / file).write_text(text, encoding="utf-8")
    else:
        shutil.copytree(found, results)
    suite = Suite().model_copy(
        update={"path": path, "root": root, "folder": (root / path).parent, "runner": entry(name)}
    )
    return results, suite


def use(name: str, results: Path, suite: Suite) -> Sequence[Row]:
    """The rows, after everything that is done with them."""
    known, fingerprint = FORMATS[name], Fingerprint(question="q", grading="g", agent="a")
    rows = known.read(results, suite)
    tests = rows_by_test(rows, 1)
    known.select([own[0] for own in tests.values()], suite)
    for test, own in tests.items():
        result = build_result(suite, test, own, 1, fingerprint)
        assert result is None or encode_row(result)
    return rows


def steps_in(value: Any, above: tuple[Any, ...] = ()) -> Iterator[tuple[Any, ...]]:
    """The steps to every value of a JSON document."""
    yield above
    inner = value.items() if isinstance(value, dict) else ()
    for key, item in enumerate(value) if isinstance(value, list) else inner:
        yield from steps_in(item, (*above, key))


def spoiled(content: bytes, suffix: str, chance: random.Random) -> bytes:
    """A file with another value or other bytes in one place."""
    if suffix not in (".json", ".jsonl") or chance.random() < 0.2:
        start = chance.randrange(len(content) + 1)
        return content[:start] + chance.choice(BYTES) + content[start + chance.randrange(200) :]
    lines = content.splitlines() if suffix == ".jsonl" else [content]
    number = chance.randrange(len(lines))
    holder = [json.loads(lines[number])]
    container: Any = holder
    steps = (0, *chance.choice(list(steps_in(holder[0]))))
    for step in steps[:-1]:
        container = container[step]
    container[steps[-1]] = copy.deepcopy(chance.choice(VALUES))
    lines[number] = json.dumps(holder[0]).encode()
    return b"\n".join(lines)


@formats
def test_format__describes_itself(name: str) -> None:
    known = FORMATS[name]
    assert known.name == name
    assert known.version
    assert not [*find_problems(entry(name))]
    assert name in (Runner.model_fields["results"].description or "")


@formats
def test_read__recorded_results_have_ids_and_both_outcomes(name: str, tmp_path: Path) -> None:
    results, suite = recorded(name, tmp_path)
    rows = use(name, results, suite)
    assert any(FORMATS[name].select([row], suite) for row in rows)
    assert all(row.id.isprintable() and row.id for row in rows)
    assert {row.passed for row in rows} == {True, False}


@formats
def test_read__an_empty_folder_has_no_rows(name: str, tmp_path: Path) -> None:
    """No row is an error of the suite as well."""
    _, suite = recorded(name, tmp_path)
    (tmp_path / "empty").mkdir()
    with suppress(ResultsError):
        assert not FORMATS[name].read((tmp_path / "empty").resolve(), suite)


@formats
@pytest.mark.parametrize("kind", ["fifo", "link", "folder"])
def test_read__what_is_no_file_is_refused(name: str, kind: str, tmp_path: Path) -> None:
    """Attack: a runner puts a link to a file of the action, or a FIFO without a writer, in place of
    its results."""
    results, suite = recorded(name, tmp_path)
    main = next(file for file in sorted(results.iterdir()) if file.is_file())
    content = main.read_bytes()
    main.unlink()
    if kind == "fifo":
        os.mkfifo(main)
    elif kind == "link":
        (tmp_path / "elsewhere").write_bytes(content)
        main.symlink_to(tmp_path / "elsewhere")
    else:
        main.mkdir()
    with pytest.raises((ResultsError, ValidationError)):
        FORMATS[name].read(results, suite)


@formats
def test_read__spoiled_results_are_read_or_refused(name: str, tmp_path: Path) -> None:
    results, suite = recorded(name, tmp_path)
    files = sorted(file for file in results.rglob("*") if file.is_file())
    chance = random.Random(name)
    for number in range(CASES):
        file = chance.choice(files)
        content = file.read_bytes()
        file.write_bytes(spoiled(content, file.suffix, chance))
        refused = ""
        try:
            use(name, results, suite)
        except (ResultsError, ValidationError) as error:
            refused = str(error) if isinstance(error, ResultsError) else invalid_json(error)
        assert len(refused) < 2_000, number
        assert "\n" not in refused, number
        file.write_bytes(content)
