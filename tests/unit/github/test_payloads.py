"""The payloads that other tests use are understood as GitHub's, as the reader of events understands
them."""

import pytest

from agentevals_action.errors import InvalidInput
from agentevals_action.github.events import Event, job_for
from agentevals_action.settings import Settings
from tests.support import payloads

HEAD, BASE = "a" * 40, "b" * 40


def test_pull_request__names_number_and_commits() -> None:
    job = job_for(
        Event(
            "pull_request", payloads.pull_request_event(HEAD, BASE, number=9), "d" * 40, actor="ada"
        ),
        Settings(),
    )
    assert job.pull is not None
    assert (job.pull.number, job.pull.head_sha, job.pull.base_sha, job.pull.base_ref) == (
        9,
        HEAD,
        BASE,
        "main",
    )
    assert (job.check_sha, job.without_secrets) == (HEAD, "")


def test_pull_request__of_a_fork_has_no_secrets() -> None:
    job = job_for(
        Event(
            "pull_request",
            payloads.pull_request_event(HEAD, BASE, fork=True),
            "d" * 40,
            actor="mallory",
        ),
        Settings(),
    )
    assert "fork" in job.without_secrets


def test_pull_request__of_dependabot_has_no_secrets() -> None:
    payload = payloads.pull_request_event(HEAD, BASE, dependabot=True)
    job = job_for(
        Event("pull_request", payload, "d" * 40, actor=payload["sender"]["login"]), Settings()
    )
    assert "Dependabot" in job.without_secrets


def test_pull_request__that_is_closed_is_known_by_its_action() -> None:
    with pytest.raises(InvalidInput, match="closed"):
        job_for(
            Event("pull_request", payloads.pull_request_event(HEAD, BASE, action="closed"), HEAD),
            Settings(),
        )


def test_merge_group__names_both_commits() -> None:
    job = job_for(Event("merge_group", payloads.merge_group_event(HEAD, BASE), HEAD), Settings())
    assert (job.check_sha, job.base.revision) == (HEAD, BASE)


def test_push__names_both_commits_and_new_branches() -> None:
    assert (
        job_for(Event("push", payloads.push_event(BASE, HEAD), HEAD), Settings()).base.revision
        == BASE
    )
    assert (
        job_for(Event("push", payloads.push_event("0" * 40, HEAD), HEAD), Settings()).base.kind
        == "none"
    )


@pytest.mark.parametrize(
    ("name", "payload"),
    [
        ("schedule", payloads.schedule_event()),
        ("workflow_dispatch", payloads.workflow_dispatch_event({"a": "b"})),
    ],
)
def test_run_by_time_or_hand__has_no_base(name: str, payload: dict[str, object]) -> None:
    job = job_for(Event(name, payload, HEAD), Settings())
    assert (job.select, job.check_sha, job.base.kind) == ("all", HEAD, "none")
