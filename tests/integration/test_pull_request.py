"""A pull request is gated, end to end: the action's process, real git at depth 1, GitHub's API over
HTTP."""

import json
import signal
import subprocess
import time
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from tests.support import command, payloads
from tests.support.github_server import GitHubServer, InjectedFailure
from tests.support.github_world import Account
from tests.support.job import Job
from tests.support.repositories import Files, PullRequest, pull_request

SUITE = """\
name: greeter
tests:
  - id: greets
    criteria: greets by name
    input: Ada
    assert:
      - {name: polite, type: contains, value: "Good day"}
      - name: by-name
        type: contains
        value: Ada
        required: true
  - id: short
    criteria: is short
    input: Bob
    assert:
      - {type: regex, value: "^.{0,40}$"}
"""
GATE_LINE = 7
TARGETS = "targets:\n  - {name: default, provider: cli, command: [sh, agent.sh], cwd: /}\n"
GOOD = 'read name; echo "Good day, $name."\n'
NAMELESS = 'read name; echo "Good day."\n'
NUMBER = 7

BASE: Files = {"evals/EVAL.yaml": SUITE, ".agentv/targets.yaml": TARGETS, "agent.sh": GOOD}


class Gate:
    """A pull request and what GitHub knows of it."""

    def __init__(self, folder: Path, server: GitHubServer, pull: PullRequest) -> None:
        self.folder, self.server = folder, server
        self.pull = pull.copy(folder / "origin")
        self.runs = 1000
        self.announce(self.pull)

    def announce(self, pull: PullRequest) -> None:
        """The pull request on GitHub from now on."""
        self.pull = pull
        self.server.add_pull(NUMBER, pull.head, pull.main)

    def push(self, files: Files) -> None:
        """Another commit on the pull request's branch."""
        origin = self.pull.origin
        origin.git("checkout", "--quiet", "feature")
        head = origin.commit("another", files)
        merge = origin.merge_for_pull(self.pull.main, head)
        origin.git("checkout", "--quiet", "main")
        self.announce(PullRequest(origin, self.pull.base, self.pull.main, head, merge))

    def job(
        self, sha: str | None = None, depth: int = 2, *, confirm: str = "0", **settings: Any
    ) -> Job:
        """The next run of the workflow, on a fresh checkout of the merge commit. Its base is there
        (a depth of 1 makes the action fetch it), and one sample decides: tests of other things need
        neither git's processes nor the agent's."""
        self.runs += 1
        folder = self.folder / str(self.runs)
        fork, dependabot = (
            bool(settings.pop("fork", False)),
            bool(settings.pop("dependabot", False)),
        )
        sha = sha or self.pull.merge
        settings["inputs"] = {"confirm": confirm, **settings.get("inputs", {})}
        workspace = self.pull.checkout(folder / "workspace", sha, depth)
        event = payloads.pull_request_event(
            self.pull.head, self.pull.main, NUMBER, fork=fork, dependabot=dependabot
        )
        return Job(
            workspace.path,
            self.server,
            event,
            self.pull.merge,
            folder / "runner",
            run=self.runs,
            **settings,
        )

    def shown(self) -> list[str]:
        """Our comments that are not minimised."""
        return [comment.body for comment in self.server.comments if not comment.minimised]


@pytest.fixture(scope="module")
def nameless(tmp_path_factory: pytest.TempPathFactory) -> PullRequest:
    return pull_request(tmp_path_factory.mktemp("nameless"), BASE, {"agent.sh": NAMELESS})


@pytest.fixture
def gate(tmp_path: Path, nameless: PullRequest) -> Iterator[Gate]:
    with GitHubServer() as server:
        yield Gate(tmp_path, server, nameless)


def test_gate__a_broken_required_gate_blocks(gate: Gate) -> None:
    done = gate.job(depth=1, confirm="6").finish()
    assert done.code == 1, done.log
    (body,) = gate.shown()
    assert "[!CAUTION]" in body
    (check,) = gate.server.check_runs
    assert (check.head_sha, check.status, check.conclusion) == (
        gate.pull.head,
        "completed",
        "failure",
    )
    failures = [one for one in check.annotations if one["annotation_level"] == "failure"]
    assert [(one["path"], one["start_line"]) for one in failures] == [
        ("evals/EVAL.yaml", GATE_LINE + 1)
    ]
    assert done.outputs["outcome"] == "failed"
    assert (done.outputs["passed"], done.outputs["failed"], done.outputs["regressions"]) == (
        "1",
        "1",
        "1",
    )
    assert (done.outputs["head-sha"], done.outputs["base-sha"]) == (gate.pull.head, gate.pull.main)
    assert "#issuecomment-" in done.outputs["comment-url"]
    assert "by-name" in done.summary


