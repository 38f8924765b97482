"""The runner of one suite: what it gets, how it ends, and how often it starts. A script writes the
results as `results: agentevals` has them."""

import asyncio
import json
import os
import sys
from collections.abc import AsyncIterator, Awaitable, Callable, Mapping, Sequence
from contextlib import asynccontextmanager
from pathlib import Path
from typing import Any, TypeVar

import pytest

from agentevals_action.errors import AttemptError
from agentevals_action.execution.engine import Engine, assemble_engine
from agentevals_action.execution.executor import SuiteExecutor
from agentevals_action.execution.fingerprint import Fingerprints
from agentevals_action.execution.preparation import Preparation
from agentevals_action.model.result import SampleResult, TestResult
from agentevals_action.model.runner import Runner
from agentevals_action.model.suite import Suite
from agentevals_action.runners.executor import Executors
from agentevals_action.settings import Settings
from agentevals_action.system.child_environment import ChildContext
from agentevals_action.system.redaction import Redactor, redacting
from tests.support import suites
from tests.support.processes import gone
from tests.unit.execution.test_preparation import Log

T = TypeVar("T")

#: Writes a row for each word of its suite, or of the selection, and a line to the file `starts`:
#: the words that ran, and the number of samples.
SCRIPT = """\
import json, os, pathlib, sys
suite, results, *others = sys.argv[1:]
samples, selection = [*others, *["1", ""][len(others) :]]
names = pathlib.Path(selection or suite).read_text().split()
with open("starts", "a") as file:
    print(*names, samples, file=file)
with open(results + "/results.jsonl", "w") as file:
    for name in names * int(samples):
        cost = {"costUsd": 0.5} if "cost" in name else {}
        row = {"evalId": name, "verdict": "fail" if "bad" in name else "pass"}
        print(json.dumps({**row, "traceSummary": cost}), file=file)
"""
COMMAND = [sys.executable, "run.py", "{SUITE}", "{RESULTS}"]


@asynccontextmanager
async def engine_in(
    root: Path, settings: Settings, environ: Mapping[str, str], prepare: str | None = None
) -> AsyncIterator[Engine]:
    children = ChildContext.from_environ({**environ, "PATH": os.environ["PATH"]}, settings.env)
    preparation = Preparation(None, prepare, root, children, Log().section)
    async with assemble_engine(
        settings,
        root,
        (),
        Fingerprints(),
        preparation,
        cache=None,
        permissions=None,
    ) as engine:
        yield engine


def with_executor(
    root: Path,
    work: Callable[[SuiteExecutor, Engine], Awaitable[T]],
    *,
    tests: str = "a b",
    script: str = SCRIPT,
    environ: Mapping[str, str] | None = None,
    prepare: str | None = None,
    inputs: Mapping[str, Any] | None = None,
    **fields: Any,
) -> T:
    """What the work gives with the executor of a suite with these words as tests."""
    suites.write(root, {"evals/suite.txt": tests, "run.py": script})
    entry = {"name": "ours", "results": "agentevals", "suites": ["*"], "command": COMMAND}
    runner = Runner.model_validate({**entry, **fields})
    suite = Suite(
        name="suite", path="evals/suite.txt", root=root, folder=root / "evals", runner=runner
    )
    settings = Settings.model_validate(inputs or {})

    async def run() -> T:
        async with engine_in(root, settings, environ or {}, prepare) as engine:
            return await work(Executors(engine).of(suite), engine)

    return asyncio.run(run())


def results(root: Path, **options: Any) -> Mapping[str, TestResult]:
    async def run(executor: SuiteExecutor, _engine: Engine) -> Sequence[TestResult]:
        found = await executor.run(lambda _event: None)
        if found.error:
            raise found.error
        return found.rows

    return {row.eval_id: row for row in with_executor(root, run, **options)}


def error(root: Path, **options: Any) -> AttemptError:
    with pytest.raises(AttemptError) as caught:
        results(root, **options)
    return caught.value


def starts(root: Path) -> list[str]:
    return (root / "starts").read_text().splitlines()


def test_run__rows_are_results(tmp_path: Path) -> None:
    found = results(tmp_path, tests="a bad", required=["bad"])
    assert {name: row.verdict for name, row in found.items()} == {"a": "pass", "bad": "fail"}
    assert found["bad"].gates_failed == ("ours",)
    assert (found["a"].eval_path, found["a"].path) == ("evals/suite.txt", "evals/suite.txt")


@pytest.mark.parametrize(("words", "expected"), [([], ["a b 1"] * 3), (["{SAMPLES}"], ["a b 3"])])
def test_run__it_starts_once_or_for_each_sample(
    tmp_path: Path, words: list[str], expected: list[str]
) -> None:
    found = results(tmp_path, inputs={"samples": "3"}, command=[*COMMAND, *words])
    assert (starts(tmp_path), len(found["a"].samples)) == (expected, 3)


