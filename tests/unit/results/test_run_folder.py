"""The files of a run are read as they were written, or not at all."""

from collections.abc import Callable
from dataclasses import replace
from datetime import date
from pathlib import Path
from typing import Any

import pytest

from agentevals_action.errors import InvalidInput
from agentevals_action.model.baseline import (
    BaselineInfo,
    BaselineOrigin,
    BaseSuite,
    IncompleteSource,
)
from agentevals_action.model.diagnostic import Diagnostic, Location
from agentevals_action.model.quarantine import Acceptance, Quarantine, Quarantines
from agentevals_action.model.result import TestResult
from agentevals_action.model.run import (
    CommentTemplate,
    Edit,
    EditKind,
    Level,
    Note,
    Policy,
    Run,
    RunSuite,
    Selection,
    Shard,
)
from agentevals_action.results.build import extended
from agentevals_action.results.run_folder import RUN_FILES, RunResults, read_folder
from tests.support import results

AT = Location("evals/EVAL.yaml", 3, 5)
SUITE = RunSuite(
    Selection("evals/EVAL.yaml", ("changed: agent.py",), ("agent.py",), "old/EVAL.yaml"),
    "greeter",
    ("a", "b"),
    base=BaseSuite(BaselineOrigin("rerun", "b" * 40, time="2026-01-01")),
    edits=(Edit(EditKind.GATE, "polite", "changed", AT, ("a",)),),
    question_files={"a": ("prompt.md",)},
)
RUN = Run(
    head_sha="a" * 40,
    base_sha="b" * 40,
    shard=Shard(1, 2),
    rows=(1, 1),
    policy=Policy(frozenset({"gates"}), 0.5, asks_person=True),
    suites=(SUITE,),
    baseline=BaselineInfo("auto", wanted=True, tried=(IncompleteSource("branch", "none"),)),
    notes=(Note(Level.ERROR, Diagnostic(AT, "wrong", "fix it")), Note(Level.NOTICE, "cut")),
    quarantines=Quarantines(
        (Quarantine(tests=("a",), owner="ada", reason="flaky", expires=date(2026, 3, 1)),), ()
    ),
    acceptance=Acceptance("ada", "accept"),
    template=CommentTemplate("comment.md.j2", "{{ x }}"),
)


def scored(row: TestResult, score: float, **facts: Any) -> TestResult:
    """The row with an evaluator that its samples were scored by."""
    found = (results.evaluated(score=score, **facts),)
    samples = tuple(replace(sample, evaluator_results=found) for sample in row.samples)
    return replace(row, samples=samples)


PASSED = scored(results.result("a"), 1.0)
FAILED = scored(results.result("a", "fail"), 0.2)
HEAD = replace(FAILED, unconfirmed="no line", by_base=PASSED)


def written(folder: Path, run: RunResults) -> Path:
    for name in RUN_FILES:
        (folder / name).write_bytes(b"".join(run.content(name)))
    return folder


def test_folder__is_read_as_it_was_written(tmp_path: Path) -> None:
    run = RunResults(RUN, (HEAD,), (PASSED,))
    assert read_folder(written(tmp_path, run)) == run


def test_folder__of_a_path_that_is_not_utf8_can_be_read(tmp_path: Path) -> None:
    run = RunResults(RUN.model_copy(update={"gone_suites": ("\udcff.yaml",), "rows": (0, 0)}))
    found = read_folder(written(tmp_path, run)).run
    assert found == run.run.model_copy(update={"gone_suites": ("?.yaml",)})


def test_folder__stored_samples_of_base_have_no_evaluators(tmp_path: Path) -> None:
    run = RunResults(RUN, (extended(FAILED, PASSED.samples * 3),), (results.result("a"),))
    assert read_folder(written(tmp_path, run)) == run


def test_folder__a_row_of_fresh_samples_alone_is_refused(tmp_path: Path) -> None:
    row = replace(PASSED, samples=tuple(replace(each, role="fresh") for each in PASSED.samples))
    with pytest.raises(InvalidInput, match="row 1: all its samples are of a confirmation"):
        read_folder(written(tmp_path, RunResults(RUN, (row,), (PASSED,))))


@pytest.mark.parametrize(
    ("name", "damage", "reason"),
    [
        ("run.json", lambda _: b"", "`run.json`: "),
        ("run.json", lambda text: text.replace(b'"gates"', b"7"), "`run.json`: "),
        ("results.jsonl", lambda _: b"", "rows are missing"),
        ("results.jsonl", lambda text: text * 2, "`results.jsonl` has a test twice"),
        ("base.jsonl", lambda text: text[:-20], "`base.jsonl`, line 1: "),
    ],
)
def test_folder__that_is_damaged_is_refused(
    tmp_path: Path, name: str, damage: Callable[[bytes], bytes], reason: str
) -> None:
    path = written(tmp_path, RunResults(RUN, (HEAD,), (PASSED,))) / name
    path.write_bytes(damage(path.read_bytes()))
    with pytest.raises(InvalidInput, match=reason):
        read_folder(tmp_path)


def test_folder__without_a_run_is_refused(tmp_path: Path) -> None:
    with pytest.raises(InvalidInput, match="No such file or directory"):
        read_folder(tmp_path)