def test_gate__a_gate_relaxed_beside_a_broken_agent_is_named(gate: Gate) -> None:
    relaxed = SUITE.replace("value: Ada", "value: Good")
    gate.push({"evals/EVAL.yaml": relaxed})
    done = gate.job().finish()
    assert done.code == 0, done.log
    assert "required gate `by-name` of `greets` changed at `evals/EVAL.yaml:8`" in done.log
    assert "with base's it would fail `by-name`" in done.log
    (check,) = gate.server.check_runs
    only = "1 test passes only with the changed evaluators; 1 required gate was changed."
    assert all(only in text for text in (done.log, done.summary, str(check.title)))


def test_gate__a_fix_turns_both_green_in_the_same_comment(gate: Gate) -> None:
    gate.job().finish()
    gate.push({"agent.sh": GOOD + "# fixed\n"})
    done = gate.job().finish()
    assert done.code == 0, done.log
    assert len(gate.server.comments) == 1
    assert "Passed" in gate.shown()[0]
    assert [(check.head_sha, check.conclusion) for check in gate.server.check_runs][-1] == (
        gate.pull.head,
        "success",
    )


def test_gate__no_suite_touched_is_a_passed_check_with_the_reason(gate: Gate) -> None:
    gate.push({"agent.sh": GOOD, "README.md": "hello"})
    done = gate.job().finish()
    assert done.code == 0, done.log
    (check,) = gate.server.check_runs
    assert check.conclusion == "success"
    assert "the change affects no suite" in str(check.summary) + str(check.title)
    assert "lists of changed files differ" not in done.log


def test_gate__a_base_that_cannot_be_fetched_is_inconclusive_with_advice(gate: Gate) -> None:
    gate.push({"agent.sh": GOOD + "# fine\n"})
    job = gate.job(depth=1)
    (job.workspace / ".git/config").write_text(
        (job.workspace / ".git/config").read_text().replace("origin", "gone")
    )
    done = job.finish()
    assert done.code == 3, done.log
    assert "fetch-depth: 2" in gate.shown()[0]
    assert gate.server.check_runs[0].conclusion == "failure"


def test_gate__a_suite_with_faults_is_annotated_where_they_stand(gate: Gate) -> None:
    broken = SUITE.replace("        type: contains", "        type: contians")
    gate.push({"evals/EVAL.yaml": broken})
    done = gate.job().finish()
    assert done.code == 2
    (check,) = gate.server.check_runs
    assert [(one["path"], one["start_line"]) for one in check.annotations] == [
        ("evals/EVAL.yaml", GATE_LINE + 2)
    ]
    assert done.outputs["outcome"] == "invalid"


def test_gate__no_permission_still_blocks_and_names_it(gate: Gate) -> None:
    gate.server.permissions |= {"pull-requests": "read", "issues": "read", "checks": "read"}
    done = gate.job().finish()
    assert done.code == 1
    assert gate.server.comments == ()
    assert f"::error file=evals/EVAL.yaml,line={GATE_LINE + 1}," in done.log
    assert "checks: write" in done.summary
    assert "pull-requests: write" in done.summary


def test_gate__a_fork_without_secrets_is_inconclusive_and_names_the_variable(gate: Gate) -> None:
    targets = (
        "targets:\n  - {name: default, provider: openai, model: m, api_key: '${{ AGENT_KEY }}'}\n"
    )
    gate.push({".agentv/targets.yaml": targets})
    done = gate.job(fork=True).finish()
    assert done.code == 3, done.log
    assert "AGENT_KEY" in done.log
    assert gate.server.check_runs[-1].conclusion == "action_required"
    assert f"`/agentevals run {gate.pull.head[:12]}`" in gate.shown()[-1]
    at_home = gate.job().finish()
    assert at_home.code == 2
    assert "AGENT_KEY" in at_home.log


def test_gate__pull_request_target_is_refused_with_a_check_and_an_outcome(gate: Gate) -> None:
    job = gate.job()
    job.name, job.sha = "pull_request_target", gate.pull.main
    done = job.finish()
    assert (done.code, done.outputs["outcome"]) == (2, "invalid"), done.log
    assert "::error::the event `pull_request_target` is refused" in done.log
    assert "the event `pull_request_target` is refused" in done.summary
    (check,) = gate.server.check_runs
    assert (check.head_sha, check.status, check.conclusion) == (
        *(gate.pull.head, "completed", "failure"),
    )
    assert gate.shown() == []


