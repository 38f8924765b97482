"""The check run: opened at the start, completed whatever happens, with an annotation on each line
that failed."""

from collections.abc import Callable, Sequence
from datetime import UTC, datetime
from functools import partial
from typing import Any
from urllib.parse import quote, unquote
from uuid import uuid4

from github.CheckRun import CheckRun
from github.GithubObject import NotSet
from github.WorkflowRun import WorkflowRun

from agentevals_action.github import limits
from agentevals_action.github.api import GitHubApi, Target, Trouble
from agentevals_action.github.base import Annotation, CheckReport

_PREFIX = "agentevals"
#: Requests with annotations that GitHub may refuse before the rest of their batch is given up.
_MOST_REFUSALS = 20
_ORPHANED = {
    "title": "The run was ended",
    "summary": "The run that opened this check was ended before it could complete it. A later run did, and opened its own.",
}


class GitHubCheck:
    """One check on one commit. `tell` takes what could not be done, the beginning of a sentence,
    and why."""

    def __init__(
        self, api: GitHubApi, target: Target, name: str, tell: Callable[[str, Trouble], None]
    ) -> None:
        self._api = api
        self._target = target
        self._name = name
        self._tell = tell
        gate = quote(target.comment_id, safe="")
        self._external_id = (
            f"{_PREFIX}/{gate}/{target.run_id}/{target.run_attempt}/{uuid4().hex[:8]}"
        )
        self._check: CheckRun | None = None
        self._refused = False
        self._asked = False
        self._written = 0

    def start(self) -> str | None:
        """Completes the checks that killed runs left open, then opens one; its URL."""
        left_open = self._complete_orphans()
        check = self._open()
        if check is not None and left_open is not None:
            self._tell("The check that a killed run left open could not be completed", left_open)
        return check.html_url if check else None

    def finish(self, report: CheckReport) -> str | None:
        """Writes the annotations, then completes the check in a request of its own, so that no
        annotation can cost the conclusion."""
        check = self._check or self._begun() or self._open()
        if check is None:
            return None
        left = self._annotate(check, report)
        try:
            self._conclude(check, report, left)
        except Trouble as trouble:
            self._tell("The check run could not be completed", trouble)
            return None
        return check.html_url

    def _open(self) -> CheckRun | None:
        if self._refused:
            return None
        target = self._target

        def create() -> CheckRun:
            return self._api.repository.create_check_run(
                self._name,
                target.head_sha,
                target.run_url or NotSet,
                self._external_id,
                status="in_progress",
            )

        self._asked = True
        try:
            self._check = self._api.ask(create, self._landed)
        except Trouble as trouble:
            self._refused = trouble.kind in ("forbidden", "invalid")
            self._tell("The check run could not be opened", trouble)
        return self._check

    def _landed(self) -> CheckRun | None:
        return next(
            (check for check in self._checks() if check.external_id == self._external_id), None
        )

    def _begun(self) -> CheckRun | None:
        """The check that was being opened when a signal came: whether GitHub took the request is
        not known here."""
        try:
            return self._landed() if self._asked and not self._refused else None
        except Trouble:  # it will be opened again, which says what is the matter
            return None

    def _checks(self) -> Sequence[CheckRun]:
        # Without `filter`, GitHub lists the latest of a name alone, and what lies behind it would
        # stay open.
        return self._api.ask(
            lambda: list(
                self._api.repository.get_commit(self._target.head_sha).get_check_runs(
                    check_name=self._name, filter="all"
                )
            )
        )

    def _complete_orphans(self) -> Trouble | None:
        """Does what it can; what came in its way, if something did."""
        met = None
        try:
            orphans = [
                check
                for check in self._checks()
                if check.status != "completed" and self._is_orphan(check.external_id)
            ]
        except Trouble as trouble:
            return trouble
        for check in orphans:
            try:
                self._api.ask(partial(_complete, check, "cancelled", _ORPHANED))
            except Trouble as trouble:
                met = trouble
        return met

    def _is_orphan(self, external_id: str | None) -> bool:
        """Whether an open check is one of this gate whose run is over.

        Where that cannot be told it counts as over: a run that lives after all completes its check
        again with its own conclusion."""
        match (external_id or "").split("/"):
            case [prefix, gate, run, attempt, _] if (
                prefix == _PREFIX and run.isdecimal() and attempt.isdecimal()
            ):
                if unquote(gate) != self._target.comment_id:
                    return False
                if int(run) == self._target.run_id:
                    return int(attempt) <= self._target.run_attempt
                return int(run) < self._target.run_id and not self._lives(int(run), int(attempt))
        return False

    def _lives(self, run: int, attempt: int) -> bool:
        try:
            found = self._api.ask(lambda: _loaded(self._api.repository.get_workflow_run(run)))
        except Trouble:  # the token may well have no `actions: read`
            return False
        return found.status != "completed" and found.run_attempt == attempt

    def _annotate(self, check: CheckRun, report: CheckReport) -> int:
        """Writes what it can; how many annotations are left out."""
        sound = [
            _wire(annotation)
            for annotation in report.annotations
            if annotation.path and not annotation.path.startswith("/")
        ]
        refusals = 0
        left = len(report.annotations) - len(sound)
        size = limits.ANNOTATIONS_A_REQUEST
        waiting = [sound[start : start + size] for start in range(0, len(sound), size)]
        while waiting:
            batch = waiting.pop(0)
            try:
                if self._written:
                    self._api.pause()
                self._write(check, report.title, batch)
            except Trouble as trouble:
                if trouble.kind != "invalid":
                    self._tell("Annotations could not be written", trouble)
                    return left + len(batch) + sum(map(len, waiting))
                refusals += 1
                self._tell("Some annotations could not be written", trouble)
                if len(batch) == 1 or refusals >= _MOST_REFUSALS:
                    left += len(batch)
                else:
                    waiting[:0] = [batch[: len(batch) // 2], batch[len(batch) // 2 :]]
        return left

    def _write(self, check: CheckRun, title: str, batch: Sequence[dict[str, Any]]) -> None:
        """Adds annotations to those that stand: a repetition after an unclear failure would add
        them twice."""
        wanted = self._written + len(batch)

        def landed() -> bool | None:
            fresh = self._api.ask(
                lambda: self._api.repository.get_check_run(check.id).output.annotations_count
            )
            return True if fresh >= wanted else None

        output = {"title": _title(title), "summary": _title(title), "annotations": list(batch)}

        def write() -> bool:
            check.edit(output=output)
            return True

        self._api.ask(write, landed)
        self._written = wanted

    def _conclude(self, check: CheckRun, report: CheckReport, left: int) -> None:
        """A check without its words is better than one that never ends."""
        told = (
            f"\n\n{left:,} of the annotations could not be written on the lines that they speak of.\n"
            if left
            else ""
        )
        outputs = (
            {
                "title": _title(report.title),
                "summary": limits.fitting(report.summary, limits.CHECK_SUMMARY, len(told)) + told,
            },
            {
                "title": _title(report.title),
                "summary": "GitHub refused the summary; it stands in the job's summary.",
            },
            None,
        )
        for output in outputs:
            try:
                return self._api.ask(partial(_complete, check, report.conclusion, output))
            except Trouble as trouble:
                if trouble.kind != "invalid" or output is None:
                    raise
        return None


def _complete(check: CheckRun, conclusion: str, output: dict[str, str] | None) -> None:
    check.edit(
        status="completed",
        conclusion=conclusion,
        completed_at=datetime.now(UTC),
        output=output or NotSet,
    )


def _loaded(run: WorkflowRun) -> WorkflowRun:
    run.complete()
    return run


def _title(text: str) -> str:
    return limits.cut_characters(" ".join(text.split()), limits.CHECK_TITLE) or "agentevals"


def _wire(annotation: Annotation) -> dict[str, Any]:
    line = max(1, annotation.line)
    message = (
        annotation.message.replace("\0", "\N{REPLACEMENT CHARACTER}").strip()
        or annotation.title
        or "no details"
    )
    wire = {
        "path": annotation.path,
        "start_line": line,
        "end_line": line,
        "annotation_level": annotation.level,
        "message": limits.cut_bytes(message, limits.ANNOTATION_MESSAGE_BYTES),
    }
    if title := limits.cut_characters(
        " ".join(annotation.title.replace("\0", "").split()), limits.ANNOTATION_TITLE
    ):
        wire["title"] = title
    return wire
