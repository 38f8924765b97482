"""Which job an event asks for."""

from typing import Any

import pytest

from agentevals_action.errors import InvalidInput
from agentevals_action.github.events import BaseRule, Event, Job, job_for, local_job
from agentevals_action.settings import Settings

MERGE, HEAD, TIP, BEFORE = "1" * 40, "2" * 40, "3" * 40, "4" * 40
ZEROS = "0" * 40
ON_A_CHANGE = frozenset({"gates", "regressions"})
HERE = {"full_name": "acme/agent", "fork": True}


def pull(head_repository: dict[str, Any] | None = HERE, **more: Any) -> dict[str, Any]:
    request = {
        "number": 7,
        "head": {"sha": HEAD, "ref": "feature", "repo": head_repository},
        "base": {"sha": TIP, "ref": "main", "repo": HERE},
    }
    return {"action": "synchronize", "number": 7, "pull_request": request, **more}


def asked(
    name: str,
    payload: dict[str, Any],
    sha: str = MERGE,
    actor: str = "ada",
    ref: str = "",
    **options: Any,
) -> Job:
    return job_for(Event(name, payload, sha, ref, actor), Settings(**options))


def checked(job: Job) -> str | None:
    """The commit of the check run."""
    return job.head_sha if job.has_check else None


def test_pull_request__changed_suites_against_the_base_on_the_heads_check() -> None:
    job = asked("pull_request", pull())
    assert (job.select, job.head_sha, job.has_check, job.fail_on) == (
        "changed",
        HEAD,
        True,
        ON_A_CHANGE,
    )
    assert job.heads == (MERGE, HEAD)
    assert job.base == BaseRule("pull", TIP)
    assert job.pull is not None
    assert (job.pull.number, job.pull.base_ref, job.pull.base_sha) == (7, "main", TIP)
    assert job.without_secrets == ""


def test_pull_request__options_take_precedence() -> None:
    job = asked("pull_request", pull(), select="all", fail_on=frozenset({"never"}))
    assert (job.select, job.fail_on) == ("all", frozenset({"never"}))


@pytest.mark.parametrize("repository", [{"full_name": "stranger/agent"}, None])
def test_pull_request__from_a_fork_or_one_that_is_gone(repository: dict[str, Any] | None) -> None:
    assert "fork" in asked("pull_request", pull(repository)).without_secrets


def test_pull_request__of_dependabot() -> None:
    assert "Dependabot" in asked("pull_request", pull(), actor="dependabot[bot]").without_secrets


def test_pull_request__closed_has_nothing_to_gate() -> None:
    with pytest.raises(InvalidInput, match="closed"):
        asked("pull_request", pull() | {"action": "closed"})


@pytest.mark.parametrize("sha", ["main", "--upload-pack=x", "ABC", 5, None])
def test_pull_request__a_commit_that_is_none(sha: Any) -> None:
    payload = pull()
    payload["pull_request"]["head"]["sha"] = sha
    with pytest.raises(InvalidInput, match=r"no valid value at `pull_request\.head\.sha`"):
        asked("pull_request", payload)


def test_pull_request_target__refused_with_an_explanation() -> None:
    with pytest.raises(InvalidInput, match="stranger") as caught:
        asked("pull_request_target", pull())
    assert "allow-unsafe-pull-request-target" in caught.value.hint


def test_pull_request_target__allowed_never_takes_the_base_for_the_head() -> None:
    job = asked(
        "pull_request_target",
        pull({"full_name": "stranger/agent"}),
        sha=TIP,
        allow_unsafe_pull_request_target=True,
    )
    assert job.heads == (HEAD,)
    assert checked(job) == HEAD
    assert job.without_secrets == ""


def test_merge_group__against_its_base_on_its_head() -> None:
    payload = {
        "action": "checks_requested",
        "merge_group": {
            "head_sha": HEAD,
            "base_sha": TIP,
            "head_ref": "refs/heads/gh-readonly-queue/main/pr-7",
        },
    }
    job = asked("merge_group", payload, sha=HEAD)
    assert (job.select, job.base, checked(job), job.heads, job.fail_on) == (
        "changed",
        BaseRule("commit", TIP),
        HEAD,
        (HEAD,),
        ON_A_CHANGE,
    )
    assert job.pull is None


def test_push__since_before() -> None:
    job = asked(
        "push", {"before": BEFORE, "after": HEAD, "deleted": False}, sha=HEAD, ref="refs/heads/main"
    )
    assert (job.select, job.base, checked(job), job.fail_on) == (
        "changed",
        BaseRule("commit", BEFORE),
        HEAD,
        frozenset({"failures"}),
    )


def test_push__a_new_branch_has_nothing_to_compare_with() -> None:
    job = asked("push", {"before": ZEROS, "after": HEAD}, sha=HEAD, ref="refs/heads/new")
    assert (job.select, job.base.kind, checked(job)) == ("all", "none", HEAD)
    assert "nothing to compare" in job.base.reason


def test_push__an_annotated_tag_is_checked_on_its_commit() -> None:
    job = asked("push", {"before": ZEROS, "after": "9" * 40}, sha=HEAD, ref="refs/tags/v1")
    assert (checked(job), job.heads) == (HEAD, (HEAD,))


def test_push__a_deleted_branch_gets_no_check() -> None:
    job = asked(
        "push", {"before": BEFORE, "after": ZEROS, "deleted": True}, sha=TIP, ref="refs/heads/old"
    )
    assert (checked(job), job.base.kind, job.heads) == (None, "none", (TIP,))


def test_push__of_dependabot_has_no_secrets() -> None:
    assert (
        "Dependabot"
        in asked(
            "push", {"before": BEFORE, "after": HEAD}, sha=HEAD, actor="dependabot[bot]"
        ).without_secrets
    )


@pytest.mark.parametrize(
    ("name", "check"),
    [
        ("schedule", TIP),
        ("workflow_dispatch", TIP),
        ("workflow_run", None),
        ("issue_comment", None),
    ],
)
def test_other_events__all_suites_and_no_base(name: str, check: str | None) -> None:
    job = asked(name, {}, sha=TIP)
    assert (job.select, job.base.kind, checked(job), job.fail_on) == (
        "all",
        "none",
        check,
        frozenset({"failures"}),
    )


def test_local_job__as_a_pull_request_would_be() -> None:
    job = local_job(HEAD, "main", Settings())
    assert (job.select, job.base, checked(job), job.fail_on) == (
        "changed",
        BaseRule("fork-point", "main"),
        None,
        ON_A_CHANGE,
    )
