"""A review on several machines: the plan, the shards and the merge, as jobs of their own."""

import json
import shutil
import signal
import time
from collections.abc import Mapping
from pathlib import Path
from typing import Any

import pytest

from agentevals_action.model.shards import Fragments
from agentevals_action.results.shard_files import read_fragments, read_plan
from agentevals_action.results.shard_sources import ShardFolder
from tests.support import command
from tests.support.repositories import Files, Repository

TARGETS = """\
targets:
  - {name: default, provider: cli, command: [sh, agent.sh], cwd: /, requests_per_minute: 600}
"""
AGENT = 'read name; echo "Good day, $name."\n'
#: Answers some names worse than the agent does.
WORSE = """\
read name
case $name in
  *3) echo "Yo";;
  *5) echo "Good day.";;
  *) echo "Good day, $name.";;
esac
"""
FOLDER = "agentevals-report/shards"
#: Six machines would be worth it: 10 s are assumed for each test.
PLAN = ("shards", "--base", "main", "--target-seconds", "1", "--max-concurrency", "4")


def suite(name: str, tests: int, more: str = "") -> str:
    """A suite of independent tests, two turns of a conversation, and `more`."""
    rows = [
        f'  - {{id: t{number}, input: "{name}{number}", criteria: greets, assert: [*polite, *known]}}'
        for number in range(tests)
    ]
    turns = [
        f'  - {{id: turn{number}, input: "{name}{number}", criteria: greets, conversation_id: talk,'
        " assert: [*polite]}"
        for number in range(2)
    ]
    anchors = (
        "x-one: &polite {type: contains, value: Good day}\n"
        f"x-two: &known {{type: contains, value: {name}, required: true}}\n"
    )
    return "\n".join([f"name: {name.lower()}", anchors + "tests:", *rows, *turns, more])


BASE: Files = {
    "evals/one/EVAL.yaml": suite("Ada", 6),
    "evals/two/EVAL.yaml": suite("Bob", 6),
    ".agentv/targets.yaml": TARGETS,
    "agent.sh": AGENT,
    ".gitignore": "/agentevals-report/\n",
}


def make(folder: Path, change: Files) -> Repository:
    made = Repository.create(folder, BASE)
    made.git("checkout", "--quiet", "-b", "change")
    made.commit("change", change)
    return made


def plan(repository: Repository, *options: str, most: int = 4) -> int:
    """The number of shards of the plan."""
    done = command.run(repository.path, *PLAN, "--max", str(most), *options)
    assert done.code == 0, done.err
    shards = json.loads(done.out)["shard"]
    assert shards == [f"{number}/{len(shards)}" for number in range(1, len(shards) + 1)]
    return len(shards)


def run_shard(repository: Repository, shard: str, *options: str) -> command.Done:
    return command.run(repository.path, "review", "--base", "main", "--shard", shard, *options)


def merge(repository: Repository, *options: str) -> tuple[int, dict[str, Any]]:
    done = command.run(repository.path, "merge", "--base", "main", "--json", *options)
    assert done.out.startswith("{"), done.err
    return done.code, json.loads(done.out)


def without_times(value: Any) -> Any:
    """A summary without what differs between two runs."""
    if isinstance(value, dict):
        left_out = {"durationMs", "duration", "time", "timestamp"}
        return {key: without_times(one) for key, one in value.items() if key not in left_out}
    return [without_times(one) for one in value] if isinstance(value, list) else value


def rows(repository: Repository, name: str) -> list[Any]:
    text = (repository.path / "agentevals-report" / name).read_text()
    found = without_times([json.loads(line) for line in text.splitlines()])
    assert isinstance(found, list)
    return found


@pytest.mark.slow
def test_merge__four_shards_give_the_review_of_one_machine(tmp_path: Path) -> None:
    change = {"agent.sh": WORSE, "evals/two/EVAL.yaml": suite("Bob", 7).replace("Good day", "day")}
    one = make(tmp_path / "one", change)
    done = command.run(one.path, "review", "--base", "main", "--json")
    assert done.code == 1, done.err
    several = Repository(shutil.copytree(one.path, tmp_path / "several", symlinks=True))
    shutil.rmtree(several.path / "agentevals-report")
    assert plan(several) == 4
    for number in range(1, 5):
        machine = Repository(shutil.copytree(several.path, tmp_path / f"machine{number}"))
        ran = run_shard(machine, f"{number}/4")
        assert ran.code == 0, ran.err
        (written,) = (machine.path / FOLDER).glob(f"shard-{number}-*")
        shutil.copy(written, several.path / FOLDER / written.name)
    code, summary = merge(several)
    assert code == 1
    assert without_times(summary) == without_times(json.loads(done.out))
    for name in ("results.jsonl", "base.jsonl"):
        assert rows(several, name) == rows(one, name)


