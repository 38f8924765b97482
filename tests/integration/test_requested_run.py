"""A run that a maintainer requests by a comment, end to end: the action's process, real git, GitHub's
API over HTTP."""

import re
from collections.abc import Iterator
from contextlib import nullcontext
from pathlib import Path
from typing import Any

import pytest

from agentevals_action.github.check_run import branch_digest, read_id
from agentevals_action.github.comment import AcceptedCommit, Marker, read_marker
from agentevals_action.github.run_requests import Refused, RunRequests, read_request
from agentevals_action.model.comparison import Outcome
from agentevals_action.reports.publication import CheckReport
from tests.support import github_jobs, payloads
from tests.support.gate import NUMBER, Gate
from tests.support.github_server import GitHubServer
from tests.support.github_world import ACTIONS, moment
from tests.support.greeter import FILES, GOOD, JUDGE
from tests.support.job import Finished, Job
from tests.support.repositories import Files, PullRequest, pull_request
from tests.support.stand_in import InjectedFailure

LABEL = "agentevals:accept"
RUDE = 'read name; echo "$name?"\n'
BASE: Files = FILES


class Requested(Gate):
    """A pull request of a stranger's fork."""

    def __init__(self, folder: Path, server: GitHubServer, pull: PullRequest) -> None:
        super().__init__(folder, server, pull, {"watch": "agent.sh"})
        self.announced.repository = "mallory/agent"
        self.announced.merge_sha = pull.merge
        self.announced.merge_parents = (pull.main, pull.head)
        server.world.permissions = {"ada": "write", "root": "admin", "eve": "read"}

    def comment(self, body: str = "", login: str = "ada", **facts: Any) -> Job:
        """The job of a comment (the valid command by default) on a checkout of the default branch,
        as `issue_comment` has it."""
        body = body or f"/agentevals run {self.pull.head[:7]}"
        event = payloads.issue_comment_event(body, login, moment(30), NUMBER, **facts)
        return self.job("issue_comment", event, self.pull.main)


def requested(folder: Path, server: GitHubServer, head: Files) -> Requested:
    return Requested(folder, server, pull_request(folder / "origin", BASE, head))


@pytest.fixture
def server() -> Iterator[GitHubServer]:
    with GitHubServer() as server:
        yield server


@pytest.fixture
def fine(tmp_path: Path, server: GitHubServer) -> Requested:
    return requested(tmp_path, server, {"agent.sh": f"{GOOD}# fine\n"})


def refused(done: Finished, sentence: str) -> None:
    assert done.code == 2, done.log
    assert sentence in done.log
    assert "The run was refused" in done.summary
    assert done.outputs == {"outcome": "invalid"}


def test_run__of_the_head_turns_its_check_green(fine: Requested) -> None:
    done = fine.comment(f"/agentevals run {fine.pull.head}\nThanks!").finish()
    assert done.code == 0, done.log
    assert fine.conclusions() == [(fine.pull.head, "success")]
    assert done.outputs["head-sha"] == fine.pull.head
    assert fine.server.world.reactions == [("IC_77", "EYES")]
    external = read_id(fine.server.check_runs[0].external_id)
    assert external
    assert (external.pull, external.requested_for) == (NUMBER, branch_digest("main"))


def test_run__uses_the_judges_of_head(tmp_path: Path, server: GitHubServer) -> None:
    """The person has read them."""
    head = {"agent.sh": RUDE, "evals/judges/polite.sh": "exit 0\n"}
    gate = requested(tmp_path, server, head)
    done = gate.comment().finish()
    assert done.code == 0, done.log
    assert "judges/polite.sh" in gate.server.comments[0].body  # named as a change


def test_run__of_an_old_branch_has_the_judges_of_the_base_branch_now(
    tmp_path: Path, server: GitHubServer
) -> None:
    """The pull request leaves main at a commit whose judge was weak."""
    weak = {**BASE, "evals/judges/polite.sh": "exit 0\n"}
    strict = {"evals/judges/polite.sh": JUDGE}
    pull = pull_request(tmp_path / "origin", weak, {"agent.sh": RUDE}, strict)
    gate = Requested(tmp_path, server, pull)
    done = gate.comment().finish()
    assert done.code == 1, done.log
    assert gate.conclusions() == [(pull.head, "failure")]


def test_run__setup_runs_in_the_tree_of_base(tmp_path: Path, server: GitHubServer) -> None:
    """`setup` is root in the container, and installs what a file of the tree names."""
    pull = pull_request(
        tmp_path / "origin",
        {**BASE, "install.sh": "echo installed by base\n"},
        {"agent.sh": f"{GOOD}# fine\n", "install.sh": "echo installed by head\n"},
    )
    job = Requested(tmp_path, server, pull).comment()
    job.inputs = {**job.inputs, "setup": "sh install.sh"}
    done = job.finish()
    assert done.code == 0, done.log
    assert "installed by base" in done.log
    assert "installed by head" not in done.log


