"""Event payloads with the fields that the action reads, and some that it must not rely on.

`integration/test_webhook_examples.py` reads GitHub's own examples."""

from typing import Any

REPOSITORY = "acme/agent"
DEPENDABOT = "dependabot[bot]"


def user(login: str = "ada") -> dict[str, Any]:
    """An account."""
    return {"login": login, "type": "Bot" if login.endswith("[bot]") else "User"}


def repository(full_name: str = REPOSITORY) -> dict[str, Any]:
    """A repository."""
    return {"full_name": full_name, "default_branch": "main", "private": False}


def pull_request_event(
    head_sha: str,
    base_sha: str,
    number: int = 7,
    action: str = "synchronize",
    fork: bool = False,
    dependabot: bool = False,
) -> dict[str, Any]:
    """`pull_request` and `pull_request_target`; with `fork` the head is in a stranger's copy, with
    `dependabot` it is Dependabot's."""
    author = DEPENDABOT if dependabot else "mallory" if fork else "ada"
    head = repository("mallory/agent") if fork else repository()
    return {
        "action": action,
        "number": number,
        "pull_request": {
            "number": number,
            "state": "closed" if action == "closed" else "open",
            "user": user(author),
            "labels": [],
            "head": {"ref": "feature", "sha": head_sha, "repo": head},
            "base": {"ref": "main", "sha": base_sha, "repo": repository()},
        },
        "repository": repository(),
        "sender": user(author),
    }


def merge_group_event(head_sha: str, base_sha: str) -> dict[str, Any]:
    """`merge_group`: a pull request is about to be merged from the queue."""
    return {
        "action": "checks_requested",
        "merge_group": {
            "head_sha": head_sha,
            "head_ref": f"refs/heads/gh-readonly-queue/main/pr-7-{base_sha}",
            "base_sha": base_sha,
            "base_ref": "refs/heads/main",
        },
        "repository": repository(),
    }


def push_event(before: str, after: str) -> dict[str, Any]:
    """`push` to the default branch; a `before` of zeros is a new branch."""
    return {
        "ref": "refs/heads/main",
        "before": before,
        "after": after,
        # A push gives times of the repository as numbers.
        "repository": {**repository(), "pushed_at": 1_767_323_046},
        "sender": user(),
    }


def schedule_event() -> dict[str, Any]:
    """`schedule`."""
    return {"schedule": "0 4 * * *", "repository": repository()}


def workflow_dispatch_event(ref: str) -> dict[str, Any]:
    """`workflow_dispatch` on a branch."""
    return {"inputs": None, "ref": ref, "repository": repository(), "sender": user()}


def issue_comment_event(
    body: str,
    login: str = "ada",
    written: str = "2026-01-05T10:30:00Z",
    number: int = 7,
    action: str = "created",
    updated: str | None = None,
    on_pull: bool = True,
) -> dict[str, Any]:
    """`issue_comment`; without `on_pull` it is on an issue."""
    pull = {"pull_request": {"merged_at": None}} if on_pull else {}
    return {
        "action": action,
        "issue": {"number": number, "state": "open", "user": user("mallory"), **pull},
        "comment": {
            "id": 77,
            "node_id": "IC_77",
            "user": user(login),
            "created_at": written,
            "updated_at": updated or written,
            "author_association": "COLLABORATOR",
            "body": body,
        },
        "repository": repository(),
        "sender": user(login),
    }


def workflow_run_event(run: dict[str, Any]) -> dict[str, Any]:
    """`workflow_run`: a run of another workflow is completed; `run` are the fields of the run."""
    return {
        "action": "completed",
        "workflow_run": {"pull_requests": [], "status": "completed", "run_attempt": 1, **run},
        "repository": repository(),
        "sender": user("mallory"),
    }
