"""Event payloads in the shape in which GitHub sends them, as far as anybody reads them; nothing in
them is a real one's."""

from typing import Any

SITE = "https://github.com"
API = "https://api.github.com"
DEPENDABOT = "dependabot[bot]"


def user(login: str = "ada", number: int = 101) -> dict[str, Any]:
    """An account as it stands in every payload."""
    bot = login.endswith("[bot]")
    page = f"{SITE}/apps/{login.removesuffix('[bot]')}" if bot else f"{SITE}/{login}"
    return {
        "login": login,
        "id": number,
        "node_id": f"U_{number}",
        "avatar_url": f"https://avatars.githubusercontent.com/u/{number}?v=4",
        "gravatar_id": "",
        "url": f"{API}/users/{login}",
        "html_url": page,
        "type": "Bot" if bot else "User",
        "site_admin": False,
    }


def repository(
    full_name: str = "acme/agent", number: int = 501, fork: bool = False, private: bool = False
) -> dict[str, Any]:
    """A repository as in every payload; `fork` marks a fork of another."""
    owner, _, name = full_name.partition("/")
    return {
        "id": number,
        "node_id": f"R_{number}",
        "name": name,
        "full_name": full_name,
        "private": private,
        "owner": {**user(owner, 201), "type": "Organization"},
        "html_url": f"{SITE}/{full_name}",
        "description": None,
        "fork": fork,
        "url": f"{API}/repos/{full_name}",
        "clone_url": f"{SITE}/{full_name}.git",
        "created_at": "2026-01-02T03:04:05Z",
        "updated_at": "2026-01-02T03:04:05Z",
        "pushed_at": "2026-01-02T03:04:05Z",
        "language": "Python",
        "archived": False,
        "disabled": False,
        "visibility": "private" if private else "public",
        "default_branch": "main",
    }


def _side(full_name: str, ref: str, sha: str, fork: bool) -> dict[str, Any]:
    owner = full_name.partition("/")[0]
    return {
        "label": f"{owner}:{ref}",
        "ref": ref,
        "sha": sha,
        "user": user(owner, 201),
        "repo": repository(full_name, 502 if fork else 501, fork),
    }


def pull_request_event(
    head_sha: str,
    base_sha: str,
    number: int = 7,
    action: str = "synchronize",
    full_name: str = "acme/agent",
    fork: bool = False,
    dependabot: bool = False,
) -> dict[str, Any]:
    """`pull_request` and `pull_request_target`; with `fork` the head lies in a stranger's copy,
    with `dependabot` it is Dependabot's."""
    author = (
        user(DEPENDABOT, 49_699_333)
        if dependabot
        else user("mallory" if fork else "ada", 102 if fork else 101)
    )
    head = f"{author['login']}/{full_name.partition('/')[2]}" if fork else full_name
    pull = f"{full_name}/pull/{number}"
    payload: dict[str, Any] = {
        "action": action,
        "number": number,
        "pull_request": {
            "url": f"{API}/repos/{full_name}/pulls/{number}",
            "id": 9_000 + number,
            "node_id": f"PR_{number}",
            "html_url": f"{SITE}/{pull}",
            "diff_url": f"{SITE}/{pull}.diff",
            "issue_url": f"{API}/repos/{full_name}/issues/{number}",
            "number": number,
            "state": "closed" if action == "closed" else "open",
            "locked": False,
            "title": "Friendlier answers",
            "user": author,
            "body": None,
            "created_at": "2026-01-02T03:04:05Z",
            "updated_at": "2026-01-02T03:04:06Z",
            "closed_at": "2026-01-02T03:04:06Z" if action == "closed" else None,
            "merged_at": None,
            "merge_commit_sha": None,
            "assignees": [],
            "requested_reviewers": [],
            "labels": [],
            "draft": False,
            "head": _side(
                head, "dependabot/pip/httpx-1" if dependabot else "feature", head_sha, fork
            ),
            "base": _side(full_name, "main", base_sha, False),
            "author_association": "NONE" if fork else "CONTRIBUTOR",
            "auto_merge": None,
            "merged": False,
            "mergeable": None,
            "comments": 0,
            "commits": 1,
            "additions": 1,
            "deletions": 1,
            "changed_files": 1,
        },
        "repository": repository(full_name),
        "organization": {
            "login": full_name.partition("/")[0],
            "id": 201,
            "url": f"{API}/orgs/{full_name.partition('/')[0]}",
        },
        "sender": author,
    }
    return payload | ({"before": "b" * 40, "after": head_sha} if action == "synchronize" else {})


