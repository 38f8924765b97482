"""`compare` on two files of results."""

from collections.abc import Sequence
from pathlib import Path

from agentevals_action.model.result import TestResult
from agentevals_action.results.jsonl import encode_row
from tests.support import command
from tests.support.results import result


def write(path: Path, *rows: TestResult) -> None:
    path.write_bytes(b"".join(encode_row(row) + b"\n" for row in rows))


def compare(folder: Path) -> tuple[int, Sequence[str]]:
    done = command.run(folder, "compare", "base.jsonl", "head.jsonl")
    assert "Traceback" not in done.err, done.err
    return done.code, (done.out + done.err).splitlines()


def test_compare__each_test_and_the_outcome(tmp_path: Path) -> None:
    write(tmp_path / "base.jsonl", result("one"), result("two", "fail"), result("gone"))
    write(tmp_path / "head.jsonl", result("one", "borderline"), result("two"), result("new"))

    code, lines = compare(tmp_path)

    assert code == 1
    assert lines[:4] == [
        "pass → borderline evals/EVAL.yaml:3 one  regressed; score 0.70",
        "fail → pass evals/EVAL.yaml:3 two  improved",
        "pass        evals/EVAL.yaml:3 new  new",
        "pass → removed evals/EVAL.yaml:3 gone  removed",
    ]
    assert "failed: 1 test regressed" in lines


def test_compare__a_number_that_is_not_json_is_refused(tmp_path: Path) -> None:
    write(tmp_path / "base.jsonl", result("one"))
    row = encode_row(result("one")).replace(b'"score":1.0', b'"score":NaN')
    (tmp_path / "head.jsonl").write_bytes(row + b"\n")

    code, lines = compare(tmp_path)

    assert code == 2
    assert lines[0].startswith("head.jsonl:1: not a valid result: `score`")


def test_compare__files_without_a_common_test_are_refused(tmp_path: Path) -> None:
    write(tmp_path / "base.jsonl", result("one"))
    write(tmp_path / "head.jsonl", result("one", path="more/EVAL.yaml"))

    code, lines = compare(tmp_path)

    assert code == 2
    assert any("no test in common" in line for line in lines)


def test_compare__rows_of_two_targets_are_refused(tmp_path: Path) -> None:
    write(tmp_path / "base.jsonl", result("one"), result("one", "fail", target="other"))

    code, lines = compare(tmp_path)

    assert code == 2
    assert "contains the test `one` of `evals/EVAL.yaml` twice" in lines[0]