def test_run__programs_of_head_get_no_key(tmp_path: Path, server: GitHubServer) -> None:
    spy = f'{GOOD}env > "{tmp_path}/seen"\n'
    gate = requested(tmp_path, server, {"agent.sh": spy})
    job = gate.comment()
    job.env = {"OPENAI_API_KEY": "sk-not-for-the-agent"}
    done = job.finish()
    assert done.code == 0, done.log
    seen = (tmp_path / "seen").read_text()
    assert "sk-not-for-the-agent" not in seen
    assert gate.server.token not in seen


def test_refusal__of_a_stranger_writes_nothing_in_the_pull_request(fine: Requested) -> None:
    refused(fine.comment(login="eve").finish(), "@eve has no write access to this repository")
    assert (fine.server.comments, fine.server.check_runs) == ((), ())
    assert fine.server.world.reactions == [("IC_77", "CONFUSED")]


def test_refusal__of_a_comment_is_answered(fine: Requested) -> None:
    sentence = "is not the head of the pull request"
    refused(fine.comment("/agentevals run abcdef0").finish(), sentence)
    (comment,) = fine.server.comments
    assert sentence in comment.body
    assert fine.server.check_runs == ()


def requests_of(gate: Requested, body: str = "", login: str = "ada", **facts: Any) -> RunRequests:
    body = body or f"/agentevals run {gate.pull.head[:7]}"
    request = read_request(payloads.issue_comment_event(body, login, moment(30), NUMBER, **facts))
    assert request
    return RunRequests(github_jobs.api(gate.server), request)


def ask(gate: Requested, **facts: Any) -> None:
    """Raises Refused for a request that is not valid."""
    requests = requests_of(gate, **facts)
    pull = requests.pull()
    requests.require_valid(pull)
    requests.merge_commit(pull)


@pytest.mark.parametrize(
    ("facts", "sentence"),
    [
        ({"login": "nobody"}, "@nobody has no write access to this repository"),
        ({"login": "helper[bot]"}, "a bot wrote the command"),
        ({"updated": moment(31)}, "the comment was edited"),
        ({"action": "edited"}, "the comment was edited"),
        ({"body": "/agentevals run"}, "the command is not valid"),
        ({"body": "/agentevals run abcdef"}, "with seven digits or more"),
        ({"body": "/agentevals run abcdef0 evals"}, "the command is not valid"),
        ({"body": "/agentevals stop"}, "the command is not valid"),
    ],
)
def test_refusal__of_a_command_states_the_reason(
    fine: Requested, facts: dict[str, Any], sentence: str
) -> None:
    with pytest.raises(Refused, match=re.escape(sentence)):
        ask(fine, **facts)


@pytest.mark.parametrize(
    ("changes", "sentence"),
    [
        ({"state": "closed"}, "the pull request is closed"),
        ({"state": "closed", "merged_at": moment(40)}, "the pull request is merged"),
        ({"mergeable": False}, "has a conflict with its base branch"),
    ],
)
def test_refusal__of_a_pull_request_states_the_reason(
    fine: Requested, changes: dict[str, Any], sentence: str
) -> None:
    vars(fine.announced).update(changes)
    with pytest.raises(Refused, match=sentence):
        ask(fine)


def test_refusal__of_a_head_that_moves_to_the_commit_of_the_command(fine: Requested) -> None:
    """Attack: the head moves back after that. What would run is the head that was read first."""
    requests = requests_of(fine)
    fine.announced.head_sha = "e" * 40
    pull = requests.pull()
    fine.announced.head_sha = fine.pull.head
    with pytest.raises(Refused, match=r"is not the head of the pull request \(e{12}\)"):
        requests.require_valid(pull)


@pytest.mark.parametrize(("minute", "is_refused"), [(29, False), (30, True), (31, True)])
def test_base_branch__that_was_changed_after_the_comment_is_refused(
    fine: Requested, minute: float, is_refused: bool
) -> None:
    event = {"event": "base_ref_changed", "created_at": moment(minute)}
    fine.announced.timeline += [{"event": "committed", "sha": "c" * 40}, event]
    expected = pytest.raises(Refused, match="changed after") if is_refused else nullcontext()
    with expected:
        ask(fine)


def test_check__of_a_run_whose_base_branch_was_changed_meanwhile_is_not_written(
    fine: Requested,
) -> None:
    job = github_jobs.pull_job(fine.pull.head, merge_sha=fine.pull.merge)
    report = CheckReport("success", "All tests passed", "Why.")
    host = github_jobs.host(fine.server, github_jobs.no_wait, job=job)
    fine.announced.base_ref = "release"
    assert host.write_check(report) is None
    assert fine.server.check_runs == ()
    assert "it would also count for the base branch `release`" in host.notices[0]
    fine.announced.base_ref = "main"
    assert host.write_check(report)
    assert fine.conclusions() == [(fine.pull.head, "success")]


def test_refusal__of_a_head_that_another_pull_request_has_too(fine: Requested) -> None:
    """Its check would count for both."""
    second = fine.server.add_pull(NUMBER + 1, fine.pull.head, fine.pull.main)
    second.base_ref = "release"
    with pytest.raises(Refused, match="has the same head, and the base branch `release`"):
        ask(fine)
    second.state = "closed"
    ask(fine)