ENVIRONMENT = """\
import json, os, sys
row = {"evalId": "t", "verdict": "pass", "candidateAnswer": " ".join(sorted(os.environ))}
open(sys.argv[2] + "/results.jsonl", "w").write(json.dumps(row))
"""


def test_run__it_sees_the_variables_that_its_entry_names(tmp_path: Path) -> None:
    environ = {"MINE": "1", "OTHER": "2", "SECRET_TOKEN": "3", "INPUT_X": "4"}
    inputs = {"env": "MINE, OTHER, PATH"}
    found = results(tmp_path, script=ENVIRONMENT, environ=environ, env=["MINE"], inputs=inputs)
    names = set(found["t"].candidate_answer.split())
    assert names & {*environ, "PATH"} == {"MINE", "PATH"}


@pytest.mark.parametrize(("passed_on", "value"), [("", "1"), ("MINE", "")])
def test_run__a_variable_that_is_not_passed_on_is_an_error(
    tmp_path: Path, passed_on: str, value: str
) -> None:
    found = error(tmp_path, env=["MINE"], environ={"MINE": value}, inputs={"env": passed_on})
    assert found.sentence == (
        "the runner `ours` needs MINE, which is not passed on; name it in the input `env`, and "
        "give it a value in the job's `env`"
    )


CONTENT = "import sys; open(sys.argv[2] + '/results.jsonl', 'w').write({content!r})"


@pytest.mark.parametrize(
    ("script", "problem"),
    [
        ("import sys; sys.exit('no key')", "`ours` ended with exit code 1: no key"),
        ("import os; os.kill(os.getpid(), 9)", "`ours` was ended by signal 9"),
        ("print('nothing to do')", "`ours`: it wrote no results.jsonl (No such file or directory)"),
        (CONTENT.format(content=""), "`ours`: it ran no test"),
        (
            CONTENT.format(content='{"evalId": "a", "verdict": "pass"}\n{"eva'),
            "`ours`: line 2 of its r",
        ),
        (
            "import os, sys; os.symlink('/etc/hostname', sys.argv[2] + '/results.jsonl')",
            "`ours`: it wrote no results.jsonl (a program replaced it, or a folder above it, by",
        ),
        (
            "import os, sys; os.mkfifo(sys.argv[2] + '/results.jsonl')",
            "`ours`: it wrote no results.jsonl (it is not a regular file",
        ),
        (
            "import os, sys; os.truncate(os.open(sys.argv[2] + '/results.jsonl', 66), 50 << 20)",
            "`ours`: its results.jsonl is larger than 32 MiB",
        ),
    ],
)
def test_run__without_complete_results_it_is_an_error(
    tmp_path: Path, script: str, problem: str
) -> None:
    found = error(tmp_path, script=script)
    assert (found.kind, str(found)[: len(problem)]) == ("runner", problem)


JUNIT = """\
import sys
cases = '<testcase name="a"/><testcase name="b"><skipped/></testcase>{case}'
open(sys.argv[2] + "/junit.xml", "w").write(f"<testsuite>{{cases}}</testsuite>")
sys.exit("coverage of 70 % is under 80 %")
"""


def test_run__an_exit_code_for_failed_tests_without_one_is_an_error(tmp_path: Path) -> None:
    """A threshold of coverage, or a hook that ends the session as failed, is in no test."""
    found = error(tmp_path, script=JUNIT.format(case=""), results="junit", command=COMMAND)
    assert found.sentence.startswith(
        "`ours` ended with exit code 1, and no test that it reports failed: coverage of 70 % is "
        "under 80 %; see in its output what failed"
    )
    case = '<testcase name="c"><failure message="no"/></testcase>'
    rows = results(tmp_path, script=JUNIT.format(case=case), results="junit", command=COMMAND)
    assert {name: row.verdict for name, row in rows.items()} == {"a": "pass", "c": "fail"}


@pytest.mark.parametrize(("name", "is_absolute"), [("agentevals", False), ("promptfoo", True)])
def test_run__the_path_of_a_suite_is_as_its_format_wants_it(
    tmp_path: Path, name: str, is_absolute: bool
) -> None:
    root = tmp_path.resolve()
    script = "import sys; print(sys.argv[1]); sys.exit(9)"
    found = error(root, script=script, results=name, command=COMMAND)
    path = root / "evals/suite.txt" if is_absolute else "evals/suite.txt"
    assert str(found) == f"`ours` ended with exit code 9: {path}"


def test_run__a_suite_with_nothing_to_score_says_how_to_exclude_it(tmp_path: Path) -> None:
    found = error(tmp_path, script=CONTENT.format(content='{"evalId": "a", "skipped": "no key"}'))
    assert found.sentence == (
        "`ours` scored no test: no key; exclude it (`!evals/suite.txt` in `suites`) if it has "
        "nothing to score"
    )


