"""A run that a maintainer requests by a comment or a review, end to end: the action's process, real
git, GitHub's API over HTTP."""

from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import Any

import pytest

from tests.support import payloads
from tests.support.github_server import GitHubServer
from tests.support.github_timeline import moment
from tests.support.github_world import file
from tests.support.greeter import FILES, GOOD, JUDGE, SUITE
from tests.support.job import Finished, Job
from tests.support.repositories import Files, PullRequest, pull_request

NUMBER = 7
OTHER = "name: other\ntests:\n  - {id: one, input: Eve, assert: [{type: contains, value: Eve}]}\n"
RUDE = 'read name; echo "$name?"\n'
BASE: Files = {**FILES, "other/EVAL.yaml": OTHER}


class Requested:
    """A pull request of a stranger's fork, which a maintainer has read at minute 20."""

    def __init__(self, folder: Path, server: GitHubServer, pull: PullRequest) -> None:
        self.folder, self.server, self.pull = folder, server, pull
        self.announced = server.add_pull(NUMBER, pull.head, pull.main, [file("agent.sh")])
        self.announced.repository = "mallory/agent"
        self.announced.merge_sha = pull.merge
        server.world.merge_base = pull.base
        server.world.permissions = {"ada": "write", "root": "admin", "eve": "read"}
        server.timeline.push(NUMBER, pull.head, 10)
        self.first_phase(pull.head, 10)

    def first_phase(self, sha: str, minute: float, run: int = 500, **facts: Any) -> None:
        """The run that the push of a head started."""
        made = {
            "event": "pull_request",
            "head_branch": "feature",
            "head_repository": {"id": 2, "full_name": "mallory/agent"},
            "created_at": moment(minute),
        }
        self.server.history.add_run(run, sha, **(made | facts))

    def comment(self, body: str, login: str = "ada", minute: float = 30, **facts: Any) -> Job:
        return self.job(
            "issue_comment",
            payloads.issue_comment_event(body, login, moment(minute), NUMBER, **facts),
        )

    def review(self, body: str, **facts: Any) -> Job:
        self.announced.repository = ""
        event = payloads.pull_request_review_event(body, self.pull.head, self.pull.main, **facts)
        return self.job("pull_request_review", event)

    def job(self, name: str, event: Mapping[str, Any]) -> Job:
        """The job on a checkout of the default branch, as `issue_comment` has it."""
        workspace = self.pull.checkout(self.folder / "workspace", self.pull.main, 2)
        inputs = {"watch": "agent.sh"}
        return Job(
            workspace.path,
            self.server,
            event,
            self.pull.main,
            self.folder / "runner",
            name=name,
            inputs=inputs,
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
def rude(tmp_path: Path, server: GitHubServer) -> Requested:
    """The agent is impolite, and the pull request makes its judge pass that."""
    return requested(tmp_path, server, {"agent.sh": RUDE, "evals/judges/polite.sh": "exit 0\n"})


@pytest.fixture
def fine(tmp_path: Path, server: GitHubServer) -> Requested:
    return requested(tmp_path, server, {"agent.sh": f"{GOOD}# fine\n"})


def refused(done: Finished, sentence: str) -> None:
    assert done.code == 2, done.log
    assert sentence in done.log
    assert "The run was refused" in done.summary
    assert done.outputs == {"outcome": "invalid"}


def test_run__base_judges_the_answers_of_head(rude: Requested) -> None:
    done = rude.comment("/agentevals run").finish()
    assert done.code == 1, done.log
    assert rude.conclusions() == [(rude.pull.head, "failure")]
    assert done.outputs["head-sha"] == rude.pull.head
    assert (done.outputs["passed"], done.outputs["failed"]) == ("2", "1")
    assert rude.server.world.reactions == [("IC_77", "EYES")]
    (comment,) = rude.server.comments
    assert "a maintainer requested this run" in comment.body
    assert "judges/polite.sh" in comment.body  # named as a change


def test_run__trust_head_uses_the_judges_of_head(rude: Requested) -> None:
    job = rude.comment("/agentevals run")
    job.inputs = {**job.inputs, "trust-head": "true"}
    done = job.finish()
    assert done.code == 0, done.log
    assert "a maintainer requested this run" not in rude.server.comments[0].body


def test_run__of_everything_turns_the_check_green(fine: Requested) -> None:
    done = fine.comment("/agentevals run\nThanks!").finish()
    assert done.code == 0, done.log
    assert fine.conclusions() == [(fine.pull.head, "success")]


def test_run__of_an_old_branch_has_the_judges_of_the_base_branch_now(
    tmp_path: Path, server: GitHubServer
) -> None:
    """The pull request leaves main at a commit whose judge was weak."""
    weak = {**BASE, "evals/judges/polite.sh": "exit 0\n"}
    strict = {"evals/judges/polite.sh": JUDGE}
    pull = pull_request(tmp_path / "origin", weak, {"agent.sh": RUDE}, strict)
    done = Requested(tmp_path, server, pull).comment("/agentevals run").finish()
    assert done.code == 1, done.log
    assert [(one.head_sha, one.conclusion) for one in server.check_runs] == [(pull.head, "failure")]


@pytest.mark.parametrize("merge", [None, "main", "other"])
def test_run__without_a_merge_commit_of_the_head_is_of_the_head(
    fine: Requested, merge: str | None
) -> None:
    """There is a conflict, or GitHub has the merge commit of an older head."""
    origin, sha = fine.pull.origin, None
    if merge == "main":
        sha = fine.pull.main
    elif merge == "other":
        tree = f"{fine.pull.main}^{{tree}}"
        parents = ("-p", fine.pull.head, "-p", fine.pull.main)
        sha = origin.git("commit-tree", *parents, "-m", "older", tree).strip()
        origin.git("update-ref", "refs/pull/1/merge", sha)
    fine.announced.merge_sha = sha
    done = fine.comment("/agentevals run").finish()
    assert done.code == 0, done.log
    assert fine.conclusions() == [(fine.pull.head, "success")]


@pytest.mark.parametrize(
    ("command", "ran", "reason"),
    [
        ("/agentevals run evals", "2", "leaves out `other/EVAL.yaml`"),
        ("/agentevals run --test 'gre*'", "1", "leaves out `other/EVAL.yaml`"),
        ("/agentevals run --test '*e*'", "3", "selects tests by `--test`"),
    ],
)
def test_run__of_a_part_is_never_green(
    fine: Requested, command: str, ran: str, reason: str
) -> None:
    done = fine.comment(command).finish()
    assert done.code == 3, done.log
    assert done.outputs["passed"] == ran
    assert fine.conclusions() == [(fine.pull.head, "action_required")]
    assert reason in done.summary


def test_run__takes_the_number_of_samples(fine: Requested) -> None:
    done = fine.comment("/agentevals run --samples 2").finish()
    assert done.code == 0, done.log
    results = (fine.folder / "workspace/agentevals-report/results.jsonl").read_text()
    assert all(line.count('"outputMessages"') == 2 for line in results.splitlines())


def test_run__a_new_test_with_a_program_of_the_change_is_an_error(
    tmp_path: Path, server: GitHubServer
) -> None:
    new = "  - id: mine\n    input: Bob\n    assert:\n      - {type: code_judge, exit_code: true, script: [sh, -c, 'exit 0']}\n"
    head = {"evals/EVAL.yaml": SUITE + new}
    gate = requested(tmp_path, server, head)
    done = gate.comment("/agentevals run evals").finish()
    assert done.code == 3, done.log
    assert "would run programs of the change" in done.summary
    assert gate.conclusions() == [(gate.pull.head, "action_required")]


def test_run__targets_are_those_of_base(tmp_path: Path, server: GitHubServer) -> None:
    mock = "targets:\n  - {name: default, provider: mock, responses: [{pattern: '', response: 'Good day, Ada Bob Eve'}]}\n"
    gate = requested(tmp_path, server, {".agentv/targets.yaml": mock, "agent.sh": RUDE})
    done = gate.comment("/agentevals run").finish()
    assert done.code == 1, done.log
    assert done.outputs["failed"] == "1"


def test_run__a_hook_of_the_change_does_not_run(tmp_path: Path, server: GitHubServer) -> None:
    mark = tmp_path / "ran"
    hook = f"workspace:\n  hooks:\n    before_all: {{command: [touch, {mark}]}}\n"
    gate = requested(tmp_path, server, {"evals/EVAL.yaml": SUITE + hook})
    done = gate.comment("/agentevals run evals").finish()
    assert done.code == 3, done.log
    assert "hooks of its workspace are not those of base" in done.summary
    assert not mark.exists()


@pytest.mark.parametrize(("trusts_head", "whose"), [("false", "base"), ("true", "head")])
def test_run__setup_runs_in_the_tree_of_base(
    tmp_path: Path, server: GitHubServer, trusts_head: str, whose: str
) -> None:
    """`setup` is root in the container, and installs what a file of the tree names."""
    pull = pull_request(
        tmp_path / "origin",
        {**BASE, "install.sh": "echo installed by base\n"},
        {"agent.sh": f"{GOOD}# fine\n", "install.sh": "echo installed by head\n"},
    )
    job = Requested(tmp_path, server, pull).comment("/agentevals run")
    job.inputs = {**job.inputs, "setup": "sh install.sh", "trust-head": trusts_head}
    done = job.finish()
    assert done.code == 0, done.log
    assert f"installed by {whose}" in done.log


def test_run__programs_of_head_get_no_key(tmp_path: Path, server: GitHubServer) -> None:
    spy = f'{GOOD}env > "{tmp_path}/seen"\n'
    gate = requested(tmp_path, server, {"agent.sh": spy})
    job = gate.comment("/agentevals run")
    job.env = {"OPENAI_API_KEY": "sk-not-for-the-agent"}
    done = job.finish()
    assert done.code == 0, done.log
    seen = (tmp_path / "seen").read_text()
    assert "sk-not-for-the-agent" not in seen
    assert gate.server.token not in seen


def test_review__is_for_its_commit(fine: Requested) -> None:
    done = fine.review("/agentevals run").finish()
    assert done.code == 0, done.log
    assert fine.server.world.reactions == [("PRR_88", "EYES")]
    assert fine.conclusions() == [(fine.pull.head, "success")]


def test_review__of_another_commit_is_refused(fine: Requested) -> None:
    refused(fine.review("/agentevals run", commit=fine.pull.base).finish(), "the review is of")


def test_review__of_a_fork_has_no_keys(fine: Requested) -> None:
    job = fine.review("/agentevals run")
    fine.announced.repository = "mallory/agent"
    refused(job.finish(), "starts a run without keys")


@pytest.mark.parametrize(
    ("login", "sentence"),
    [
        ("eve", "@eve has no write access to this repository"),
        ("nobody", "@nobody has no write access to this repository"),
        ("helper[bot]", "a bot wrote the command"),
    ],
)
def test_refusal__of_a_stranger_writes_no_comment(
    fine: Requested, login: str, sentence: str
) -> None:
    refused(fine.comment("/agentevals run", login).finish(), sentence)
    assert fine.server.comments == ()
    assert fine.conclusions() == [(fine.pull.head, "action_required")]
    assert "/agentevals run" in str(fine.server.check_runs[0].summary)
    assert fine.server.world.reactions == [("IC_77", "CONFUSED")]


def test_refusal__of_a_stranger_leaves_a_check_that_exists(fine: Requested) -> None:
    fine.server.timeline.check(fine.pull.head, 11)
    fine.server.world.add_check_run(
        {"name": "agentevals", "head_sha": fine.pull.head, "conclusion": "success"},
        "https://github.com",
    )  # of a job of the pull request
    refused(fine.comment("/agentevals run", "eve").finish(), "no write access")
    assert fine.conclusions() == [(fine.pull.head, "failure"), (fine.pull.head, "success")]


def test_run__without_a_permission_names_it(fine: Requested) -> None:
    fine.server.permissions["actions"] = "none"
    done = fine.comment("/agentevals run").finish()
    assert done.code == 3, done.log
    assert "the token lacks `actions: read`" in done.log
    assert fine.server.check_runs == ()


@pytest.mark.parametrize(
    ("facts", "sentence"),
    [
        ({"updated": moment(31)}, "the comment was edited"),
        ({"action": "edited"}, "the comment was edited"),
    ],
)
def test_refusal__of_an_edited_comment(
    fine: Requested, facts: dict[str, Any], sentence: str
) -> None:
    refused(fine.comment("/agentevals run", **facts).finish(), sentence)
    (comment,) = fine.server.comments
    assert sentence in comment.body


@pytest.mark.parametrize("merged_at", [None, moment(40)])
def test_refusal__of_a_closed_pull_request(fine: Requested, merged_at: str | None) -> None:
    fine.announced.state, fine.announced.merged_at = "closed", merged_at
    word = "merged" if merged_at else "closed"
    refused(fine.comment("/agentevals run").finish(), f"the pull request is {word}")
    assert fine.server.check_runs == ()


@pytest.mark.parametrize(
    ("command", "sentence"),
    [
        ("/agentevals run --sample 3", "an argument is unknown"),
        ("/agentevals run --samples 0", "from 1 to 100"),
        ("/agentevals run --test", "`--test` has no value"),
        ("/agentevals run 'x", "a quotation mark is not closed"),
        ("/agentevals stop", "the command is unknown"),
    ],
)
def test_refusal__of_a_command_that_is_not_valid(
    fine: Requested, command: str, sentence: str
) -> None:
    refused(fine.comment(command).finish(), sentence)
    assert "[suite …] [--test GLOB]" in fine.server.comments[0].body


def test_refusal__of_a_head_that_was_pushed_after_the_comment(fine: Requested) -> None:
    fine.server.timeline.push(NUMBER, fine.pull.head, 31, dated=5)
    fine.first_phase(fine.pull.head, 31)
    refused(fine.comment("/agentevals run").finish(), "no run of it from before the comment")


def test_refusal__of_a_head_that_only_another_branch_had_before(fine: Requested) -> None:
    fine.first_phase(fine.pull.head, 10, head_branch="elsewhere")
    refused(fine.comment("/agentevals run").finish(), "no run of it from before the comment")


def test_refusal__of_a_head_that_comes_back_after_the_comment(fine: Requested) -> None:
    """It was the head once, and the maintainer read another one."""
    fine.server.timeline.push(NUMBER, "e" * 40, 20, forced=True)
    fine.server.timeline.push(NUMBER, fine.pull.head, 31, forced=True)
    refused(fine.comment("/agentevals run").finish(), "no run of it from before the comment")


@pytest.mark.parametrize("is_other_pull", [False, True])
def test_refusal__of_a_head_that_was_replaced_before_its_run_began(
    fine: Requested, is_other_pull: bool
) -> None:
    """The run of a push begins seconds after it. The head was replaced before, by force or by
    another pull request of the branch, and came back after the comment without force."""
    fine.first_phase(fine.pull.head, 20.05)
    if is_other_pull:
        earlier = fine.server.add_pull(6, "e" * 40, fine.pull.main)
        earlier.repository, earlier.state = "mallory/agent", "closed"
        fine.announced.created_at = moment(20)
    else:
        fine.server.timeline.push(NUMBER, "e" * 40, 20, forced=True)
        fine.server.timeline.push(NUMBER, fine.pull.head, 31)
    refused(fine.comment("/agentevals run").finish(), "no run of it from before the comment")


def test_refusal__of_a_reply_that_is_not_github_s(fine: Requested) -> None:
    fine.server.timeline.add(NUMBER, 20, "head_ref_force_pushed", commit_id=7)
    done = fine.comment("/agentevals run").finish()
    assert done.code == 3, done.log
    assert "whether the head was pushed after the comment is not known" in done.log
    assert "the reply has an unexpected structure" in done.log
    assert done.outputs == {"outcome": "inconclusive"}


@pytest.mark.parametrize("forced", [False, True])
def test_run__of_a_head_after_a_force_push(fine: Requested, forced: bool) -> None:
    """The head that the force-push made, and one that was pushed minutes later."""
    made = fine.pull.head if forced else "e" * 40
    fine.server.timeline.push(NUMBER, made, 20, forced=True)
    fine.server.timeline.push(NUMBER, fine.pull.head, 20 if forced else 26)
    fine.first_phase(fine.pull.head, 20.05 if forced else 26.05)
    done = fine.comment("/agentevals run").finish()
    assert done.code == 0, done.log


def test_refusal__of_a_head_from_before_the_pull_request_was_opened(fine: Requested) -> None:
    """Another pull request had the branch then, with this head; a push without force is enough."""
    fine.announced.created_at = moment(20)
    refused(fine.comment("/agentevals run").finish(), "no run of it from before the comment")


@pytest.mark.parametrize(
    ("body", "facts"),
    [
        ("Looks good.", {}),
        ("> /agentevals run", {}),
        ("see\n/agentevals run", {}),
        ("/agentevals run", {"action": "deleted"}),
        ("/agentevals run", {"on_pull": False}),
    ],
)
def test_text__without_a_command_does_nothing(
    fine: Requested, body: str, facts: dict[str, Any]
) -> None:
    done = fine.comment(body, **facts).finish()
    assert done.code == 0, done.log
    assert fine.server.requests == []


def test_help__is_a_comment(fine: Requested) -> None:
    done = fine.comment("/agentevals help").finish()
    assert done.code == 0, done.log
    (comment,) = fine.server.comments
    assert "--samples N" in comment.body
    assert fine.server.check_runs == ()
