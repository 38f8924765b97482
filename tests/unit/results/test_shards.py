"""The parts that machines run alike, and what a merge of their results makes of them."""

from collections.abc import Callable, Sequence
from dataclasses import replace

import pytest
from hypothesis import given
from hypothesis import strategies as st

from agentevals_action.errors import ExitCode, InvalidInput
from agentevals_action.model.baseline import BaseSuite
from agentevals_action.model.comparison import ChangeKind, Outcome
from agentevals_action.model.diagnostic import Location
from agentevals_action.model.result import TestResult
from agentevals_action.model.run import Level, Policy, Run, RunSuite, Selection, Shard
from agentevals_action.model.suite import Suite, Test
from agentevals_action.model.workspace import Workspace
from agentevals_action.results import shards
from agentevals_action.results.build import extended
from agentevals_action.results.run_folder import RunResults
from agentevals_action.review.comparison.compare import compare
from agentevals_action.settings import Settings
from tests.support import results

HEAD = "a" * 40
AT = Location("s", 1)
PATHS = ("evals/one/EVAL.yaml", "evals/two/EVAL.yaml")


def a_test(name: str, conversation: str | None = None, workspace: Workspace | None = None) -> Test:
    return Test(id=name, location=AT, input=(), conversation_id=conversation, workspace=workspace)


def parts(*tests: Test, total: int) -> list[set[str]]:
    """The parts of one suite; there is another suite of one test."""
    suites = {"s": tests, "other": (a_test("x"),)}
    numbers = range(1, total + 1)
    return [set(shards.select_part(suites, Shard(n, total)).get("s", ())) for n in numbers]


def test_digest__of_other_tests_or_another_input_is_another() -> None:
    suite, settings = Suite(path="s", tests=(a_test("x"),)), Settings()
    digest = shards.digest_of_inputs(settings, [suite])
    assert digest == shards.digest_of_inputs(settings, [suite])
    others = [(settings, ()), (settings, [suite.with_tests(())]), (Settings(samples=3), [suite])]
    assert digest not in {shards.digest_of_inputs(*other) for other in others}


def test_part__each_test_is_in_one_and_turns_stay_together() -> None:
    turns = [a_test(f"turn{number}", "talk") for number in range(3)]
    found = parts(*(a_test(f"t{number}") for number in range(6)), *turns, total=2)
    assert sorted(map(len, found)) == [4, 5]
    assert len(set.union(*found)) == 9
    assert sorted(sum(name.startswith("turn") for name in part) for part in found) == [0, 3]


def test_part__tests_that_share_a_workspace_on_either_side_stay_together() -> None:
    shared, fresh = (
        Workspace(),
        Workspace(isolation="per_test"),
    )
    names = ("a", "b", "c")
    alone = parts(*(a_test(name, workspace=fresh) for name in names), total=3)
    assert [len(part) for part in alone] == [1, 1, 1]
    base = (a_test(name, workspace=shared) for name in names)
    together = parts(*map(a_test, names), *base, total=3)
    assert sorted(map(len, together)) == [0, 0, 3]


def row(path: str, name: str, verdict: str = "pass", fresh: int = 0) -> TestResult:
    made = results.result(name, verdict, path=path)  # type: ignore[arg-type]  # a verdict by name
    return extended(made, made.samples * fresh)


def rows(**verdicts: tuple[str, int]) -> list[TestResult]:
    """The rows of both suites: verdicts and numbers of fresh samples by test."""
    return [row(path, name, *facts) for path in PATHS for name, facts in verdicts.items()]


#: One test of each suite is worse, one is new, one is gone.
HEAD_ROWS = rows(a=("pass", 0), worse=("fail", 6), b=("pass", 0), new=("pass", 0))
BASE_ROWS = rows(a=("pass", 0), worse=("pass", 5), b=("fail", 0), gone=("pass", 0))


def run(shard: Shard | None = None, **facts: object) -> Run:
    tests = ("a", "worse", "b", "new")
    return Run(
        head_sha=HEAD,
        shard=shard,
        time=f"2026-01-01T00:00:0{shard.number if shard else 0}",
        policy=Policy(frozenset({"gates", "regressions"})),
        suites=tuple(RunSuite(Selection(path, ()), "suite", tests) for path in PATHS),
    ).model_copy(update=facts)


def pick(rows: Sequence[TestResult], keep: Callable[[TestResult], bool]) -> tuple[TestResult, ...]:
    return tuple(filter(keep, rows))


WHOLE = RunResults(run(), tuple(HEAD_ROWS), tuple(BASE_ROWS))
KEYS = sorted({(each.eval_path, each.eval_id) for each in (*HEAD_ROWS, *BASE_ROWS)})


def divided(owners: Sequence[int], total: int) -> list[RunResults]:
    of_test = dict(zip(KEYS, owners, strict=True))
    return [
        RunResults(
            run(Shard(number + 1, total)),
            *(
                pick(rows, lambda each, n=number: of_test[each.eval_path, each.eval_id] == n)  # type: ignore[misc]
                for rows in (HEAD_ROWS, BASE_ROWS)
            ),
        )
        for number in range(total)
    ]