def merge_group_event(
    head_sha: str, base_sha: str, full_name: str = "acme/agent", number: int = 7
) -> dict[str, Any]:
    """`merge_group`: a pull request is about to be merged from the queue."""
    return {
        "action": "checks_requested",
        "merge_group": {
            "head_sha": head_sha,
            "head_ref": f"refs/heads/gh-readonly-queue/main/pr-{number}-{base_sha}",
            "base_sha": base_sha,
            "base_ref": "refs/heads/main",
            "head_commit": _commit(head_sha),
        },
        "repository": repository(full_name),
        "organization": {"login": full_name.partition("/")[0], "id": 201},
        "sender": user("github-merge-queue[bot]", 118_344_674),
    }


def push_event(
    before: str,
    after: str,
    ref: str = "refs/heads/main",
    full_name: str = "acme/agent",
    sender: str = "ada",
) -> dict[str, Any]:
    """`push`; a `before` of zeros is a new branch, an `after` of zeros a deleted one."""
    deleted = not after.strip("0")
    return {
        "ref": ref,
        "before": before,
        "after": after,
        "created": not before.strip("0"),
        "deleted": deleted,
        "forced": False,
        "base_ref": None,
        "compare": f"{SITE}/{full_name}/compare/{before[:12]}...{after[:12]}",
        "commits": [] if deleted else [_commit(after)],
        "head_commit": None if deleted else _commit(after),
        # A push gives times of the repository as numbers, and its owner a name.
        "repository": {
            **repository(full_name),
            "created_at": 1_767_323_045,
            "pushed_at": 1_767_323_046,
            "master_branch": "main",
        },
        "pusher": {"name": sender, "email": f"{sender}@example.org"},
        "sender": user(sender),
    }


def schedule_event(cron: str = "0 4 * * *", full_name: str = "acme/agent") -> dict[str, Any]:
    """`schedule`: the payload has little more than the line of the workflow."""
    return {
        "schedule": cron,
        "workflow": ".github/workflows/evals.yml",
        "repository": repository(full_name),
    }


def workflow_dispatch_event(
    inputs: dict[str, str] | None = None,
    ref: str = "refs/heads/main",
    full_name: str = "acme/agent",
) -> dict[str, Any]:
    """`workflow_dispatch`: somebody pressed the button."""
    return {
        "inputs": inputs,
        "ref": ref,
        "repository": repository(full_name),
        "sender": user(),
        "workflow": ".github/workflows/evals.yml",
    }


def issue_comment_event(
    body: str,
    login: str = "ada",
    written: str = "2026-01-05T10:30:00Z",
    number: int = 7,
    action: str = "created",
    updated: str | None = None,
    on_pull: bool = True,
    full_name: str = "acme/agent",
) -> dict[str, Any]:
    """`issue_comment`; without `on_pull` it is on an issue."""
    page = f"{SITE}/{full_name}/pull/{number}"
    links = {"url": f"{API}/repos/{full_name}/pulls/{number}", "html_url": page}
    return {
        "action": action,
        "issue": {
            "number": number,
            "title": "Friendlier answers",
            "state": "open",
            "user": user("mallory", 102),
            "html_url": page,
            **({"pull_request": {**links, "merged_at": None}} if on_pull else {}),
        },
        "comment": {
            "id": 77,
            "node_id": "IC_77",
            "html_url": f"{page}#issuecomment-77",
            "user": user(login),
            "created_at": written,
            "updated_at": updated or written,
            "author_association": "COLLABORATOR",
            "body": body,
        },
        "repository": repository(full_name),
        "sender": user(login),
    }


def workflow_run_event(
    run: dict[str, Any], workflow: int = 1, full_name: str = "acme/agent"
) -> dict[str, Any]:
    """`workflow_run`: a run of another workflow is completed; `run` are the fields of the run."""
    return {
        "action": "completed",
        "workflow_run": {
            "pull_requests": [],
            "status": "completed",
            "run_attempt": 1,
            "workflow_id": workflow,
            "name": "evals",
            "path": ".github/workflows/evals.yml",
            **run,
        },
        "workflow": {"id": workflow, "name": "evals", "path": ".github/workflows/evals.yml"},
        "repository": repository(full_name),
        "sender": user("mallory", 102),
    }


def _commit(sha: str) -> dict[str, Any]:
    person = {"name": "Ada", "email": "ada@example.org"}
    return {
        "id": sha,
        "tree_id": "7" * 40,
        "message": "Friendlier answers",
        "timestamp": "2026-01-02T03:04:05+01:00",
        "author": person,
        "committer": person,
    }