@pytest.fixture(scope="module")
def finished(tmp_path_factory: pytest.TempPathFactory) -> Repository:
    """Two shards that have run a change that passes."""
    made = make(tmp_path_factory.mktemp("finished") / "r", {"agent.sh": f"# better\n{AGENT}"})
    assert plan(made, most=2) == 2
    for shard in ("1/2", "2/2"):
        assert run_shard(made, shard).code == 0
    return made


@pytest.fixture
def shards(finished: Repository, tmp_path: Path) -> Repository:
    return Repository(shutil.copytree(finished.path, tmp_path / "copy", symlinks=True))


def fragment(repository: Repository, number: int) -> Path:
    return repository.path / FOLDER / f"shard-{number}-of-2-attempt-1.jsonl"


def edit_header(path: Path, **fields: Any) -> str:
    """The text of a fragment with another header."""
    header, rest = path.read_text().split("\n", 1)
    data = json.loads(header)
    data["origin"] |= {key: fields.pop(key) for key in ("runId", "headSha") if key in fields}
    return f"{json.dumps(data | fields)}\n{rest}"


def reasons(summary: Mapping[str, Any]) -> str:
    return " | ".join(summary["reasons"])


def test_merge__complete_fragments_pass(shards: Repository) -> None:
    code, summary = merge(shards)
    assert (code, summary["outcome"]) == (0, "passed"), summary


def test_merge__a_missing_shard_is_named_and_the_others_are_reported(shards: Repository) -> None:
    fragment(shards, 2).unlink()
    code, summary = merge(shards)
    assert (code, summary["outcome"]) == (3, "inconclusive")
    assert "shard 2 has no complete results: its fragment is missing" in reasons(summary)
    assert summary["changes"]["unchanged"] > 0
    assert summary["changes"]["errorOnHead"] > 0


def test_merge__the_share_of_a_missing_shard_is_spent(tmp_path: Path) -> None:
    """Accident: a shard that was killed after its calls makes the run cost more than its budget."""
    calls = tmp_path / "calls"
    paid = f'read name; echo "$name" >> {calls}; echo \'{{"output": "Yo", "cost_usd": 1}}\'\n'
    repository = make(tmp_path / "r", {"agent.sh": paid})
    budget = ("--max-cost-usd", "16")
    assert plan(repository, most=2) == 2
    for shard in ("1/2", "2/2"):
        assert run_shard(repository, shard, *budget).code == 0
    assert len(calls.read_text().splitlines()) == 16
    fragment(repository, 2).unlink()
    calls.unlink()
    code, summary = merge(repository, *budget, "--confirm", "6")
    assert code in (1, 3), summary
    assert not calls.exists()


def test_merge__without_any_fragment_nothing_is_green(shards: Repository) -> None:
    for number in (1, 2):
        fragment(shards, number).unlink()
    code, summary = merge(shards)
    assert (code, summary["outcome"]) == (3, "inconclusive")
    assert "shards 1\N{EN DASH}2 have no complete results" in reasons(summary)


def damaged(path: Path, how: str) -> str:
    """Damages a fragment; a part of the reason."""
    lines = path.read_bytes().splitlines(keepends=True)
    if how == "link":
        path.rename(path.parent / "target")
        path.symlink_to("target")
        return "by a link"
    content, reason = {
        "empty": (b"", "is empty"),
        "cut in a line": (path.read_bytes()[:-20], "is truncated"),
        "cut between lines": (b"".join(lines[:-1]), "is truncated"),
        "a row less": (b"".join((*lines[:2], *lines[3:])), "results"),
        "a row twice": (b"".join((*lines[:2], *lines[1:])), "contains a test twice"),
        "no JSON": (b"\x00\xff\n", "is not valid"),
        "a deep value": (b"[" * 100_000 + b"\n", "is not valid"),
    }[how]
    path.write_bytes(content)
    return reason


