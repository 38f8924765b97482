"""What a stand-in for GitHub remembers, and what it refuses as GitHub does: one repository, its
pulls, comments, check runs."""

import re
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from datetime import UTC, datetime, timedelta
from typing import Any

CONCLUSIONS = {
    "action_required",
    "cancelled",
    "failure",
    "neutral",
    "success",
    "skipped",
    "stale",
    "timed_out",
}
COMMENT_LIMIT = 65_536
SUMMARY_LIMIT = 65_535
ANNOTATION_LIMIT = 50
NOT_PERMITTED = "Resource not accessible by integration"


class Refused(Exception):
    """An answer of 400 and above."""

    def __init__(
        self, status: int, message: str, *details: str, headers: Mapping[str, str] | None = None
    ) -> None:
        super().__init__(message)
        self.status = status
        self.details = details
        self.headers = dict(headers or {})


@dataclass(frozen=True)
class Account:
    """A user or an app's bot; `app_id` is the app that its check runs belong to."""

    login: str
    id: int
    app_id: int | None = None

    def wire(self) -> dict[str, Any]:
        kind = "Bot" if self.login.endswith("[bot]") else "User"
        return {
            "login": self.login,
            "id": self.id,
            "node_id": f"U_{self.id}",
            "type": kind,
            "site_admin": False,
        }


ACTIONS = Account("github-actions[bot]", 41_898_282, 15_368)


@dataclass
class Comment:
    """`minimised` is the reason that it was hidden for, `edits` counts writes after the first."""

    id: int
    pull: int
    author: Account
    body: str
    url: str
    minimised: str | None = None
    edits: int = 0
    updated_at: str = field(default_factory=lambda: now())

    @property
    def node_id(self) -> str:
        return f"IC_{self.id}"


@dataclass
class CheckRun:
    """`annotations` are those of all updates together, as GitHub keeps them; `app_id` None is an
    app of nobody here."""

    id: int
    name: str
    head_sha: str
    url: str
    app_id: int | None
    external_id: str = ""
    started_at: str | None = None
    details_url: str = ""
    status: str = "queued"
    conclusion: str | None = None
    title: str | None = None
    summary: str | None = None
    annotations: list[dict[str, Any]] = field(default_factory=list)


@dataclass
class Pull:
    """`repository` is that of the head,
    None for one that is gone; without a value it is the base's own. `merge_parents` are those of
    GitHub's merge commit `merge_sha`, `mergeable` is None while it is made. `timeline`
    are events as on the wire."""

    number: int
    head_sha: str
    base_sha: str
    base_ref: str = "main"
    repository: str | None = ""
    branch: str = "feature"
    state: str = "open"
    created_at: str = "2026-01-05T10:00:00Z"
    merged_at: str | None = None
    merge_sha: str | None = None
    merge_parents: tuple[str, ...] = ()
    mergeable: bool | None = True
    labels: set[str] = field(default_factory=set)
    timeline: list[dict[str, Any]] = field(default_factory=list)


def moment(minute: float) -> str:
    """An instant on the wire, so many minutes after a fixed one."""
    start = datetime(2026, 1, 5, 10, 0, tzinfo=UTC)
    return (start + timedelta(minutes=minute)).strftime("%Y-%m-%dT%H:%M:%SZ")


class World:
    """The repository. `tree` names the files that annotations may lie on, None for any;
    `workflow_runs` are Actions runs by id, `permissions` those of accounts by their login,
    `reactions` pairs of a node's id and the content."""

    def __init__(self, full_name: str) -> None:
        self.full_name = full_name
        self.viewer = ACTIONS
        self.pulls: dict[int, Pull] = {}
        self.comments: list[Comment] = []
        self.check_runs: list[CheckRun] = []
        self.workflow_runs: dict[int, dict[str, Any]] = {}
        self.permissions: dict[str, str] = {}
        self.reactions: list[tuple[str, str]] = []
        self.merge_base: str | None = None
        self.tree: set[str] | None = None
        self._number = 1_000

    def new_id(self) -> int:
        self._number += 1
        return self._number

    def pull(self, number: int) -> Pull:
        if number not in self.pulls:
            raise Refused(404, "Not Found")
        return self.pulls[number]

    def add_comment(self, pull: int, author: Account, body: object, site: str) -> Comment:
        self.pull(pull)
        number = self.new_id()
        url = f"{site}/{self.full_name}/pull/{pull}#issuecomment-{number}"
        comment = Comment(number, pull, author, _comment_body(body), url)
        self.comments.append(comment)
        return comment

    def edit_comment(self, number: int, body: object) -> Comment:
        comment = self.comment(number)
        comment.body = _comment_body(body)
        comment.edits += 1
        comment.updated_at = now()
        return comment

    def comment(self, number: int) -> Comment:
        for comment in self.comments:
            if comment.id == number:
                return comment
        raise Refused(404, "Not Found")

    def add_check_run(self, data: Mapping[str, Any], site: str) -> CheckRun:
        if not isinstance(data.get("name"), str) or not data["name"]:
            raise Refused(422, "Invalid request.", '"name" wasn\'t supplied.')
        if not re.fullmatch(r"[0-9a-f]{40}", str(data.get("head_sha"))):
            raise Refused(422, "No commit found for SHA", "head_sha")
        number = self.new_id()
        url = f"{site}/{self.full_name}/runs/{number}"
        check = CheckRun(number, data["name"], data["head_sha"], url, self.viewer.app_id)
        check.started_at = data.get("started_at") or now()
        update_check(check, data, self.tree)
        self.check_runs.append(check)
        return check

    def edit_check_run(self, number: int, data: Mapping[str, Any]) -> CheckRun:
        check = self.check_run(number)
        if check.app_id != self.viewer.app_id:
            raise Refused(
                403,
                "Invalid app_id - check run can only be modified by the GitHub App that created it.",
            )
        update_check(check, data, self.tree)
        return check

    def check_run(self, number: int) -> CheckRun:
        for check in self.check_runs:
            if check.id == number:
                return check
        raise Refused(404, "Not Found")

    def checks_of(
        self, sha: str, name: str | None, status: str | None, every: bool
    ) -> Sequence[CheckRun]:
        """Newest first; without `every` the latest of each name and app alone."""
        found = [
            check
            for check in reversed(self.check_runs)
            if check.head_sha == sha and name in (None, check.name)
        ]
        if not every:
            found = list({(check.name, check.app_id): check for check in reversed(found)}.values())
        return [check for check in found if status in (None, check.status)]