def test_gate__an_event_without_a_commit_has_an_outcome(gate: Gate) -> None:
    job = gate.job()
    job.event = {"pull_request": {"number": "seven"}}
    done = job.finish()
    assert (done.code, done.outputs["outcome"]) == (2, "invalid"), done.log
    assert "no valid value at" in done.log
    assert not gate.server.check_runs


def test_gate__invalid_inputs_are_all_reported_at_once(gate: Gate) -> None:
    inputs = {"samples": "many", "strict": "yes", "fail-on": "gatez", "check-name": "our gate"}
    done = gate.job(inputs=inputs).finish()
    assert (done.code, done.outputs["outcome"]) == (2, "invalid"), done.log
    (check,) = gate.server.check_runs
    assert (check.name, check.head_sha) == ("our gate", gate.pull.head)
    assert (check.status, check.conclusion) == ("completed", "failure")
    for name in ("samples", "strict", "fail-on"):
        assert f"::error::input `{name}`" in done.log
        assert name in gate.shown()[0]
        assert name in (check.summary or "")


def test_gate__a_strangers_comment_with_our_marker_is_left_alone(gate: Gate) -> None:
    gate.job().finish()
    copied = gate.shown()[0]
    gate.server.world.comments.clear()
    theirs = gate.server.add_comment(NUMBER, Account("mallory", 102), copied)
    gate.job().finish()
    assert theirs.body == copied
    assert len(gate.server.comments) == 2


@pytest.mark.slow
def test_gate__failures_of_github_do_not_change_the_outcome(gate: Gate) -> None:
    gate.server.break_route(
        InjectedFailure("POST .*/check-runs", 429, headers={"Retry-After": "0"})
    )
    gate.server.break_route(
        InjectedFailure("POST .*/comments", 502, 1, "Bad gateway", {}, after_write=True)
    )
    done = gate.job().finish()
    assert done.code == 1, done.log
    assert len(gate.server.comments) == 1
    assert [check.conclusion for check in gate.server.check_runs] == ["failure"]


#: What a program does to a file of the runner, which it knows.
ATTACKS_ON_OUTPUTS = {
    "an output": "printf 'outcome=passed\\n' >> FILE",
    "a fifo": "rm FILE; mkfifo FILE",
    "a device": "rm FILE; ln -s /dev/zero FILE",
    "no file": "rm FILE",
}


@pytest.mark.slow
@pytest.mark.parametrize("name", ["github_output", "github_step_summary"])
@pytest.mark.parametrize("attack", ATTACKS_ON_OUTPUTS)
def test_gate__an_agent_that_attacks_a_file_of_the_runner_changes_nothing(
    gate: Gate, name: str, attack: str
) -> None:
    path = gate.folder / "1001" / "runner" / name
    action = ATTACKS_ON_OUTPUTS[attack].replace("FILE", f'"{path}"')
    gate.push({"agent.sh": f'test -e "{path}" && {{ {action}; }}\n{NAMELESS}'})
    done = gate.job(inputs={"max-concurrency": "1"}).finish()
    assert (done.code, done.outputs["outcome"]) == (1, "failed"), done.log
    assert "passed" not in done.outputs.values()
    assert "**Failed:**" in done.summary
    assert "outcome=passed" not in done.summary


def test_gate__merge_group_gets_its_check(gate: Gate) -> None:
    job = gate.job()
    job.name, job.event = "merge_group", payloads.merge_group_event(gate.pull.merge, gate.pull.main)
    done = job.finish()
    assert done.code == 1, done.log
    assert [(check.head_sha, check.conclusion) for check in gate.server.check_runs] == [
        (gate.pull.merge, "failure")
    ]
    assert gate.server.comments == ()


def test_gate__another_event_writes_the_summary_alone(gate: Gate) -> None:
    job = gate.job()
    job.name, job.event = "release", {"action": "published"}
    done = job.finish()
    assert done.code == 1
    assert gate.server.check_runs == ()
    assert "greets" in done.summary


def test_gate__the_log_has_no_command_of_an_agent_and_no_secret(gate: Gate) -> None:
    evil = 'read name; printf "::add-mask::Good day\\n::error::gotcha %s $AGENT_TOKEN\\n" "$name" >&2; exit 3\n'
    gate.push({"agent.sh": evil})
    secret = "ghp_ThisIsASecretOfTheAgent"
    done = gate.job(env={"AGENT_TOKEN": secret}, inputs={"env": "AGENT_TOKEN"}).finish()
    assert done.code == 3, done.log
    everything = done.log + done.summary + "".join(gate.shown()) + str(gate.server.check_runs)
    assert secret not in everything
    assert gate.server.token not in done.log
    own = ("::group::", "::endgroup::", "::warning", "::error file=")
    assert [
        line
        for line in done.log.splitlines()
        if line.lstrip().startswith("::") and not line.startswith(own)
    ] == []