def fragments(repository: Repository) -> Fragments:
    files = ShardFolder(repository.path / FOLDER)
    plan, digest = read_plan(files)
    return read_fragments(files, plan, digest, attempt=1)


@pytest.mark.parametrize(
    "how",
    [
        *("empty", "cut in a line", "cut between lines", "a row less", "a row twice", "no JSON"),
        *("a deep value", "link"),
    ],
)
def test_fragment__that_is_damaged_is_not_used(shards: Repository, how: str) -> None:
    reason = damaged(fragment(shards, 1), how)
    found = fragments(shards)
    assert (set(found.by_shard), set(found.missing)) == ({2}, {1})
    assert reason in found.problems[0]


def test_merge__a_damaged_fragment_is_not_used(shards: Repository) -> None:
    reason = damaged(fragment(shards, 1), "a row less")
    code, summary = merge(shards)
    assert (code, summary["outcome"]) == (3, "inconclusive")
    assert reason in reasons(summary), summary["reasons"]
    assert "shard 1 has no complete results" in reasons(summary)


@pytest.mark.parametrize(
    ("fields", "reason"),
    [
        ({"headSha": "a" * 40}, "is of another commit"),
        ({"runId": 7}, "is of another run"),
        ({"plan": "b" * 64}, "is of another plan"),
        ({"shard": 3, "shards": 3}, "which the plan lacks"),
        ({"runAttempt": 2}, "is of attempt 2, and this is attempt 1"),
        ({"more": 1}, "is not valid on line 1"),
    ],
)
def test_fragment__that_is_foreign_is_not_used(
    shards: Repository, fields: dict[str, Any], reason: str
) -> None:
    """Attack: results of another commit, run or plan, or of an attempt that has not happened."""
    path = fragment(shards, 1)
    path.write_text(edit_header(path, **dict(fields)))
    found = fragments(shards)
    assert 1 not in found.by_shard
    assert reason in found.problems[0]


def test_merge__a_foreign_fragment_beside_complete_ones_is_inconclusive(
    shards: Repository,
) -> None:
    path = fragment(shards, 1)
    (path.parent / "shard-other.jsonl").write_text(edit_header(path, headSha="a" * 40))
    code, summary = merge(shards)
    assert (code, summary["outcome"]) == (3, "inconclusive")
    assert 'the fragment "shard-other.jsonl" is not used' in reasons(summary)
    assert summary["changes"]["errorOnHead"] == 0


def test_merge__a_fragment_twice_is_inconclusive(shards: Repository) -> None:
    shutil.copy(fragment(shards, 1), fragment(shards, 1).with_name("shard-copy.jsonl"))
    code, summary = merge(shards)
    assert (code, summary["outcome"]) == (3, "inconclusive")
    assert "shard 1 has more than one fragment" in reasons(summary)


def test_merge__a_test_of_another_shard_is_refused(shards: Repository) -> None:
    """Attack: the results of one shard decide about the tests of another."""
    first, second = fragment(shards, 1), fragment(shards, 2)
    header, rest = first.read_text().split("\n", 1)
    first.write_text(f"{header}\n" + second.read_text().split("\n", 1)[1])
    assert rest
    code, summary = merge(shards)
    assert (code, summary["outcome"]) == (3, "inconclusive")
    assert "contains a test of another shard" in reasons(summary)


@pytest.mark.slow
def test_merge__the_newest_attempt_of_a_shard_wins(shards: Repository) -> None:
    """A killed shard that was run again; the first attempt stays in the folder."""
    path = fragment(shards, 1)
    complete = path.read_text()
    lines = complete.splitlines()
    end = {**json.loads(lines[-1]), "rows": 0, "problem": "it was interrupted by a signal"}
    path.write_text(f"{lines[0]}\n{json.dumps(end)}\n")
    code, summary = merge(shards)
    assert code == 3
    assert "shard 1 has no complete results: it was interrupted by a signal" in reasons(summary)
    path.write_text(complete)
    later = path.with_name("shard-1-of-2-attempt-2.jsonl")
    later.write_text(edit_header(path, runAttempt=2))
    path.write_text(f"{lines[0]}\n{json.dumps(end)}\n")
    assert merge(shards, "--attempt", "2")[0] == 0