def _comment_body(body: object) -> str:
    if not isinstance(body, str) or not body.strip():
        raise Refused(422, "Validation Failed", "Body can't be blank")
    if len(body) > COMMENT_LIMIT:
        raise Refused(
            422, "Validation Failed", f"Body is too long (maximum is {COMMENT_LIMIT} characters)"
        )
    return body


def update_check(check: CheckRun, data: Mapping[str, Any], tree: set[str] | None) -> None:
    """All or nothing, as GitHub does."""
    status, conclusion = data.get("status", check.status), data.get("conclusion")
    if status not in {"queued", "in_progress", "completed"}:
        raise Refused(
            422, "Invalid request.", f"{status} is not a member of queued, in_progress, completed."
        )
    if conclusion is not None and conclusion not in CONCLUSIONS:
        raise Refused(422, "Invalid request.", f"{conclusion} is not a conclusion.")
    if status == "completed" and conclusion is None and check.conclusion is None:
        raise Refused(422, "Invalid request.", "A completed check run needs a conclusion.")
    output = data.get("output")
    if output is not None:
        _refuse_output(output, tree)
    check.status = "completed" if conclusion else status
    check.conclusion = conclusion or (check.conclusion if check.status == "completed" else None)
    check.external_id = data.get("external_id", check.external_id)
    check.details_url = data.get("details_url", check.details_url)
    if output is not None:
        check.title, check.summary = output.get("title", check.title), output["summary"]
        check.annotations.extend(output.get("annotations", ()))


def _refuse_output(output: Mapping[str, Any], tree: set[str] | None) -> None:
    if not isinstance(output.get("summary"), str) or not isinstance(output.get("title", ""), str):
        raise Refused(422, "Invalid request.", "output needs a title and a summary")
    if len(output["summary"]) > SUMMARY_LIMIT:
        raise Refused(
            422,
            "Validation Failed",
            f"Only {SUMMARY_LIMIT} characters are allowed in the summary; {len(output['summary'])} were supplied.",
        )
    if len(output.get("title", "")) > 255:
        raise Refused(422, "Validation Failed", "Title is too long (maximum is 255 characters)")
    annotations = output.get("annotations", ())
    if len(annotations) > ANNOTATION_LIMIT:
        raise Refused(
            422,
            "Invalid request.",
            f"No more than {ANNOTATION_LIMIT} items are allowed; {len(annotations)} were supplied.",
        )
    for annotation in annotations:
        if problem := _annotation_error(annotation, tree):
            raise Refused(422, "Invalid request.", problem)


def _annotation_error(annotation: Mapping[str, Any], tree: set[str] | None) -> str:
    path, start, end = (
        annotation.get("path"),
        annotation.get("start_line"),
        annotation.get("end_line"),
    )
    if not isinstance(path, str) or not path:
        return "an annotation needs a path"
    if tree is not None and path not in tree:
        return f"{path} is not in the tree of the commit"
    if not isinstance(start, int) or not isinstance(end, int) or start < 1:
        return "an annotation needs start_line and end_line, from 1"
    if end < start:
        return "end_line comes before start_line"
    if annotation.get("annotation_level") not in {"notice", "warning", "failure"}:
        return "annotation_level is unknown"
    message = annotation.get("message")
    if not isinstance(message, str) or not message or len(message.encode()) > 64 * 1024:
        return "an annotation needs a message of at most 64 KB"
    return "an annotation's title is too long" if len(annotation.get("title", "")) > 255 else ""


def now() -> str:
    return datetime.now(UTC).strftime("%Y-%m-%dT%H:%M:%SZ")
