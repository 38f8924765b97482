"""`selftest`: suites that run many times on one commit, by real processes."""

from pathlib import Path

import pytest

from agentevals_action.results.jsonl import read_results
from tests.support import command, results
from tests.support.repositories import Repository
from tests.support.trends import store

#: Answers by the number of the sample, so that what is flaky is known.
AGENT = """\
case "$1" in
  steady*) echo hello ;;
  torn) test "$2" = 1 && exit 9; echo hello ;;
  dead) exit 9 ;;
  wrong) echo sorry ;;
  *) test $(($2 % 2)) = 1 && echo sorry || echo hello ;;
esac
"""
TARGETS = """\
targets:
  - {name: default, provider: cli, command: [sh, agent.sh, "{EVAL_ID}", "{ATTEMPT}"]}
  - {name: fixed, provider: mock, responses: [{pattern: ".*", response: hello}]}
"""


def suite(*tests: str, target: str = "default") -> str:
    rows = (
        f"  - {{id: {name}, input: {name}, assert: [{{type: contains, value: hello}}]}}\n"
        for name in tests
    )
    return f"name: greeter\nexecution: {{target: {target}}}\ntests:\n" + "".join(rows)


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    folder = tmp_path / "work"
    (folder / ".agentv").mkdir(parents=True)
    (folder / "agent.sh").write_text(AGENT)
    (folder / ".agentv/targets.yaml").write_text(TARGETS)
    (folder / "EVAL.yaml").write_text(suite("steady", "flaky"))
    return folder


def test_selftest__shows_which_test_is_flaky_and_how_often_that_would_block(folder: Path) -> None:
    done = command.run(folder, "selftest", "--samples", "4")
    assert done.code == 0, done.err
    rows = [line.split() for line in done.out.splitlines()]
    assert ["EVAL.yaml", "flaky", "2/4", "0", "50%", "33%"] in rows
    assert ["EVAL.yaml", "steady", "4/4", "0", "0%", "0%"] in rows
    assert ["all", "together", "6/8", "0", "25%", "33%"] in rows
    assert "EVAL.yaml can find: 2 tests, 1 sample: no drop of the pass rate from 0.75" in done.out
    stored = read_results(folder / "agentevals-report/selftest/results.jsonl")
    assert [len(result.samples) for result in stored] == [4, 4]


def test_selftest__a_test_that_never_passes_cannot_fall(folder: Path) -> None:
    (folder / "EVAL.yaml").write_text(suite("steady", "wrong"))
    done = command.run(folder, "selftest", "--samples", "2")
    assert "can find: 1 test, 1 sample: pass rate 1 → 0.15, in 80 % of the cases" in done.out


def test_selftest__what_always_answers_the_same_is_not_run(folder: Path) -> None:
    (folder / "EVAL.yaml").write_text(suite("one", "two", target="fixed"))
    done = command.run(folder, "selftest")
    assert done.code == 0, done.err
    assert "2 tests did not run: the result is always the same." in done.out
    assert (folder / "agentevals-report/selftest/results.jsonl").read_text() == ""


def test_selftest__an_error_is_no_sample_and_what_has_none_is_exit_code_3(folder: Path) -> None:
    (folder / "EVAL.yaml").write_text(suite("steady", "torn"))
    torn = command.run(folder, "selftest", "--samples", "3")
    assert torn.code == 0, torn.err
    assert (
        "EVAL.yaml torn: 1 of 3 samples could not be scored: the command ended with exit code 9"
        in torn.out
    )
    (folder / "EVAL.yaml").write_text(suite("steady", "dead"))
    dead = command.run(folder, "selftest", "--samples", "3")
    assert dead.code == 3
    assert "EVAL.yaml dead: 3 of 3" in dead.out


def test_selftest__problems_and_warnings_are_shown_and_no_pass(folder: Path) -> None:
    unknown = suite("steady").replace("name: greeter", "name: greeter\nmy_own_field: x")
    (folder / "EVAL.yaml").write_text(unknown)
    block = "mkdir -p agentevals-report/selftest/run.json/x"
    (folder / "agent.sh").write_text(f"{block}\n{AGENT}")

    done = command.run(folder, "selftest", "--samples", "2")

    assert done.code == 3
    assert "warning: EVAL.yaml:2:1: the field `my_own_field`" in done.err
    assert "run.json" in done.err


def test_selftest__a_tree_that_cannot_be_prepared_is_no_steady_suite(folder: Path) -> None:
    done = command.run(
        folder, "selftest", "--samples", "2", "--prepare", "echo no disk >&2; exit 1"
    )
    assert done.code == 3
    assert "no disk" in done.out


def test_selftest__lists_gates_and_tests_that_show_nothing_in_the_stored_runs(
    folder: Path, tmp_path: Path
) -> None:
    (folder / ".gitignore").write_text("/agentevals-report/\n")
    files = {
        path.relative_to(folder).as_posix(): path.read_text()
        for path in folder.rglob("*")
        if path.is_file()
    }
    origin = Repository.create(tmp_path / "origin", files)
    rows = (
        results.result("steady", "fail", gates=("strict",), failed=("strict",), path="EVAL.yaml"),
        results.result("flaky", None, path="EVAL.yaml"),
        results.result("other", None, path="other/EVAL.yaml"),
    )
    store(origin, 5, *rows)
    origin.git("clone", "--quiet", origin.path.as_uri(), str(tmp_path / "clone"))

    done = command.run(tmp_path / "clone", "selftest", "--samples", "2")

    assert done.code == 0, done.err
    assert "Gates that never passed in the last 50 runs." in done.out
    assert "  steady: strict (EVAL.yaml, 5 runs)\n" in done.out
    assert "  flaky (EVAL.yaml, 5 runs)\n" in done.out
    assert "other" not in done.out
    assert "never failed" not in done.out


def test_selftest__where_the_stored_runs_cannot_be_read_says_so_and_counts(folder: Path) -> None:
    Repository.create(folder, {".gitignore": "/agentevals-report/\n"})
    done = command.run(folder, "selftest", "--samples", "2")
    assert done.code == 0, done.err
    assert "warning: the stored runs are not read: " in done.err


def test_selftest__names_each_judge_without_a_calibration_once(folder: Path) -> None:
    judged = "{type: llm_judge, name: kind, prompt: 'Is it kind? {{output}}'}"
    with_judge = suite("steady", "steadier").replace("assert: [", f"assert: [{judged}, ")
    (folder / "EVAL.yaml").write_text(with_judge)
    reply = (
        """{name: judge, provider: mock, responses: [{pattern: ".*", response: '{"score": 1}'}]}"""
    )
    targets = TARGETS.replace('"{ATTEMPT}"]}', '"{ATTEMPT}"], judge_target: judge}')
    (folder / ".agentv/targets.yaml").write_text(f"{targets}  - {reply}\n")
    done = command.run(folder, "selftest", "--samples", "2")
    assert "Judges without a calibration." in done.out, done.err
    assert done.out.count("  EVAL.yaml: kind\n") == 1
