"""Variants: the same tests on head, with another target or without the skill."""

import gzip
import json
from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import Any

import pytest

from agentevals_action.model.comparison import VariantComparison
from agentevals_action.results.run_folder import read_folder
from agentevals_action.review.comparison.compare import compare
from tests.integration.test_default_branch import Workflow
from tests.integration.test_skills import ASSERTIONS, BASE, SEES, SKILL, TARGETS, VAGUE, evals
from tests.support import command
from tests.support.github_server import GitHubServer
from tests.support.repositories import Files, Repository

TESTS = "skills/shop/evals/evals.json"
FIVE = {TESTS: evals(*[ASSERTIONS] * 5)}
POLITE = SKILL + "Please.\n"
#: A target that answers well without a skill, one that equals the declared one, and one that fails.
OTHERS = f"""\
  - {{name: knows, provider: cli, command: [echo, It takes 30 days.], judge_target: lenient}}
  - {{name: same, provider: cli, command: [sh, -c, '{SEES}'], judge_target: judge}}
  - {{name: strict, provider: cli, command: [sh, -c, '{SEES}'], judge_target: lenient}}
  - {{name: fails, provider: cli, command: ['false'], judge_target: judge}}
  - name: lenient
    provider: mock
    responses:
      - {{pattern: '.', response: '{{"checks": [{{"id": "rubric-1", "satisfied": true}}]}}'}}
"""
FILES: Files = {**BASE, **FIVE, ".agentv/targets.yaml": TARGETS + OTHERS}


def declared(*variants: str) -> Files:
    return {".agentevals.yaml": f"skills: {{variants: [{', '.join(variants)}]}}\n"}


def repository(folder: Path, base: Files, change: Files) -> Repository:
    made = Repository.create(folder / "repository", {**FILES, **base})
    made.git("checkout", "--quiet", "-b", "change")
    made.commit("change", change)
    return made


def reviewed(folder: Path, base: Files, change: Files, *options: str) -> command.Done:
    made = repository(folder, base, change)
    return command.run(made.path, "review", "--base", "main", *options)


def comparisons(report: Path) -> Mapping[str, VariantComparison]:
    """The comparisons with variants of the run in a report folder, by name."""
    suites = compare(read_folder(report)).suites
    return {found.run.variant.name: found for suite in suites for found in suite.variants}


def of(folder: Path) -> Mapping[str, VariantComparison]:
    return comparisons(folder / "repository/agentevals-report")


#: The skill of head, the variant, the exit code and words of the review.
CONDITIONS = {
    "a skill that helps": (POLITE, "{name: without_skill, must: help}", 0, "Passed"),
    "a skill that does not help": (
        VAGUE,
        "{name: knows, skill: false, target: knows, must: help}",
        1,
        "is not shown to pass more often than its variant `knows`",
    ),
    "a skill that hurts": (
        VAGUE,
        "{name: knows, target: knows, must: not-hurt}",
        1,
        "passes less often than its variant `knows`",
    ),
    "a target that is worse blocks nothing without a condition": (
        VAGUE,
        "{name: knows, target: knows}",
        0,
        "Passed",
    ),
    "the same target hurts nothing": (
        POLITE,
        "{name: same, target: same, must: not-hurt}",
        0,
        "Passed",
    ),
    "the same target is not shown to be worse": (
        POLITE,
        "{name: same, target: same, must: help}",
        1,
        "is not shown to pass more often than its variant `same`",
    ),
    "a variant that cannot be scored": (
        POLITE,
        "{name: fails, target: fails, must: not-hurt}",
        3,
        "`must: not-hurt` of the variant `fails` of `skills/shop` could not be",
    ),
    "a variant that cannot be scored, without a condition": (
        POLITE,
        "{name: fails, target: fails}",
        0,
        "Passed",
    ),
    "a condition that nothing can decide": (
        POLITE,
        "{name: without_skill, must: not-hurt}",
        2,
        "`must` of `without_skill` cannot be decided: 4 tests × 1 sample can show nothing; set "
        "`samples: 2` or more",
    ),
}


@pytest.mark.parametrize("name", CONDITIONS)
def test_must__decides(tmp_path: Path, name: str) -> None:
    skill, variant, code, words = CONDITIONS[name]
    base = {"skills/shop/SKILL.md": VAGUE} if skill == VAGUE else {}
    if code == 2:
        base[TESTS] = evals(*[ASSERTIONS] * 4)
    change = {"skills/shop/SKILL.md": skill + "Changed.\n"}
    done = reviewed(tmp_path, {**base, **declared(variant)}, change)
    assert (done.code, words in done.out + done.err) == (code, True), done.out + done.err