def test_gate__a_report_folder_that_is_a_trap_is_reported_everywhere(gate: Gate) -> None:
    gate.push({"agentevals-report/results.jsonl/file": "x"})
    done = gate.job().finish()
    assert done.code == 2, done.log
    assert "report-dir" in gate.shown()[0]
    assert done.outputs["outcome"] == "invalid"
    assert gate.server.check_runs[0].conclusion == "failure"


#: An agent without a process.
MOCK = "targets:\n  - {name: default, provider: mock, response: Good day}\n"


def many(number: int) -> str:
    return "name: greeter\ntests:\n" + "".join(
        f"  - {{id: t{index}, input: x, assert: [{{type: contains, value: Good}}]}}\n"
        for index in range(number)
    )


@pytest.mark.parametrize(
    ("wish", "code", "conclusion"),
    [("fail", 3, "failure"), ("neutral", 0, "neutral")],
    ids=["fail", "neutral"],
)
def test_gate__a_full_disk_makes_a_pass_inconclusive_and_is_reported_everywhere(
    gate: Gate, wish: str, code: int, conclusion: str
) -> None:
    suite = {"evals/EVAL.yaml": many(60), ".agentv/targets.yaml": MOCK}
    gate.push(suite)
    done = gate.job(
        kilobytes=32,
        inputs={"on-inconclusive": wish, "baseline": "none"},
        env={"PYTHONDONTWRITEBYTECODE": "1"},
    ).finish()
    assert done.code == code, done.log
    (body,) = gate.shown()
    assert "> [!WARNING]\n> **Inconclusive:** " in body
    assert "results.jsonl cannot be written: File too large" in body
    assert "invalid" not in body.lower()
    (check,) = gate.server.check_runs
    assert (check.status, check.conclusion) == ("completed", conclusion)
    assert done.outputs["outcome"] == "inconclusive"
    assert (done.outputs["passed"], done.outputs["pass-rate"]) == ("60", "1.0000")
    assert "check that the disk has free space" in done.summary
    assert "Traceback" not in done.log


@pytest.mark.parametrize("wish", ["fail", "neutral", "pass"])
def test_gate__a_full_disk_hides_no_failure(gate: Gate, wish: str) -> None:
    failing = many(60) + (
        "  - {id: broken, input: x, assert: [{type: contains, value: never, required: true}]}\n"
    )
    suite = {"evals/EVAL.yaml": failing, ".agentv/targets.yaml": MOCK}
    gate.push(suite)
    done = gate.job(
        kilobytes=32,
        inputs={"on-inconclusive": wish, "baseline": "none"},
        env={"PYTHONDONTWRITEBYTECODE": "1"},
    ).finish()
    assert (done.code, done.outputs["outcome"]) == (1, "failed"), done.log
    assert [check.conclusion for check in gate.server.check_runs] == ["failure"]
    assert "results.jsonl cannot be written: File too large" in done.summary


#: What an agent does to the report folder, and a part of the problem that follows.
ATTACKS_ON_RESULTS = {
    "rewritten": ("echo '{}' > agentevals-report/results.jsonl", ""),
    "a fifo": ("rm -f $RESULTS; mkfifo $RESULTS", ""),
    "a fifo for base": ("mkfifo agentevals-report/base.jsonl", ""),
    "a fifo for a report": ("mkfifo agentevals-report/comment.md", ""),
    "a device": ("ln -sf /dev/full $RESULTS", ""),
    "a link": ("ln -sf ../agent.sh $RESULTS", ""),
    "a folder": ("rm -f $RESULTS; mkdir $RESULTS", "results.jsonl cannot be written"),
    "no folder": ("rm -rf agentevals-report", ""),
}


