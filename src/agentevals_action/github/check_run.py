"""The check run: open from the start of a run, completed whatever happens, with annotations."""

import re
from collections.abc import Callable, Sequence
from contextlib import suppress
from dataclasses import dataclass
from datetime import UTC, datetime
from typing import Any
from urllib.parse import quote, unquote
from uuid import uuid4

from agentevals_action.github.client.api import ApiError, GitHubApi
from agentevals_action.github.client.replies import CheckRun, WorkflowRun
from agentevals_action.github.runner import workflow_commands
from agentevals_action.model import github_limits as limits
from agentevals_action.model.report import Annotation, CheckReport

_PREFIX = "agentevals"
_ID = re.compile(
    rf"{_PREFIX}/([^/]*)/([0-9]{{1,19}})/([0-9]{{1,19}})/([0-9]{{1,19}})-.*", re.DOTALL
)
_PERMISSION = "checks: write"
#: Requests with annotations that GitHub may reject before the rest of their batch is left out.
_MAX_REJECTED = 20
_ORPHANED = {
    "title": "The run was ended",
    "summary": "The run that opened this check ended before it could complete it. "
    "A later run completed it, and opened its own.",
}


@dataclass(frozen=True)
class CheckId:
    """What `external_id` states of a check run of this action: the `comment-id` of its gate, the
    workflow run and attempt that opened it, and the pull request (0 for a commit alone)."""

    gate: str
    run: int
    attempt: int
    pull: int


def read_id(external_id: str | None) -> CheckId | None:
    """The parts of an `external_id`; None if it is not one of this action."""
    match = _ID.fullmatch(external_id or "")
    return CheckId(unquote(match[1]), *map(int, match.groups()[1:])) if match else None


def is_of_pull(external_id: str | None, pull: int) -> bool:
    """Whether a check run is one of this action for a pull request."""
    own = read_id(external_id)
    return own is not None and own.pull == pull


