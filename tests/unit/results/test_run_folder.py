"""The files of a run are read as they were written, or not at all."""

from collections.abc import Callable
from datetime import date
from pathlib import Path

import pytest

from agentevals_action.errors import InvalidInput
from agentevals_action.model.baseline import BaselineInfo, BaselineOrigin, IncompleteSource
from agentevals_action.model.diagnostic import Diagnostic, Location
from agentevals_action.model.edits import Edit, EditKind
from agentevals_action.model.quarantine import Acceptance, Quarantine, Quarantines
from agentevals_action.model.run import CommentTemplate, Policy, Run, RunSuite, Selection, Shard
from agentevals_action.results.run_folder import RUN_FILES, RunResults, read_folder
from tests.support import results

AT = Location("evals/EVAL.yaml", 3, 5)
SUITE = RunSuite(
    Selection("evals/EVAL.yaml", ("changed: agent.py",), ("agent.py",), "old/EVAL.yaml"),
    "greeter",
    ("a", "b"),
    origin=BaselineOrigin("rerun", "b" * 40, time="2026-01-01"),
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
    baseline=BaselineInfo("auto", wanted=True, incomplete=(IncompleteSource("branch", "none"),)),
    invalid=(Diagnostic(AT, "wrong", "fix it"),),
    quarantines=Quarantines(
        (Quarantine(tests=("a",), owner="ada", reason="flaky", expires=date(2026, 3, 1)),), ()
    ),
    acceptance=Acceptance("ada", "accept"),
    template=CommentTemplate("comment.md.j2", "{{ x }}"),
)
HEAD = results.result("a", "fail", unconfirmed="no line", rescored=results.result("a"))


def written(folder: Path, run: RunResults) -> Path:
    for name in RUN_FILES:
        (folder / name).write_bytes(b"".join(run.content(name)))
    return folder


def test_folder__is_read_as_it_was_written(tmp_path: Path) -> None:
    run = RunResults(RUN, (HEAD,), (results.result("a"),))
    assert read_folder(written(tmp_path, run)) == run


def test_folder__of_a_path_that_is_not_utf8_can_be_read(tmp_path: Path) -> None:
    run = RunResults(RUN.model_copy(update={"gone_suites": ("\udcff.yaml",), "rows": (0, 0)}))
    found = read_folder(written(tmp_path, run)).run
    assert found == run.run.model_copy(update={"gone_suites": ("?.yaml",)})


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
    path = written(tmp_path, RunResults(RUN, (HEAD,), (results.result("a"),))) / name
    path.write_bytes(damage(path.read_bytes()))
    with pytest.raises(InvalidInput, match=reason):
        read_folder(tmp_path)


def test_folder__without_a_run_is_refused(tmp_path: Path) -> None:
    with pytest.raises(InvalidInput, match="No such file or directory"):
        read_folder(tmp_path)