def test_review__compares_the_suite_with_each_variant(tmp_path: Path) -> None:
    variants = declared("without_skill", "{name: strict, target: strict}")
    done = reviewed(tmp_path, variants, {"skills/shop/SKILL.md": POLITE})
    assert done.code == 0, done.out + done.err
    assert "without_skill: 5 of 5 tests" in done.err
    found = of(tmp_path)
    first = found["without_skill"].first
    assert first
    assert (first.pairs, first.samples, first.declared, first.variant) == (5, 1, 1, 0)
    assert (first.helps, first.hurts, first.can_show) == (True, False, True)
    assert len(found["without_skill"].with_passes(True, False)) == 5
    assert [test.variant.candidate_answer for test in found["without_skill"].tests if test.variant]
    # The judge is that of the suite, whatever the other target says.
    assert len(found["strict"].with_passes(True, True)) == 5


def test_review__its_cost_is_part_of_that_of_the_review(tmp_path: Path) -> None:
    reply = json.dumps({"output": "30 days", "cost_usd": 0.25})
    costs = f"  - {{name: costs, provider: cli, command: [echo, '{reply}'], judge_target: judge}}\n"
    base = {".agentv/targets.yaml": TARGETS + costs, **declared("{name: costs, target: costs}")}
    done = reviewed(tmp_path, base, {"skills/shop/SKILL.md": POLITE}, "--json")
    assert json.loads(done.out)["spent"]["costUsd"] == pytest.approx(5 * 0.25)


def test_review__the_judge_of_a_variant_is_that_of_the_suite(tmp_path: Path) -> None:
    done = reviewed(
        tmp_path,
        {"skills/shop/SKILL.md": VAGUE, **declared("{name: strict, target: strict}")},
        {"skills/shop/SKILL.md": VAGUE + "Please.\n"},
    )
    assert done.code == 0, done.out + done.err
    assert len(of(tmp_path)["strict"].with_passes(False, False)) == 5


def test_review__whether_the_skill_is_opened_is_not_scored_without_it(tmp_path: Path) -> None:
    trigger = {"type": "skill_trigger", "skill": "shop"}
    suite = {
        "name": "shop",
        "workspace": {"skills": [".."]},
        "tests": [
            {"id": "both", "input": "How long?", "assert": [{"type": "contains", "value": "30"}]},
            {"id": "trigger", "input": "How long?", "assert": [trigger]},
        ],
        "assert": [trigger],
        "variants": ["without_skill"],
    }
    change = {"skills/shop/SKILL.md": POLITE}
    done = reviewed(tmp_path, {"skills/shop/evals/EVAL.yaml": json.dumps(suite)}, change)
    assert done.code == 0, done.out + done.err
    found = of(tmp_path)["without_skill"]
    # Its answers do not show tool calls: scored with the trigger, it would fail as declared.
    assert [(test.id, test.passes) for test in found.tests] == [("both", (True, False))]


def test_review__a_list_of_triggers_has_no_arm_without_the_skill(tmp_path: Path) -> None:
    queries = json.dumps([{"query": "How long?", "should_trigger": False}])
    base = {"skills/shop/evals/trigger-evals.json": queries, **declared("without_skill")}
    done = reviewed(tmp_path, base, {"skills/shop/SKILL.md": POLITE})
    assert len(of(tmp_path)) == 1, done.out + done.err


def test_review__a_condition_that_a_change_removes_is_named(tmp_path: Path) -> None:
    base = declared("{name: without_skill, must: help}", "{name: same, target: same}")
    change = {**declared("without_skill"), "skills/shop/SKILL.md": POLITE}
    done = reviewed(tmp_path, base, change, "--json")
    (suite,) = json.loads(done.out)["suites"]
    edits = [(edit["kind"], edit["name"], edit["action"]) for edit in suite["edits"]]
    assert edits == [("variant", "without_skill", "changed"), ("variant", "same", "removed")]


@pytest.mark.parametrize("shards", [1, 2])
def test_shards__decide_as_one_machine(tmp_path: Path, shards: int) -> None:
    base = {
        "skills/shop/SKILL.md": VAGUE,
        **declared("without_skill", "{name: knows, target: knows, must: not-hurt}"),
    }
    made = repository(tmp_path, base, {"skills/shop/SKILL.md": VAGUE + "Please.\n"})
    for number in range(1, shards + 1):
        folder = f"agentevals-report/shards/{number}"
        options = ("--shard", f"{number}/{shards}", "--report-dir", folder)
        assert command.run(made.path, "review", "--base", "main", *options).code == 0
    done = command.run(made.path, "merge")
    assert (done.code, "passes less often" in done.out) == (1, True), done.out + done.err
    found = of(tmp_path)
    first, fresh = found["knows"].first, found["knows"].fresh
    assert first
    assert fresh
    assert (first.pairs, first.samples, fresh.pairs, fresh.samples) == (5, 1, 5, 6)
    assert found["without_skill"].fresh is None


