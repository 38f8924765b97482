"""A run that a maintainer requests by a comment, end to end: the action's process, real git, GitHub's
API over HTTP."""

from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from agentevals_action.github.check_run import branch_digest, read_id
from agentevals_action.github.comment import AcceptedCommit, Marker, read_marker
from agentevals_action.github.run_requests import Refused, RunRequests, read_request
from agentevals_action.model.review import Outcome
from tests.support import github_jobs, payloads
from tests.support.github_server import GitHubServer
from tests.support.github_world import ACTIONS, moment
from tests.support.greeter import FILES, GOOD, JUDGE
from tests.support.job import Finished, Job
from tests.support.repositories import Files, PullRequest, pull_request

NUMBER = 7
RUDE = 'read name; echo "$name?"\n'
BASE: Files = FILES


class Requested:
    """A pull request of a stranger's fork."""

    def __init__(self, folder: Path, server: GitHubServer, pull: PullRequest) -> None:
        self.folder, self.server, self.pull = folder, server, pull
        self.announced = server.add_pull(NUMBER, pull.head, pull.main)
        self.announced.repository = "mallory/agent"
        self.announced.merge_sha = pull.merge
        self.announced.merge_parents = (pull.main, pull.head)
        server.world.permissions = {"ada": "write", "root": "admin", "eve": "read"}

    def comment(self, body: str = "", login: str = "ada", **facts: Any) -> Job:
        """The job of a comment (the valid command by default) on a checkout of the default branch,
        as `issue_comment` has it."""
        body = body or f"/agentevals run {self.pull.head[:7]}"
        event = payloads.issue_comment_event(body, login, moment(30), NUMBER, **facts)
        workspace = self.pull.checkout(self.folder / "workspace", self.pull.main, 2)
        return Job(
            workspace.path,
            self.server,
            event,
            self.pull.main,
            self.folder / "runner",
            name="issue_comment",
            inputs={"watch": "agent.sh"},
        )

    def conclusions(self) -> list[tuple[str, str | None]]:
        return [(check.head_sha, check.conclusion) for check in self.server.check_runs]


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
    done = Requested(tmp_path, server, pull).comment().finish()
    assert done.code == 1, done.log
    assert [(one.head_sha, one.conclusion) for one in server.check_runs] == [(pull.head, "failure")]


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


@pytest.mark.parametrize(
    ("login", "sentence"),
    [
        ("eve", "@eve has no write access to this repository"),
        ("nobody", "@nobody has no write access to this repository"),
        ("helper[bot]", "a bot wrote the command"),
    ],
)
def test_refusal__of_a_stranger_writes_nothing_in_the_pull_request(
    fine: Requested, login: str, sentence: str
) -> None:
    refused(fine.comment(login=login).finish(), sentence)
    assert (fine.server.comments, fine.server.check_runs) == ((), ())
    assert fine.server.world.reactions == [("IC_77", "CONFUSED")]


@pytest.mark.parametrize(
    ("facts", "sentence"),
    [
        ({"updated": moment(31)}, "the comment was edited"),
        ({"action": "edited"}, "the comment was edited"),
        ({"body": "/agentevals run"}, "the command is not valid"),
        ({"body": "/agentevals run abcdef"}, "with seven digits or more"),
        ({"body": "/agentevals run abcdef0 evals"}, "the command is not valid"),
        ({"body": "/agentevals stop"}, "the command is not valid"),
        ({"body": "/agentevals run abcdef0"}, "is not the head of the pull request"),
    ],
)
def test_refusal__of_a_comment_is_answered(
    fine: Requested, facts: dict[str, Any], sentence: str
) -> None:
    refused(fine.comment(**facts).finish(), sentence)
    (comment,) = fine.server.comments
    assert sentence in comment.body.replace("`", "")
    assert fine.server.check_runs == ()


@pytest.mark.parametrize("merged_at", [None, moment(40)])
def test_refusal__of_a_closed_pull_request(fine: Requested, merged_at: str | None) -> None:
    fine.announced.state, fine.announced.merged_at = "closed", merged_at
    word = "merged" if merged_at else "closed"
    refused(fine.comment().finish(), f"the pull request is {word}")


@pytest.mark.parametrize(("minute", "code"), [(29, 0), (30, 2), (31, 2)])
def test_base_branch__that_was_changed_after_the_comment_is_refused(
    fine: Requested, minute: float, code: int
) -> None:
    event = {"event": "base_ref_changed", "created_at": moment(minute)}
    fine.announced.timeline += [{"event": "committed", "sha": "c" * 40}, event]
    done = fine.comment().finish()
    assert done.code == code, done.log
    assert ("was changed after the comment" in done.log) == bool(code)


def labeled(minute: float) -> dict[str, Any]:
    actor, label = payloads.user("grace"), {"name": "agentevals:accept"}
    return {"event": "labeled", "created_at": moment(minute), "actor": actor, "label": label}


def forced(minute: float) -> dict[str, Any]:
    return {"event": "head_ref_force_pushed", "created_at": moment(minute)}


@pytest.mark.parametrize(
    ("written", "timeline", "accepts"),
    [
        (40, [labeled(20), forced(30), labeled(41)], True),
        (40, [labeled(39)], False),  # for an older commit, or before anybody saw results
        (40, [labeled(41), forced(42)], False),
        (40, [], False),
        (None, [labeled(41)], False),
    ],
)
def test_label__in_a_requested_run_accepts_the_commit_that_it_was_added_for(
    tmp_path: Path,
    server: GitHubServer,
    written: float | None,
    timeline: list[dict[str, Any]],
    accepts: bool,
) -> None:
    gate = requested(tmp_path, server, {"agent.sh": RUDE})
    gate.announced.labels, gate.announced.timeline = {"agentevals:accept"}, timeline
    if written is not None:
        marker = Marker(
            id="agentevals", run=1, attempt=1, head=gate.pull.head, outcome=Outcome.FAILED
        )
        claims = server.add_comment(NUMBER, ACTIONS, marker.line())
        claims.updated_at = moment(written)
    done = gate.comment().finish()
    assert done.code == (0 if accepts else 1), done.log
    assert ("1 regression accepted by @grace" in done.log) == accepts
    assert ("remove the label and add it again" in done.log) != accepts
    stored = read_marker(server.comments[-1].body)
    assert stored
    accepted = AcceptedCommit(commit=gate.pull.head, by="grace")
    assert stored.accepted == (accepted if accepts else None)


def test_refusal__of_a_conflict(fine: Requested) -> None:
    fine.announced.mergeable = False
    refused(fine.comment().finish(), "has a conflict with its base branch")


def test_merge_commit__of_an_older_head_is_not_taken(server: GitHubServer, fine: Requested) -> None:
    """GitHub makes the one of the head while it is asked for, or not within a minute."""
    fine.announced.merge_parents = (fine.pull.main, "e" * 40)
    waits: list[float] = []

    def wait(seconds: float) -> None:
        waits.append(seconds)
        if len(waits) == 5:
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
    ("body", "facts"),
    [
        ("Looks good.", {}),
        ("> /agentevals run abcdef0", {}),
        ("see\n/agentevals run abcdef0", {}),
        ("/agentevals run abcdef0", {"action": "deleted"}),
        ("/agentevals run abcdef0", {"on_pull": False}),
    ],
)
def test_text__without_a_command_does_nothing(
    fine: Requested, body: str, facts: dict[str, Any]
) -> None:
    done = fine.comment(body, **facts).finish()
    assert done.code == 0, done.log
    assert fine.server.requests == []