def labeled(minute: float) -> dict[str, Any]:
    actor, label = payloads.user("grace"), {"name": LABEL}
    return {"event": "labeled", "created_at": moment(minute), "actor": actor, "label": label}


def forced(minute: float) -> dict[str, Any]:
    return {"event": "head_ref_force_pushed", "created_at": moment(minute)}


def claimed(gate: Requested, written: float) -> None:
    """Adds the comment about the claims of the head."""
    marker = Marker(id="agentevals", run=1, attempt=1, head=gate.pull.head, outcome=Outcome.FAILED)
    gate.server.add_comment(NUMBER, ACTIONS, marker.line()).updated_at = moment(written)


def test_label__in_a_requested_run_accepts_the_commit_that_it_was_added_for(
    tmp_path: Path, server: GitHubServer
) -> None:
    gate = requested(tmp_path, server, {"agent.sh": RUDE})
    gate.announced.labels = {LABEL}
    gate.announced.timeline = [labeled(20), forced(30), labeled(41)]
    claimed(gate, 40)
    done = gate.comment().finish()
    assert done.code == 0, done.log
    assert "1 regression accepted by `grace`" in done.log
    stored = read_marker(server.comments[-1].body)
    assert stored
    assert stored.accepted == AcceptedCommit(commit=gate.pull.head, by="grace")


@pytest.mark.parametrize(
    ("written", "timeline"),
    [
        (40, [labeled(39)]),  # for an older commit, or before anybody saw results
        (40, [labeled(41), forced(42)]),
        (40, []),
        (None, [labeled(41)]),
    ],
)
def test_label__of_another_commit_accepts_nothing(
    fine: Requested, written: float | None, timeline: list[dict[str, Any]]
) -> None:
    fine.announced.labels, fine.announced.timeline = {LABEL}, timeline
    if written is not None:
        claimed(fine, written)
    job = github_jobs.pull_job(fine.pull.head, merge_sha=fine.pull.merge)
    found = github_jobs.host(fine.server, github_jobs.no_wait, job=job).acceptance(LABEL)
    assert found
    assert "remove the label and add it again" in found.problem


@pytest.mark.parametrize("is_computed", [True, False])
def test_merge_commit__of_an_older_head_is_not_taken(
    server: GitHubServer, fine: Requested, is_computed: bool
) -> None:
    """GitHub makes the one of the head while it is asked for, or not within a minute."""
    fine.announced.merge_parents = (fine.pull.main, "e" * 40)
    if not is_computed:
        fine.announced.mergeable, fine.announced.merge_sha = None, None
    waits: list[float] = []

    def wait(seconds: float) -> None:
        waits.append(seconds)
        if len(waits) == 5:
            fine.announced.mergeable, fine.announced.merge_sha = True, fine.pull.merge
            fine.announced.merge_parents = (fine.pull.main, fine.pull.head)

    event = payloads.issue_comment_event("/agentevals run abcdef0", number=NUMBER)
    request = read_request(event)
    assert request
    requests = RunRequests(github_jobs.api(server, wait), request)
    pull = requests.pull()
    assert requests.merge_commit(pull) == (fine.pull.merge, fine.pull.main)
    assert waits == [3] * 5
    fine.announced.merge_parents = ("e" * 40, fine.pull.head)
    with pytest.raises(Refused, match="no merge commit of the head and the tip"):
        requests.merge_commit(pull)
    assert sum(waits[5:]) == 60


def test_run__without_a_permission_names_it(fine: Requested) -> None:
    fine.server.permissions["contents"] = "none"
    done = fine.comment().finish()
    assert done.code == 3, done.log
    assert "the token lacks `contents: read`" in done.log
    assert fine.server.check_runs == ()
    assert done.outputs == {"outcome": "inconclusive"}


@pytest.mark.parametrize(
    ("status", "body", "reason"),
    [
        (403, {"message": "Forbidden"}, "the token lacks `contents: read`"),
        (200, {"permission": ["admin"]}, "GitHub did not respond correctly"),
    ],
)
def test_run__by_an_author_with_unknown_rights_is_inconclusive(
    fine: Requested, status: int, body: object, reason: str
) -> None:
    fine.server.break_route(InjectedFailure("/permission$", status, body=body))
    done = fine.comment().finish()
    assert done.code == 3, done.log
    assert f"the rights of @ada could not be read: {reason}" in done.log
    assert fine.server.check_runs == ()


@pytest.mark.parametrize(
    ("body", "facts"),
    [
        ("> /agentevals run abcdef0", {}),
        ("see\n/agentevals run abcdef0", {}),
        ("/agentevals run abcdef0", {"action": "deleted"}),
        ("/agentevals run abcdef0", {"on_pull": False}),
    ],
)
def test_text__without_a_command_is_no_request(body: str, facts: dict[str, Any]) -> None:
    assert read_request(payloads.issue_comment_event(body, **facts)) is None


def test_text__without_a_command_does_nothing(fine: Requested) -> None:
    done = fine.comment("Looks good.").finish()
    assert done.code == 0, done.log
    assert fine.server.requests == []