def test_shards__a_lost_one_leaves_tests_that_do_not_count(tmp_path: Path) -> None:
    base = declared("{name: knows, target: knows, must: not-hurt}")
    made = repository(tmp_path, base, {"skills/shop/SKILL.md": POLITE})
    options = ("--shard", "1/2", "--report-dir", "agentevals-report/shards/1")
    assert command.run(made.path, "review", "--base", "main", *options).code == 0
    done = command.run(made.path, "merge")
    assert (done.code, "shard 2 of 2 has no results" in done.out) == (3, True), done.out + done.err
    assert [test.passes is None for test in of(tmp_path)["knows"].tests].count(True) == 2


def test_run__one_variant_alone(tmp_path: Path) -> None:
    made = repository(tmp_path, declared("without_skill", "{name: knows, target: knows}"), {})
    whole = command.run(made.path, "run", "--json")
    alone = command.run(made.path, "run", "--variant", "without_skill", "--json")
    rates = [json.loads(done.out)["suites"][0]["head"]["passRate"] for done in (whole, alone)]
    assert rates == [1, 0], whole.err + alone.err
    unknown = command.run(made.path, "run", "--variant", "know")
    assert (unknown.code, "did you mean `knows`?" in unknown.err) == (2, True)


def test_run__results_of_a_variant_are_no_results_of_the_suite(tmp_path: Path) -> None:
    made = repository(tmp_path, declared("{name: same, target: default}"), {})
    assert command.run(made.path, "run", "--variant", "same").code == 0
    again = command.run(made.path, "run", "--resume")
    assert "kept" not in again.err, again.err


@pytest.fixture
def server() -> Iterator[GitHubServer]:
    with GitHubServer() as running:
        running.permissions["contents"] = "write"
        yield running


#: Notes each call, and whether the agent has the skill.
NOTES = 'ls .agents/skills >> "$CALLS" 2>/dev/null || echo none >> "$CALLS"'
NOTING = TARGETS.replace(f"'{SEES}'", json.dumps(f"{NOTES}; {SEES}"))
OTHER_QUESTION = evals(*[ASSERTIONS] * 4, {**ASSERTIONS, "prompt": "How many days?"})


@pytest.mark.parametrize(
    ("change", "without"),
    [
        ({"skills/shop/SKILL.md": POLITE}, 0),
        ({TESTS: OTHER_QUESTION}, 1),
        ({TESTS: evals(*[{"assertions": ["The period is stated."]}] * 5)}, 5),
        ({".agentv/targets.yaml": NOTING.replace("; cat", ";  cat")}, 5),
    ],
)
def test_stored__results_spare_a_pull_request_the_arm(
    tmp_path: Path, server: GitHubServer, change: Files, without: int
) -> None:
    base = {**FILES, ".agentv/targets.yaml": NOTING, **declared("without_skill")}
    flow = Workflow(tmp_path, server, change, base=base)
    pushed = flow.pushed(watch="")
    assert pushed.code == 0, pushed.log
    assert flow.calls.read_text().split().count("none") == 5
    done = flow.reviewed(watch="")
    assert done.code == 0, done.log
    assert flow.calls.read_text().split().count("none") == without
    report = tmp_path / str(flow.runs) / "workspace/agentevals-report"
    first = comparisons(report)["without_skill"].first
    assert first
    assert (first.pairs, first.declared, first.variant) == (5, 1, 0)


def test_stored__a_push_stores_no_results_twice(tmp_path: Path, server: GitHubServer) -> None:
    base = {**FILES, ".agentv/targets.yaml": NOTING, **declared("without_skill")}
    flow = Workflow(tmp_path, server, {"skills/shop/SKILL.md": POLITE}, base=base)
    assert flow.pushed(watch="").code == 0
    assert flow.scheduled(watch="").code == 0
    assert flow.calls.read_text().split().count("none") == 0
    sizes = [stored_variants(flow, name) for name in flow.stored()]
    assert sizes == [5, 0]


def stored_variants(flow: Workflow, name: str) -> int:
    origin = flow.pull.origin
    origin.git("checkout", "--quiet", "agentevals-data")
    rows: list[Any] = gzip.decompress((origin.path / name).read_bytes()).splitlines()
    return sum("variant" in json.loads(row) for row in rows)
