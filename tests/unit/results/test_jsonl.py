"""Results files: written as tests finish, and read back."""

import json
import os
from contextlib import closing
from dataclasses import replace
from pathlib import Path

import pytest

from agentevals_action.errors import InvalidInput, OutputError
from agentevals_action.model.result import EvaluatorResult
from agentevals_action.results.jsonl import ResultsWriter, encode_row, read_results
from tests.conftest import Golden
from tests.support import results, reviews
from tests.support.schemas import closed_validator


def ids(path: Path) -> list[str]:
    return [json.loads(line)["evalId"] for line in path.read_text(encoding="utf-8").splitlines()]


def test_writer__rows_are_there_at_once_after_those_that_are_kept(tmp_path: Path) -> None:
    path = tmp_path / "new" / "results.jsonl"
    with closing(ResultsWriter(path)) as writer:
        for name in ("b", "a"):
            writer.add(results.result(name, answer="ünïcode\n漢"))
            assert ids(path)[-1] == name
    kept = list(read_results(path))
    with closing(ResultsWriter(path, kept[:1])) as writer:
        writer.add(results.result("c\udc00"))
    assert ids(path) == ["b", "c?"]
    assert list(path.parent.iterdir()) == [path]


def test_writer__never_opens_a_file_of_another_program(tmp_path: Path) -> None:
    path = tmp_path / "r.jsonl"
    os.mkfifo(path)
    with closing(ResultsWriter(path)) as writer:
        writer.add(results.result("a"))
    assert ids(path) == ["a"]


def test_row__of_an_error_has_nulls() -> None:
    row = json.loads(encode_row(results.result("a", None)))
    assert (row["score"], row["verdict"]) == (None, None)
    assert row["error"] == {"kind": "target", "message": "connection refused"}


def test_row__any_text_or_details_can_be_stored(tmp_path: Path) -> None:
    path = tmp_path / "r.jsonl"
    details = {
        "\ud800": ["\ud800", {1, 2}, float("nan"), {"a": Path("/x")}],
        "n": float("inf"),
        "ok": True,
    }
    judged = EvaluatorResult(name="q", type="t", score=1.0, details=details)
    result = results.result("a", answer="lone \ud800 surrogate", evaluator_results=(judged,))
    path.write_bytes(encode_row(result))
    (read,) = read_results(path)
    assert read.candidate_answer == "lone ? surrogate"
    assert read.evaluator_results[0].details == {
        "?": ["?", [1, 2], None, {"a": "/x"}],
        "n": None,
        "ok": True,
    }


def test_read__gives_back_what_was_written(tmp_path: Path) -> None:
    path = tmp_path / "r.jsonl"
    result = results.result("a", "fail", failed=("safe",), misses=("m\u2028\x1b",), cost_usd=0.1)
    path.write_bytes(encode_row(result))
    assert list(read_results(path)) == [result]


DEEP = b"[" * 20_000 + b"]" * 20_000
BROKEN = {
    "begun": b"{",
    "list": b"[]",
    "fields missing": b'{"evalId": "x"}',
    "no JSON": b"nonsense",
    "no text": b"\xff\xff",
    "no number": b'{"evalId": 1, "score": NaN}',
    "deep": b'{"x": %b}' % DEEP,
    "wrong and deep": b'{"timestamp": 1, "x": %b}' % DEEP,
}


@pytest.mark.parametrize("name", BROKEN)
def test_read__a_broken_line_states_where(tmp_path: Path, name: str) -> None:
    path, good = tmp_path / "r.jsonl", encode_row(results.result("a"))
    for before, after in ((b"\n\n", b"\n" + good + b"\n"), (b"\n", b"\n")):
        path.write_bytes(good + before + BROKEN[name] + after)
        line = 1 + before.count(b"\n")
        with pytest.raises(InvalidInput, match=rf"r\.jsonl:{line}: not a valid result"):
            list(read_results(path))


def test_read__a_missing_file_is_stated(tmp_path: Path) -> None:
    with pytest.raises(InvalidInput, match="cannot be read"):
        list(read_results(tmp_path / "none.jsonl"))


def test_writer__what_cannot_be_written_is_in_a_sentence(tmp_path: Path) -> None:
    (tmp_path / "file").write_text("")
    with pytest.raises(OutputError, match=r"r\.jsonl cannot be written: Not a directory") as caught:
        ResultsWriter(tmp_path / "file" / "below" / "r.jsonl")
    assert caught.value.exit_code == 3
    assert "free space" in caught.value.hint


def test_rows__as_they_are_stored(golden: Golden) -> None:
    review = reviews.regression_and_gate()
    rows = [test.head for suite in review.suites for test in suite.tests if test.head]
    every_field = replace(rows[0], evaluator_results=(results.evaluated(),), by_head=rows[1])
    for row in (*rows, every_field):
        closed_validator("results").validate(json.loads(encode_row(row)))
    golden.check("results.jsonl", "".join(f"{encode_row(row).decode()}\n" for row in rows))