def test_run__the_reason_that_its_results_give_has_no_secret(tmp_path: Path) -> None:
    """The runner has the keys, and its log quotes one."""
    key = "key-0123456789-abcdef"
    log = {"version": 2, "status": "error", "error": {"message": f"refused: {key}"}}
    log |= {"eval": {"task": "t", "model": "m"}, "samples": []}
    script = f"import sys; open(sys.argv[2] + '/log.json', 'w').write({json.dumps(log)!r})"
    with redacting(Redactor([key])):
        found = error(tmp_path, script=script, results="inspect", command=COMMAND)
    assert "ended with the status" in str(found)
    assert key not in str(found)


def test_run__a_time_out_ends_all_its_processes(tmp_path: Path) -> None:
    script = """\
import os, pathlib, time
if child := os.fork():
    pathlib.Path("child").write_text(str(child))
time.sleep(600)
"""
    found = error(tmp_path, script=script, timeout_seconds=1)
    assert str(found).startswith("`ours` did not end within 1 s")
    assert gone(int((tmp_path / "child").read_text()))


def test_run__a_tree_that_cannot_be_prepared_does_not_start_it(tmp_path: Path) -> None:
    assert error(tmp_path, prepare="exit 7").kind == "prepare"
    assert not (tmp_path / "starts").exists()


def test_run__beyond_the_budget_it_does_not_start(tmp_path: Path) -> None:
    inputs = {"samples": "3", "max-cost-usd": "0.9"}
    assert error(tmp_path, tests="cost", inputs=inputs).kind == "budget"
    assert starts(tmp_path) == ["cost 1"] * 2


def test_run__skipped_tests_and_notices_are_told_once(tmp_path: Path) -> None:
    rows = [{"evalId": "a", "verdict": "pass"}, {"evalId": "b", "skipped": "no GPU"}]
    content = "\n".join(map(json.dumps, rows))

    async def run(executor: SuiteExecutor, engine: Engine) -> Sequence[str]:
        await executor.run(lambda _event: None)
        return engine.notices

    assert with_executor(tmp_path, run, script=CONTENT.format(content=content)) == (
        "evals/suite.txt: 1 test not scored, `b`: no GPU",
    )


def sampled(
    root: Path, *rounds: Mapping[str, int], first: bool = True, **options: Any
) -> list[dict[str, Sequence[SampleResult]]]:
    """The fresh samples of each round, whose tests ask at the same time."""

    async def run(
        executor: SuiteExecutor, _engine: Engine
    ) -> list[dict[str, Sequence[SampleResult]]]:
        if first:
            await executor.run(lambda _event: None)
        found = []
        for wanted in rounds:
            samples = await asyncio.gather(*(executor.sample(*item) for item in wanted.items()))
            found.append(dict(zip(wanted, samples, strict=True)))
        return found

    return with_executor(root, run, **options)


AGAIN = [*COMMAND, "{SAMPLES}", "{SELECTION}"]


def test_sample__tests_that_ask_together_share_one_start(tmp_path: Path) -> None:
    one, two = sampled(
        tmp_path, {"a": 3, "bad": 2}, {"a": 1, "bad": 2}, tests="a b bad", again=AGAIN
    )
    assert starts(tmp_path) == ["a b bad 1", "a bad 3", "a bad 1"]
    assert {name: len(samples) for name, samples in one.items()} == {"a": 3, "bad": 2}
    assert [sample.verdict for sample in two["bad"]] == ["fail", "fail"]


def test_sample__without_the_number_of_samples_it_starts_for_each(tmp_path: Path) -> None:
    again = [*COMMAND, "1", "{SELECTION}"]
    (found,) = sampled(tmp_path, {"a": 1, "b": 3}, again=again)
    assert starts(tmp_path) == ["a b 1", "a b 1", "b 1", "b 1"]
    assert [len(samples) for samples in found.values()] == [1, 3]


def test_sample__without_a_selection_other_tests_are_ignored(tmp_path: Path) -> None:
    (found,) = sampled(tmp_path, {"b": 2})
    assert starts(tmp_path) == ["a b 1"] * 3
    assert [sample.verdict for sample in found["b"]] == ["pass", "pass"]


def test_sample__without_a_first_run_all_tests_run(tmp_path: Path) -> None:
    (found,) = sampled(
        tmp_path, {"b": 2}, first=False, command=[*COMMAND, "{SAMPLES}"], again=AGAIN
    )
    assert starts(tmp_path) == ["a b 2"]
    assert len(found["b"]) == 2


def test_sample__one_that_it_does_not_report_is_an_error(tmp_path: Path) -> None:
    (found,) = sampled(tmp_path, {"a": 1, "gone": 1})
    assert found["gone"][0].error
    assert found["gone"][0].verdict is None
    assert found["a"][0].verdict == "pass"


def test_sample__a_start_that_fails_is_the_error_of_its_samples(tmp_path: Path) -> None:
    again = [sys.executable, "-c", "import sys; sys.exit('no key')", "{RESULTS}"]
    (found,) = sampled(tmp_path, {"a": 2}, again=again)
    assert [sample.error and sample.error.message for sample in found["a"]] == [
        "`ours` ended with exit code 1: no key"
    ] * 2