def test_merge__a_plan_of_another_commit_is_refused(shards: Repository) -> None:
    shards.commit("later", {"agent.sh": AGENT})
    done = command.run(shards.path, "merge", "--base", "main")
    assert done.code == 2
    assert "the plan of the shards is of" in done.err
    assert run_shard(shards, "1/2").code == 2


def test_merge__other_inputs_than_those_of_the_plan_are_refused(shards: Repository) -> None:
    done = command.run(shards.path, "merge", "--base", "main", "--samples", "2")
    assert done.code == 2
    assert "differ from those of the plan: `samples`" in done.err


@pytest.mark.slow
def test_merge__a_shard_with_other_inputs_says_so(shards: Repository) -> None:
    fragment(shards, 1).unlink()
    assert run_shard(shards, "1/2", "--samples", "2").code == 2
    code, summary = merge(shards)
    assert (code, summary["outcome"]) == (3, "inconclusive")
    assert "the inputs of this job differ from those of the plan: `samples`" in reasons(summary)


def test_shard__fragments_that_the_change_commits_are_refused(shards: Repository) -> None:
    """Attack: a change commits results that nobody measured."""
    shards.git("add", "--force", FOLDER)
    for arguments in (("merge",), ("review", "--shard", "1/2"), PLAN[:1]):
        done = command.run(shards.path, *arguments, "--base", "main")
        assert done.code == 2
        assert "where the shards write their results" in done.err


def test_shard__a_report_folder_that_is_a_committed_link_is_refused(shards: Repository) -> None:
    """Attack: a change commits a link as the report folder, so that the folder is not protected and
    a program of the change replaces the fragment after it was written."""
    report = shards.path / "agentevals-report"
    report.rename(shards.path / "agent")
    report.symlink_to("agent")
    shards.git("add", "--force", report.name)
    for arguments in (("merge",), ("review", "--shard", "1/2"), PLAN[:1]):
        done = command.run(shards.path, *arguments, "--base", "main")
        assert done.code == 2, done.err
        assert "the repository contains 'agentevals-report', where the shards" in done.err


@pytest.mark.parametrize("shard", ["3/2", "0/4", "1/257", "1", "a/b", "1/3"])
def test_shard__a_shard_that_does_not_exist_is_invalid(shards: Repository, shard: str) -> None:
    done = run_shard(shards, shard)
    assert done.code == 2
    assert "shard" in done.err


def test_shard__without_a_plan(tmp_path: Path) -> None:
    made = make(tmp_path / "r", {"agent.sh": WORSE})
    done = run_shard(made, "1/2")
    assert done.code == 2
    assert "plan.json cannot be read" in done.err


def test_plan__what_belongs_together_stays_on_one_machine(shards: Repository) -> None:
    parts = json.loads((shards.path / FOLDER / "plan.json").read_text())["shards"]
    for path in ("evals/one/EVAL.yaml", "evals/two/EVAL.yaml"):
        owners = [part for part in parts if {"turn0", "turn1"} & {*part.get(path, ())}]
        assert len(owners) == 1
        assert sum(len(part.get(path, ())) for part in parts) == 8


@pytest.mark.slow
def test_plan__needs_no_keys(tmp_path: Path) -> None:
    targets = TARGETS.replace("[sh, agent.sh]", "[sh, agent.sh, '${{ AGENT_KEY }}']")
    made = make(tmp_path / "r", {".agentv/targets.yaml": targets})
    assert plan(made, most=2) == 2
    refused = run_shard(made, "1/2")
    assert refused.code == 2
    assert "the target `default` needs AGENT_KEY, which is not set" in refused.err
    code, summary = merge(made)
    assert (code, summary["outcome"]) == (2, "invalid")
    assert "shard 1 has no complete results: .agentv/targets.yaml" in reasons(summary)


@pytest.mark.slow
def test_plan__a_change_that_affects_no_suite_needs_one_shard(tmp_path: Path) -> None:
    made = make(tmp_path / "r", {"README.md": "hello"})
    assert plan(made) == 1
    assert run_shard(made, "1/1").code == 0
    assert merge(made)[0] == 0


