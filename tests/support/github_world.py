"""What a stand-in for GitHub keeps, and what it refuses as GitHub does: one repository with its pull
requests, comments and check runs."""

from collections.abc import Mapping
from dataclasses import dataclass, field
from datetime import UTC, datetime, timedelta
from typing import Any, TypeVar

T = TypeVar("T")

CONCLUSIONS = {"action_required", "cancelled", "failure", "neutral", "success"}
COMMENT_LIMIT = 65_536
SUMMARY_LIMIT = 65_535
ANNOTATION_LIMIT = 50
NOT_PERMITTED = "Resource not accessible by integration"


class Refused(Exception):
    """A reply of 400 and above."""

    def __init__(self, status: int, message: str, *details: str) -> None:
        super().__init__(message)
        self.status = status
        self.details = details


@dataclass(frozen=True)
class Account:
    """A user or an app's bot."""

    login: str
    id: int


ACTIONS = Account("github-actions[bot]", 41_898_282)


def moment(minute: float) -> str:
    """A time on the wire, so many minutes after a fixed one."""
    start = datetime(2026, 1, 5, 10, 0, tzinfo=UTC)
    return (start + timedelta(minutes=minute)).strftime("%Y-%m-%dT%H:%M:%SZ")


@dataclass
class Comment:
    """`minimised` is the reason why it is hidden, `edits` counts writes after the first."""

    id: int
    pull: int
    author: Account
    body: str
    url: str
    minimised: str | None = None
    edits: int = 0
    updated_at: str = moment(15)

    @property
    def node_id(self) -> str:
        return f"IC_{self.id}"


@dataclass
class CheckRun:
    """`annotations` are those of all updates together, as GitHub keeps them."""

    id: int
    name: str
    head_sha: str
    url: str
    external_id: str = ""
    details_url: str = ""
    status: str = "queued"
    conclusion: str | None = None
    title: str | None = None
    summary: str | None = None
    annotations: list[dict[str, Any]] = field(default_factory=list)


@dataclass
class Pull:
    """`repository` is that of the head, None for one that is gone; without a value it is the base's
    own. `merge_parents` are those of GitHub's merge commit `merge_sha`, `mergeable` is None while
    it is made. `timeline` are events as on the wire."""

    number: int
    head_sha: str
    base_sha: str
    base_ref: str = "main"
    repository: str | None = ""
    branch: str = "feature"
    state: str = "open"
    merged_at: str | None = None
    merge_sha: str | None = None
    merge_parents: tuple[str, ...] = ()
    mergeable: bool | None = True
    labels: set[str] = field(default_factory=set)
    timeline: list[dict[str, Any]] = field(default_factory=list)


class World:
    """The repository. `tree` names the files that annotations may lie on, None for any;
    `workflow_runs` are runs by their id, as on the wire, `permissions` those of accounts by their
    login, `reactions` pairs of a node's id and the content."""

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
        return _found(self.pulls.get(number))

    def add_comment(self, pull: int, author: Account, body: str) -> Comment:
        self.pull(pull)
        number = self.new_id()
        url = f"https://github.com/{self.full_name}/pull/{pull}#issuecomment-{number}"
        comment = Comment(number, pull, author, _checked_body(body), url)
        self.comments.append(comment)
        return comment

    def edit_comment(self, number: int, body: str) -> Comment:
        comment = _found(next((found for found in self.comments if found.id == number), None))
        comment.body = _checked_body(body)
        comment.edits += 1
        return comment

    def add_check_run(self, data: Mapping[str, Any]) -> CheckRun:
        number = self.new_id()
        url = f"https://github.com/{self.full_name}/runs/{number}"
        check = CheckRun(number, data["name"], data["head_sha"], url)
        self._update(check, data)
        self.check_runs.append(check)
        return check

    def edit_check_run(self, number: int, data: Mapping[str, Any]) -> CheckRun:
        check = _found(next((found for found in self.check_runs if found.id == number), None))
        self._update(check, data)
        return check

    def _update(self, check: CheckRun, data: Mapping[str, Any]) -> None:
        """Changes all or nothing, as GitHub does."""
        output = data["output"]
        annotations = output.get("annotations", ())
        conclusion = data.get("conclusion", check.conclusion)
        if conclusion not in CONCLUSIONS:
            raise Refused(422, "Invalid request.", f"{conclusion} is not a conclusion.")
        if len(output["summary"]) > SUMMARY_LIMIT or len(output["title"]) > 255:
            raise Refused(422, "Validation Failed", "The output is too long.")
        if len(annotations) > ANNOTATION_LIMIT:
            raise Refused(422, "Invalid request.", "No more than 50 items are allowed.")
        for annotation in annotations:
            self._require_valid(annotation)
        check.status = data.get("status", check.status)
        check.conclusion = conclusion
        check.external_id = data.get("external_id", check.external_id)
        check.details_url = data.get("details_url", check.details_url)
        check.title, check.summary = output["title"], output["summary"]
        check.annotations.extend(annotations)

    def _require_valid(self, annotation: Mapping[str, Any]) -> None:
        path, start, end = (annotation[key] for key in ("path", "start_line", "end_line"))
        if self.tree is not None and path not in self.tree:
            raise Refused(422, "Invalid request.", f"{path} is not in the tree of the commit")
        if (
            not 1 <= start <= end
            or annotation["annotation_level"] not in {"notice", "warning", "failure"}
            or not 0 < len(annotation["message"].encode()) <= 64 * 1024
            or len(annotation.get("title", "")) > 255
        ):
            raise Refused(422, "Invalid request.", "an annotation is not valid")


def _checked_body(body: str) -> str:
    if not body.strip():
        raise Refused(422, "Validation Failed", "Body can't be blank")
    if len(body) > COMMENT_LIMIT:
        raise Refused(422, "Validation Failed", "Body is too long")
    return body


def _found(found: T | None) -> T:
    if found is None:
        raise Refused(404, "Not Found")
    return found
