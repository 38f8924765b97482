"""Every format of the registry: what it reads of recorded results is what the core needs, and
spoiled results are read or refused in one sentence, never an error of ours."""

import copy
import json
import os
import random
from collections.abc import Iterator, Sequence
from contextlib import suppress
from pathlib import Path
from typing import Any

import pytest
from pydantic import ValidationError

from agentevals_action.model.result import Fingerprint
from agentevals_action.model.runner import Runner
from agentevals_action.model.suite import Suite
from agentevals_action.results.jsonl import encode_row
from agentevals_action.runners.commands import find_problems
from agentevals_action.runners.formats import FORMATS
from agentevals_action.runners.formats.base import ResultsError, Row
from agentevals_action.runners.rows import build_result, rows_by_test
from agentevals_action.validation.field_errors import invalid_json
from tests.support.runners import recorded, runner

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


def use(name: str, results: Path, suite: Suite) -> Sequence[Row]:
    """The rows, after everything that is done with them."""
    known, fingerprint = FORMATS[name](), Fingerprint(question="q", grading="g", agent="a")
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
    known = FORMATS[name]()
    assert known.name == name
    assert known.version
    assert not [*find_problems(runner(name))]
    assert name in (Runner.model_fields["results"].description or "")


@formats
def test_read__recorded_results_have_ids_and_both_outcomes(name: str, tmp_path: Path) -> None:
    results, suite = recorded(name, tmp_path)
    rows = use(name, results, suite)
    assert any(FORMATS[name]().select([row], suite) for row in rows)
    assert all(row.id.isprintable() and row.id for row in rows)
    assert {row.passed for row in rows} == {True, False}


@formats
def test_read__an_empty_folder_has_no_rows(name: str, tmp_path: Path) -> None:
    """No row is an error of the suite as well."""
    _, suite = recorded(name, tmp_path)
    (tmp_path / "empty").mkdir()
    with suppress(ResultsError):
        assert not FORMATS[name]().read((tmp_path / "empty").resolve(), suite)


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
        FORMATS[name]().read(results, suite)


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