@pytest.mark.parametrize("attack", ATTACKS_ON_RESULTS)
def test_gate__an_agent_that_attacks_the_results_changes_no_failure(
    gate: Gate, attack: str
) -> None:
    action, notice = ATTACKS_ON_RESULTS[attack]
    action = action.replace("$RESULTS", "agentevals-report/results.jsonl")
    gate.push({"agent.sh": f"{action}\n{NAMELESS}"})
    job = gate.job(inputs={"max-concurrency": "1", "on-inconclusive": "pass"})
    (job.workspace.parent / "outside").mkdir()
    done = job.finish()
    assert (done.code, done.outputs["outcome"]) == (1, "failed"), done.log
    assert [check.conclusion for check in gate.server.check_runs] == ["failure"]
    assert notice in gate.shown()[0]
    assert list((job.workspace.parent / "outside").iterdir()) == []
    assert (job.workspace / "agent.sh").read_text().startswith(action)
    if "cannot be written" not in notice:
        rows = (job.workspace / "agentevals-report/results.jsonl").read_text().splitlines()
        assert [json.loads(row)["verdict"] for row in rows] == ["fail", "pass"]


def test_gate__a_program_that_cannot_be_started_is_named_even_if_its_check_is_green(
    gate: Gate,
) -> None:
    """`on-inconclusive: pass` is what the workflow asks for; the outcome is not `passed`."""
    targets = TARGETS.replace("[sh, agent.sh]", "[no-such-program, agent.sh]")
    gate.push({".agentv/targets.yaml": targets})
    done = gate.job(inputs={"on-inconclusive": "pass"}).finish()
    assert (done.code, done.outputs["outcome"]) == (0, "inconclusive"), done.log
    (check,) = gate.server.check_runs
    assert check.conclusion == "success"
    assert (check.title or "").startswith("Inconclusive: ")
    assert "no-such-program" in gate.shown()[0]


def test_gate__a_report_folder_that_leads_out_of_the_workspace_is_not_written(gate: Gate) -> None:
    gate.push({"agent.sh": NAMELESS + "#"})
    job = gate.job()
    (job.workspace.parent / "outside").mkdir()
    (job.workspace / "agentevals-report").symlink_to("../outside")
    done = job.finish()
    assert (done.code, done.outputs["outcome"]) == (2, "invalid"), done.log
    assert "leads out of the workspace" in gate.shown()[0]
    assert list((job.workspace.parent / "outside").iterdir()) == []


@pytest.mark.parametrize("moment", [0.05, 0.15, 0.3])
def test_gate__sigterm_at_any_moment_leaves_no_check_in_progress(gate: Gate, moment: float) -> None:
    process = gate.job().start()
    try:
        process.wait(moment)
    except subprocess.TimeoutExpired:
        process.send_signal(signal.SIGTERM)
    log, _ = process.communicate(timeout=30)
    assert process.returncode in (1, 143, -signal.SIGTERM), log
    assert all(check.status == "completed" for check in gate.server.check_runs), log


def begun(job: Job, process: command.Process, mark: Path) -> None:
    deadline = time.monotonic() + 60
    while not mark.exists():
        assert process.poll() is None, process.communicate()
        assert time.monotonic() < deadline
        time.sleep(0.02)


def slow(gate: Gate, mark: Path) -> None:
    gate.push(
        {
            "agent.sh": f'read name; touch "{mark}"; test -f "{mark}.go" || sleep 60; echo "Good day, $name."\n'
        },
    )


@pytest.mark.parametrize("number", [signal.SIGTERM, signal.SIGINT])
def test_gate__a_signal_writes_a_cancelled_check(
    gate: Gate, tmp_path: Path, number: signal.Signals
) -> None:
    slow(gate, tmp_path / "mark")
    job = gate.job()
    process = job.start()
    begun(job, process, tmp_path / "mark")
    assert not gate.server.check_runs
    process.send_signal(number)
    log, _ = process.communicate(timeout=20)
    assert process.returncode == 128 + number, log
    assert [check.conclusion for check in gate.server.check_runs] == ["cancelled"]
    worktrees = subprocess.run(
        ["git", "worktree", "list"], cwd=job.workspace, capture_output=True, text=True, check=True
    )
    assert len(worktrees.stdout.splitlines()) == 1


def test_gate__sigterm_leaves_the_results_so_far(gate: Gate, tmp_path: Path) -> None:
    slow = f'read name; test "$name" = Bob && touch "{tmp_path}/mark" && sleep 60; echo "$name"\n'
    gate.push({"agent.sh": slow})
    job = gate.job(inputs={"max-concurrency": "1", "baseline": "none"})
    process = job.start()
    begun(job, process, tmp_path / "mark")
    process.send_signal(signal.SIGTERM)
    process.communicate(timeout=20)
    rows = (job.workspace / "agentevals-report/results.jsonl").read_text().splitlines()
    assert [json.loads(row)["evalId"] for row in rows] == ["greets"]