@given(st.lists(st.integers(0, 3), min_size=len(KEYS), max_size=len(KEYS)))
def test_merge__of_any_partition_is_the_review_of_one_machine(owners: list[int]) -> None:
    merged = shards.merge(divided(owners, 4), HEAD, ())
    expected = compare(WHOLE)
    assert expected.decision.outcome is Outcome.FAILED
    found = compare(replace(merged, run=merged.run.model_copy(update={"time": WHOLE.run.time})))
    by_id = [
        sorted(
            ((each.path, test) for each in review.suites for test in each.tests),
            key=lambda pair: (pair[0], pair[1].id),
        )
        for review in (found, expected)
    ]
    assert by_id[0] == by_id[1]
    assert found.decision == expected.decision


def halves() -> list[RunResults]:
    return divided([index % 2 for index in range(len(KEYS))], 2)


def test_merge__a_missing_shard_is_named_and_its_tests_are_errors() -> None:
    first, _ = halves()
    review = compare(shards.merge([first], HEAD, ["s2 has no complete results: rows are missing"]))
    changes = [test.change for each in review.suites for test in each.tests]
    assert changes.count(ChangeKind.HEAD_ERROR) == 4
    assert review.decision.reasons[-2:] == (
        "s2 has no complete results: rows are missing",
        "shard 2 of 2 has no results",
    )


@pytest.mark.parametrize(
    ("facts", "reason"),
    [
        ({"head_sha": "b" * 40}, "they are of another commit or base"),
        ({"base_sha": "b" * 40}, "they are of another commit or base"),
        ({"inputs": "x"}, "they are of other inputs or tests"),
        ({"policy": Policy(frozenset({"never"}))}, "they are of other inputs or tests"),
        ({"shard": Shard(1, 3)}, "the latest is shard 2/2"),
        ({"shard": None}, "the latest is shard 2/2"),
    ],
)
def test_merge__another_run_does_not_count(facts: dict[str, object], reason: str) -> None:
    first, second = halves()
    other = replace(first, run=first.run.model_copy(update=facts))
    found = shards.merge([other, second], HEAD, ())
    assert reason in found.run.sentences(Level.PROBLEM)[0]
    assert found.run.sentences(Level.PROBLEM)[-1] == "shard 1 of 2 has no results"
    assert found.head == second.head


def test_merge__its_own_policy_decides_and_must_be_that_of_the_shards() -> None:
    own = Policy(frozenset({"failures"}), min_pass_rate=0.5)
    found = shards.merge(halves(), HEAD, (), own).run
    assert found.policy == own
    (problem,) = found.sentences(Level.PROBLEM)
    assert "another value of `fail-on` and `min-pass-rate` than this job" in problem
    assert not shards.merge(halves(), HEAD, (), WHOLE.run.policy).run.sentences(Level.PROBLEM)


def test_merge__the_newest_folder_of_a_shard_counts() -> None:
    first, second = halves()
    again = replace(first, run=first.run.model_copy(update={"time": "2026-01-02"}), head=())
    assert shards.merge([first, again, second], HEAD, ()).head == second.head


def test_merge__without_a_shard_of_the_commit_is_invalid() -> None:
    with pytest.raises(InvalidInput, match="no results of a shard of bbbbbbbbbbbb"):
        shards.merge(halves(), "b" * 40, ())


def test_merge__what_one_shard_could_not_obtain_is_a_problem_of_the_suite() -> None:
    first, second = halves()
    suites = tuple(
        replace(each, base=BaseSuite(problem="no worktree")) for each in first.run.suites
    )
    broken = replace(first, run=first.run.model_copy(update={"suites": suites}))
    merged = shards.merge([broken, second], HEAD, ())
    assert [each.base.problem for each in merged.run.suites] == ["no worktree"] * 2


def test_merge__a_suite_is_new_if_one_shard_knows_it() -> None:
    first, second = halves()
    suites = tuple(replace(each, base=BaseSuite(is_new=True)) for each in second.run.suites)
    new = replace(second, run=second.run.model_copy(update={"suites": suites}))
    assert all(each.base.is_new for each in shards.merge([first, new], HEAD, ()).run.suites)


def test_merge__tests_of_the_same_service_are_those_of_all_shards() -> None:
    parts = [
        replace(part, run=part.run.model_copy(update={"suites": suites}))
        for part, names in zip(halves(), (("a", "b"), ("c",)), strict=True)
        for suites in [
            tuple(replace(each, base=BaseSuite(same_service=names)) for each in part.run.suites)
        ]
    ]
    merged = shards.merge(parts, HEAD, ())
    assert {each.base.same_service for each in merged.run.suites} == {("a", "b", "c")}


def test_exit_code__is_about_errors_not_about_failures() -> None:
    failed, broken = row("e", "t", "fail"), results.result("t", None)
    assert shards.exit_code(RunResults(run(Shard(1, 2)), (failed,))) is ExitCode.PASSED
    assert shards.exit_code(RunResults(run(Shard(1, 2)), (broken,))) is ExitCode.INCONCLUSIVE
    refused = run(Shard(1, 2)).with_notes(Level.PROBLEM, ["no space"])
    assert shards.exit_code(RunResults(refused)) is ExitCode.INCONCLUSIVE
