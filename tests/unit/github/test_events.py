"""Which job an event asks for."""

from typing import Any

import pytest

from agentevals_action.errors import InvalidInput
from agentevals_action.github.events import Event, job_for, local_job
from agentevals_action.model.job import BaseRule, Job
from agentevals_action.settings import Settings

MERGE, HEAD, TIP, BEFORE = "1" * 40, "2" * 40, "3" * 40, "4" * 40
ZEROS = "0" * 40
ON_A_CHANGE = frozenset({"gates", "regressions"})
ELSEWHERE = frozenset({"failures"})
HERE = {"full_name": "acme/agent", "fork": True}
STRANGER = {"full_name": "stranger/agent"}


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


GROUP = {"merge_group": {"head_sha": HEAD, "base_sha": TIP}}
NONE = "none"
#: The job of an event; then what is selected, the kind and commit of the base, the commit of the
#: check, the commits that HEAD may be, and `fail-on`.
JOBS = {
    "pull_request": (
        asked("pull_request", pull()),
        ("changed", "pull", TIP, HEAD, (MERGE, HEAD), ON_A_CHANGE),
    ),
    "pull_request with options": (
        asked("pull_request", pull(), select="all", fail_on=frozenset({"never"})),
        ("all", "pull", TIP, HEAD, (MERGE, HEAD), frozenset({"never"})),
    ),
    "pull_request_target": (  # the base is never taken for the head
        asked("pull_request_target", pull(STRANGER), TIP, allow_unsafe_pull_request_target=True),
        ("changed", "pull", TIP, HEAD, (HEAD,), ON_A_CHANGE),
    ),
    "merge_group": (
        asked("merge_group", GROUP, sha=HEAD),
        ("changed", "commit", TIP, HEAD, (HEAD,), ON_A_CHANGE),
    ),
    "push": (
        asked("push", {"before": BEFORE, "after": HEAD, "deleted": False}, HEAD),
        ("changed", "commit", BEFORE, HEAD, (HEAD,), ELSEWHERE),
    ),
    "push of a new branch": (
        asked("push", {"before": ZEROS, "after": HEAD}, HEAD),
        ("all", NONE, None, HEAD, (HEAD,), ELSEWHERE),
    ),
    "push of an annotated tag": (
        asked("push", {"before": ZEROS, "after": "9" * 40}, HEAD, ref="refs/tags/v1"),
        ("all", NONE, None, HEAD, (HEAD,), ELSEWHERE),
    ),
    "push that deletes": (
        asked("push", {"before": BEFORE, "after": ZEROS, "deleted": True}, TIP),
        ("all", NONE, None, None, (TIP,), ELSEWHERE),
    ),
    **{
        name: (asked(name, {}, TIP), ("all", base, None, check, (TIP,), ELSEWHERE))
        for name, base, check in (
            ("schedule", "stored", TIP),
            ("workflow_dispatch", "stored", TIP),
            ("workflow_run", NONE, None),
            ("issue_comment", NONE, None),
        )
    },
    "local": (
        local_job(HEAD, "main", Settings()),
        ("changed", "fork-point", "main", None, (HEAD,), ON_A_CHANGE),
    ),
}


@pytest.mark.parametrize("name", JOBS)
def test_job__of_an_event(name: str) -> None:
    job, expected = JOBS[name]
    base: BaseRule = job.base
    assert (
        job.select,
        base.kind,
        base.revision,
        checked(job),
        job.heads,
        job.fail_on,
    ) == expected
    assert job.without_secrets == ""


def test_default_branch__its_results_are_stored() -> None:
    payload = {"repository": {"default_branch": "main"}, "before": BEFORE, "after": HEAD}
    for name, ref, expected in (
        ("push", "refs/heads/main", True),
        ("push", "refs/heads/feature", False),
        ("workflow_dispatch", "refs/heads/main", True),
        ("workflow_dispatch", "refs/heads/feature", False),
        ("workflow_dispatch", "refs/tags/main", False),
        ("schedule", "refs/heads/main", True),
        ("repository_dispatch", "refs/heads/main", False),
    ):
        assert asked(name, payload, HEAD, ref=ref).is_default_branch is expected


def test_pull_request__is_that_of_the_payload() -> None:
    found = asked("pull_request", pull()).pull
    assert found is not None
    assert (found.number, found.base_ref, found.base_sha) == (7, "main", TIP)
    assert asked("merge_group", GROUP, sha=HEAD).pull is None


@pytest.mark.parametrize(
    ("name", "payload", "actor", "reason"),
    [
        ("pull_request", pull(STRANGER), "ada", "fork"),
        ("pull_request", pull(None), "ada", "fork"),  # its repository is gone
        ("pull_request", pull(), "dependabot[bot]", "Dependabot"),
        ("push", {"before": BEFORE, "after": HEAD}, "dependabot[bot]", "Dependabot"),
    ],
)
def test_secrets__are_missing_for_a_reason(
    name: str, payload: dict[str, Any], actor: str, reason: str
) -> None:
    assert reason in asked(name, payload, HEAD, actor).without_secrets


def test_refused__closed_pull_requests_and_pull_request_target() -> None:
    with pytest.raises(InvalidInput, match="closed"):
        asked("pull_request", pull() | {"action": "closed"})
    with pytest.raises(InvalidInput, match="stranger") as caught:
        asked("pull_request_target", pull())
    assert "allow-unsafe-pull-request-target" in caught.value.hint


@pytest.mark.parametrize("sha", ["main", "--upload-pack=x", "ABC", 5, None])
def test_payload__with_a_commit_that_is_none(sha: Any) -> None:
    payload = pull()
    payload["pull_request"]["head"]["sha"] = sha
    with pytest.raises(InvalidInput, match=r"no valid value at `pull_request\.head\.sha`"):
        asked("pull_request", payload)