class CheckRunWriter:
    """One check run on one commit. What fails becomes a notice."""

    def __init__(self, api: GitHubApi, name: str) -> None:
        self._api = api
        self._name = name
        context = api.context
        gate = quote(context.comment_id, safe="")
        self._external_id = (
            f"{_PREFIX}/{gate}/{context.run_id}/{context.run_attempt}/"
            f"{context.pull or 0}-{uuid4().hex[:8]}"
        )
        self._check: CheckRun | None = None
        self._refused = False
        self._requested = False
        self._written = 0

    def start(self) -> str | None:
        """Completes the check runs that killed runs left open, then opens one; returns its URL."""
        failure = self._complete_orphans()
        check = self._open()
        if check and failure:
            problem = "The check that a killed run left open could not be completed"
            self._api.report(problem, failure, _PERMISSION)
        return check.html_url if check else None

    def resume(self) -> str | None:
        """Continues the check run that another job of this run opened and none completed; without
        one, as `start`. Returns its URL."""
        try:
            found = self._list_open(self._is_of_run)
        except ApiError:  # `start` reports it
            found = []
        if not found:
            return self.start()
        self._check = max(found, key=lambda check: check.id)
        return self._check.html_url

    def finish(self, report: CheckReport) -> str | None:
        """Writes the annotations, then completes the check run; returns its URL.

        The conclusion has a request of its own, so that no annotation can prevent it."""
        was_interrupted = self._check is None and self._requested and not self._refused
        check = self._check or self._find_after_interrupt() or self._open()
        if check is None:
            return None
        left_out = self._annotate(check, report)
        try:
            self._conclude(check, report, left_out)
        except ApiError as error:
            problem = f"The check run {check.html_url} could not be completed and stays in progress"
            self._api.report(problem, error, _PERMISSION)
            # At once: a run that a signal ends reports nothing after this.
            sentence = error.explain(problem, _PERMISSION, self._api.context.without_secrets)
            print(workflow_commands.command("error", sentence), flush=True)
            return None
        if was_interrupted:
            self._complete_others(check)
        return check.html_url

    def _open(self) -> CheckRun | None:
        if self._refused:
            return None
        context = self._api.context
        body = {
            "name": self._name,
            "head_sha": context.head_sha,
            "external_id": self._external_id,
            "status": "in_progress",
            **({"details_url": context.run_url} if context.run_url else {}),
        }
        self._requested = True
        try:
            self._check = self._api.write("POST", "check-runs", body, CheckRun, self._find)
        except ApiError as error:
            self._refused = error.kind in ("forbidden", "rejected")
            self._api.report("The check run could not be opened", error, _PERMISSION)
        return self._check

    def _find(self) -> CheckRun | None:
        return next(
            (check for check in self._list() if check.external_id == self._external_id), None
        )

    def _find_after_interrupt(self) -> CheckRun | None:
        """The check run whose creation a signal interrupted: GitHub may have received it."""
        try:
            return self._find() if self._requested and not self._refused else None
        except ApiError:  # it is opened again, and that reports the reason
            return None

    def _complete_others(self, check: CheckRun) -> None:
        """Completes the check run whose interrupted request GitHub received only after it was
        looked for and `check` was opened. Otherwise it would stay open until the next run."""
        with suppress(ApiError):  # the next run completes it
            for other in self._list():
                is_other = other.id != check.id and other.external_id == self._external_id
                if is_other and other.status != "completed":
                    self._complete(other, "cancelled", _ORPHANED)

    def _list(self) -> Sequence[CheckRun]:
        # Without `filter`, GitHub lists only the latest of a name, and older ones would stay open.
        path = f"commits/{self._api.context.head_sha}/check-runs"
        return list(
            self._api.pages(path, CheckRun, "check_runs", check_name=self._name, filter="all")
        )

    def _list_open(self, belongs: Callable[[CheckId], bool]) -> Sequence[CheckRun]:
        """The check runs of this gate that are not completed, by the run that opened them."""
        return [
            check
            for check in self._list()
            if check.status != "completed"
            and (own := read_id(check.external_id))
            and own.gate == self._api.context.comment_id
            and belongs(own)
        ]

    def _complete_orphans(self) -> ApiError | None:
        """Returns the last failure."""
        failure = None
        try:
            orphans = self._list_open(self._is_orphan)
        except ApiError as error:
            return error
        for check in orphans:
            try:
                self._complete(check, "cancelled", _ORPHANED)
            except ApiError as error:
                failure = error
        return failure

    def _is_of_run(self, own: CheckId) -> bool:
        """Whether an attempt of this run opened a check run."""
        return own.run == self._api.context.run_id

    def _is_orphan(self, own: CheckId) -> bool:
        """Whether the run that opened a check run has ended.

        A run whose state is unknown counts as ended: if it goes on, it completes
        its check run again with its own conclusion."""
        context = self._api.context
        if own.run == context.run_id:
            return own.attempt <= context.run_attempt
        return own.run < context.run_id and not self._is_running(own.run, own.attempt)

    def _is_running(self, run: int, attempt: int) -> bool:
        try:
            found = self._api.get(f"actions/runs/{run}", WorkflowRun)
        except ApiError:  # the token may lack `actions: read`
            return False
        return found.status != "completed" and found.run_attempt == attempt

    def _annotate(self, check: CheckRun, report: CheckReport) -> int:
        """Writes the annotations in batches and halves those that GitHub rejects; returns how many
        are left out."""
        valid = [
            _annotation_body(annotation)
            for annotation in report.annotations
            if annotation.path and not annotation.path.startswith("/")
        ]
        left_out = len(report.annotations) - len(valid)
        rejected = 0
        size = limits.ANNOTATIONS_PER_REQUEST
        batches = [valid[start : start + size] for start in range(0, len(valid), size)]
        while batches:
            batch = batches.pop(0)
            try:
                if self._written:
                    self._api.pause()
                self._write_batch(check, _fit_title(report.title), batch)
            except ApiError as error:
                if error.kind != "rejected":
                    self._api.report("Annotations could not be written", error, _PERMISSION)
                    return left_out + len(batch) + sum(map(len, batches))
                rejected += 1
                self._api.report("Some annotations could not be written", error, _PERMISSION)
                if len(batch) == 1 or rejected >= _MAX_REJECTED:
                    left_out += len(batch)
                else:
                    batches[:0] = [batch[: len(batch) // 2], batch[len(batch) // 2 :]]
        return left_out

    def _write_batch(self, check: CheckRun, title: str, batch: Sequence[dict[str, Any]]) -> None:
        """Adds annotations to the existing ones: sent again, they would be there twice."""
        expected = self._written + len(batch)
        path = f"check-runs/{check.id}"

        def find() -> CheckRun | None:
            found = self._api.get(path, CheckRun)
            return found if found.annotations_count >= expected else None

        output = {"title": title, "summary": title, "annotations": batch}
        self._api.write("PATCH", path, {"output": output}, CheckRun, find)
        self._written = expected

    def _conclude(self, check: CheckRun, report: CheckReport, left_out: int) -> None:
        """Completes the check run, if need be with a shorter output or without any."""
        note = (
            f"\n\n{left_out:,} of the annotations could not be written on their lines.\n"
            if left_out
            else ""
        )
        summary = limits.cut_markdown(report.summary, limits.CHECK_SUMMARY, len(note)) + note
        rejected = "GitHub rejected the summary; the job summary contains it."
        title = _fit_title(report.title)
        for output in (
            {"title": title, "summary": summary},
            {"title": title, "summary": rejected},
            None,
        ):
            try:
                return self._complete(check, report.conclusion, output, report.details_url)
            except ApiError as error:
                if error.kind != "rejected" or output is None:
                    raise
        return None

    def _complete(
        self,
        check: CheckRun,
        conclusion: str,
        output: dict[str, str] | None,
        details_url: str | None = None,
    ) -> None:
        body = {
            "status": "completed",
            "conclusion": conclusion,
            "completed_at": datetime.now(UTC).strftime("%Y-%m-%dT%H:%M:%SZ"),
            **({"output": output} if output else {}),
            **({"details_url": details_url} if details_url else {}),
        }
        self._api.write("PATCH", f"check-runs/{check.id}", body, CheckRun)


def _fit_title(text: str) -> str:
    return limits.cut_characters(" ".join(text.split()), limits.CHECK_TITLE) or "agentevals"


def _annotation_body(annotation: Annotation) -> dict[str, Any]:
    line = max(1, annotation.line)
    message = annotation.message.replace("\0", "\N{REPLACEMENT CHARACTER}").strip()
    title = " ".join(annotation.title.replace("\0", "").split())
    body = {
        "path": annotation.path,
        "start_line": line,
        "end_line": line,
        "annotation_level": annotation.level,
        "message": limits.cut_bytes(
            message or annotation.title or "no details", limits.ANNOTATION_MESSAGE_BYTES
        ),
    }
    if title := limits.cut_characters(title, limits.ANNOTATION_TITLE):
        body["title"] = title
    return body
