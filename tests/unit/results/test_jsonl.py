"""Results files: written as tests finish, read back, AgentV's rows."""

import json
from contextlib import closing
from pathlib import Path

import pytest

from agentevals_action.errors import InvalidInput, OutputError
from agentevals_action.model.result import EvaluatorResult
from agentevals_action.results.jsonl import (
    ResultsWriter,
    encode_row,
    read_results,
)
from tests.conftest import Golden
from tests.support import results, reviews


def ids(path: Path) -> list[str]:
    return [json.loads(line)["evalId"] for line in path.read_text(encoding="utf-8").splitlines()]


def test_writer__rows_are_there_at_once_and_in_order_at_the_end(tmp_path: Path) -> None:
    path = tmp_path / "new" / "results.jsonl"
    writer = ResultsWriter(path, {})
    for index in (2, 0, 3, 1):
        writer.add(index, results.result(f"t{index}", answer="ünïcode\n漢"))
        assert ids(path)[-1] == f"t{index}"
    writer.close()
    assert ids(path) == ["t0", "t1", "t2", "t3"]
    assert [one.eval_id for one in read_results(path)] == ["t0", "t1", "t2", "t3"]
    assert list(path.parent.iterdir()) == [path]


def test_row__has_the_specification_s_fields_and_nulls(tmp_path: Path) -> None:
    path = tmp_path / "r.jsonl"
    with closing(ResultsWriter(path, {})) as writer:
        writer.add(0, results.result("a", None))
    row = json.loads(path.read_text())
    assert {
        "timestamp",
        "evalId",
        "dataset",
        "conversationId",
        "score",
        "verdict",
        "hits",
        "misses",
        "candidateAnswer",
        "target",
    } <= row.keys()
    assert {
        "traceSummary",
        "evaluatorResults",
        "evalPath",
        "line",
        "gatesFailed",
        "samples",
        "error",
        "fingerprint",
    } <= row.keys()
    assert row["score"] is None
    assert row["verdict"] is None
    assert row["error"] == {"kind": "target", "message": "connection refused"}


def test_row__whatever_an_agent_or_judge_said_is_stored(tmp_path: Path) -> None:
    path = tmp_path / "r.jsonl"
    judged = EvaluatorResult(
        name="q",
        type="t",
        score=1.0,
        details={
            "\ud800": ["\ud800", {1, 2}, float("nan"), {"a": Path("/x")}],
            "n": float("inf"),
            "ok": True,
        },
    )
    with closing(ResultsWriter(path, {})) as writer:
        writer.add(
            0, results.result("a", answer="lone \ud800 surrogate", evaluator_results=(judged,))
        )
    (read,) = read_results(path)
    assert read.candidate_answer == "lone ? surrogate"
    assert read.evaluator_results[0].details == {
        "?": ["?", [1, 2], None, {"a": "/x"}],
        "n": None,
        "ok": True,
    }


def test_read__gives_back_what_was_written(tmp_path: Path) -> None:
    path = tmp_path / "r.jsonl"
    result = results.result(
        "a",
        "fail",
        gates=("safe",),
        failed=("safe",),
        hits=("h",),
        misses=("m\u2028\x1b",),
        cost_usd=0.1,
    )
    with closing(ResultsWriter(path, {})) as writer:
        writer.add(0, result)
    assert list(read_results(path)) == [result]


DEEP = b"[" * 20_000 + b"]" * 20_000


@pytest.mark.parametrize(
    "broken",
    [
        *(
            b"{",
            b"[]",
            b'{"evalId": "x"}',
            b"nonsense",
            b"\xff\xff",
            b'{"evalId": 1, "score": NaN}',
        ),
        *(b'{"x": %b}' % DEEP, b'{"timestamp": 1, "x": %b}' % DEEP),
    ],
    ids=[
        "begun",
        "list",
        "fields missing",
        "no JSON",
        "no text",
        "no number",
        "deep",
        "wrong and deep",
    ],
)
def test_read__a_broken_line_states_where(tmp_path: Path, broken: bytes) -> None:
    path = tmp_path / "r.jsonl"
    good = encode_row(results.result("a"))
    path.write_bytes(good + b"\n\n" + broken + b"\n" + good + b"\n")
    with pytest.raises(InvalidInput, match=r"r\.jsonl:3: not a valid result"):
        list(read_results(path))
    path.write_bytes(good + b"\n" + broken + b"\n")
    with pytest.raises(InvalidInput, match=r"r\.jsonl:2: not a valid result"):
        list(read_results(path))


def test_read__a_missing_file_is_stated(tmp_path: Path) -> None:
    with pytest.raises(InvalidInput, match="cannot be read"):
        list(read_results(tmp_path / "none.jsonl"))


def test_writer__sorts_the_rows_that_are_kept_and_added(tmp_path: Path) -> None:
    path = tmp_path / "r.jsonl"
    with closing(ResultsWriter(path, {})) as writer:
        for index, name in ((4, "c"), (0, "a"), (2, "early"), (2, "b\udc00")):
            writer.add(index, results.result(name))
    assert ids(path) == ["a", "b?", "c"]
    with closing(ResultsWriter(path, {5: results.result("a")})) as later:
        later.add(1, results.result("new"))
    assert ids(path) == ["new", "a"]


def test_writer__sorts_its_own_rows_though_others_replaced_the_file(tmp_path: Path) -> None:
    path = tmp_path / "r.jsonl"
    with closing(ResultsWriter(path, {})) as writer:
        for index in (1, 0):
            writer.add(index, results.result(f"t{index}"))
        path.unlink()
        path.write_text("nothing of ours\n")
    assert ids(path) == ["t0", "t1"]


def test_writer__what_cannot_be_written_is_in_a_sentence(tmp_path: Path) -> None:
    (tmp_path / "file").write_text("")
    with pytest.raises(OutputError, match=r"r\.jsonl cannot be written: Not a directory") as caught:
        ResultsWriter(tmp_path / "file" / "below" / "r.jsonl", {})
    assert caught.value.exit_code == 3
    assert "free space" in caught.value.hint


def test_rows__as_they_are_stored(golden: Golden) -> None:
    review = reviews.regression_and_gate()
    rows = [test.head for suite in review.suites for test in suite.tests if test.head]
    golden.check("results.jsonl", "".join(f"{encode_row(row).decode()}\n" for row in rows))