def test_plan__names_the_suite_that_is_invalid(tmp_path: Path) -> None:
    """The others run, as on one machine, and the outcome is invalid."""
    bad = suite("Bob", 6).replace("contains", "contain")
    made = make(tmp_path / "r", {"agent.sh": AGENT + "# same\n", "evals/two/EVAL.yaml": bad})
    done = command.run(made.path, *PLAN, "--max", "1")
    assert (done.code, json.loads(done.out)) == (0, {"shard": ["1/1"]})
    assert "no shard runs this suite, and the outcome is invalid" in done.err
    assert "evals/two/EVAL.yaml:" in done.err
    assert run_shard(made, "1/1").code == 0
    code, summary = merge(made)
    assert (code, summary["outcome"]) == (2, "invalid")
    assert summary["changes"]["unchanged"] == 8


@pytest.mark.parametrize(
    ("edit", "reason", "codes"),
    [
        (suite("Bob", 6).replace("contains", "contain"), "the evaluator type `contain`", {2}),
        (None, "8 tests of it cannot be found", {2}),
        (suite("Bob", 5), "1 test of it cannot be found", {0}),  # base has it: it may be removed
    ],
)
def test_shards__a_suite_that_lacks_tests_in_one_job_is_invalid(
    shards: Repository, edit: str | None, reason: str, codes: set[int]
) -> None:
    """Accident: a step of one job changes a suite, whose tests would be skipped. Attack: an install
    script removes a test in the job that merges."""
    shards.write({"evals/two/EVAL.yaml": edit})
    lacks = "`evals/two/EVAL.yaml` has not all tests of the plan in this job: "
    merged = command.run(shards.path, "merge", "--base", "main")
    assert (merged.code, lacks in merged.err, reason in merged.err) == (2, True, True)
    ran = [run_shard(shards, shard) for shard in ("1/2", "2/2")]
    assert {one.code for one in ran} == codes
    assert all((lacks in one.err) == (one.code == 2) for one in ran)


@pytest.mark.slow
def test_run__parts_of_all_machines_in_one_file_are_a_run(tmp_path: Path) -> None:
    calls = tmp_path / "calls"
    agent = f'read name; echo "$name" >> {calls}; echo "Good day, $name."\n'
    made = make(tmp_path / "r", {"agent.sh": agent})
    made.write({".gitignore": "/agentevals-report/\n/part*\n"})
    made.commit("parts")
    for number in (1, 2, 3):
        part = command.run(
            made.path, "run", "--shard", f"{number}/3", "--output", f"part{number}.jsonl"
        )
        assert part.code == 0, part.err
    asked = calls.read_text().splitlines()
    assert len(asked) == 16  # each test once, and no machine has all
    parts = [(made.path / f"part{number}.jsonl").read_text() for number in (1, 2, 3)]
    assert all(4 <= len(text.splitlines()) <= 6 for text in parts)
    turns = [text for text in parts if '"turn0"' in text and '"one"' in text]
    assert all('"turn1"' in text for text in turns)
    (made.path / "all.jsonl").write_text("".join(parts))
    whole = command.run(made.path, "run", "--resume", "--output", "all.jsonl", "--json")
    assert whole.code == 0, whole.err
    assert "16 of 16 tests are kept" in whole.err
    assert len(calls.read_text().splitlines()) == 16
    assert json.loads(whole.out)["testGlobs"] == []
    alone = command.run(made.path, "run", "--shard", "1/17")
    assert (alone.code, "divided into 14 parts" in alone.err) == (2, True)


@pytest.mark.slow
def test_shard__a_killed_shard_keeps_what_it_has(tmp_path: Path) -> None:
    """The agent of the last test waits until it is killed."""
    slow = 'read name; case $name in Bob5) touch waits; sleep 300;; esac; echo "Good day, $name."\n'
    made = make(tmp_path / "r", {"agent.sh": slow})
    assert plan(made, "--baseline", "none", most=1) == 1
    arguments = ("review", "--base", "main", "--shard", "1/1", "--baseline", "none")
    with command.start(made.path, *arguments) as process:
        while not (made.path / "waits").exists():
            assert process.poll() is None
            time.sleep(0.05)
        process.send_signal(signal.SIGTERM)
        process.wait(60)
    code, summary = merge(made, "--baseline", "none")
    assert (code, summary["outcome"]) == (3, "inconclusive")
    assert "interrupted by a signal" in reasons(summary)
