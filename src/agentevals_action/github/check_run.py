"""The check run: written once, at the end of a run, with annotations."""

import re
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from hashlib import sha256
from typing import Any
from urllib.parse import quote, unquote
from uuid import uuid4

from agentevals_action.github.client.api import ApiError, GitHubApi
from agentevals_action.github.client.replies import CheckRun
from agentevals_action.model import github_limits as limits
from agentevals_action.model.report import Annotation, CheckReport

_PREFIX = "agentevals"
_ID = re.compile(
    rf"{_PREFIX}/([^/]*)/([0-9]{{1,19}})/([0-9]{{1,19}})/([0-9]{{1,19}})/([0-9a-f]*)-.*", re.DOTALL
)
_PERMISSION = "checks: write"
_REJECTED = "GitHub rejected the summary; the job summary contains it."


@dataclass(frozen=True)
class CheckId:
    """What `external_id` states of a check run of this action: the `comment-id` of its gate, the
    workflow run and attempt that wrote it, and the pull request (0 for a commit alone).
    `requested_for` is the digest of the base branch of a requested run, empty for other runs."""

    gate: str
    run: int
    attempt: int
    pull: int
    requested_for: str = ""


def read_id(external_id: str | None) -> CheckId | None:
    """The parts of an `external_id`; None if it is not one of this action."""
    match = _ID.fullmatch(external_id or "")
    if match is None:
        return None
    gate, run, attempt, pull, requested_for = match.groups()
    return CheckId(unquote(gate), int(run), int(attempt), int(pull), requested_for)


def branch_digest(name: str) -> str:
    """The name of a branch in an `external_id`, whose length is limited."""
    return sha256(name.encode("utf-8", "surrogatepass")).hexdigest()[:16]


class CheckRunWriter:
    """One check run on one commit. What fails becomes a notice."""

    def __init__(self, api: GitHubApi, name: str) -> None:
        self._api = api
        self._name = name
        context = api.context
        gate = quote(context.comment_id, safe="")
        requested_for = branch_digest(context.requested_for) if context.requested_for else ""
        self._external_id = (
            f"{_PREFIX}/{gate}/{context.run_id}/{context.run_attempt}/"
            f"{context.pull or 0}/{requested_for}-{uuid4().hex[:8]}"
        )
        self._check: CheckRun | None = None

    @property
    def is_written(self) -> bool:
        """Whether the check run exists."""
        return self._check is not None

    def write(self, report: CheckReport) -> str | None:
        """Writes the check run with its annotations, and returns its URL. A second call replaces
        conclusion and text."""
        annotations = [
            _annotation_body(annotation)
            for annotation in report.annotations
            if annotation.path and not annotation.path.startswith("/")
        ]
        first = annotations[: limits.ANNOTATIONS_PER_REQUEST]
        try:
            check = self._write(report, first)
        except ApiError as error:
            self._api.report("The check run could not be written", error, _PERMISSION)
            return None
        self._annotate(check, _output(report), annotations[len(first) :])
        return check.html_url

    def _write(self, report: CheckReport, annotations: Sequence[Mapping[str, Any]]) -> CheckRun:
        """Writes the conclusion; if GitHub rejects it, without the annotations, then without the
        summary: a check run of this commit that passed before must not stay."""
        output = _output(report)
        outputs = [{**output, "summary": _REJECTED}, output]
        if annotations:
            outputs.append({**output, "annotations": annotations})
        while True:
            try:
                return self._send(report, outputs.pop())
            except ApiError as error:
                if error.kind != "rejected" or not outputs:
                    raise
                self._api.report("The check run is not complete", error, _PERMISSION)

    def _send(self, report: CheckReport, output: Mapping[str, Any]) -> CheckRun:
        context = self._api.context
        body: dict[str, Any] = {
            "status": "completed",
            "conclusion": report.conclusion,
            "output": output,
        }
        if details_url := report.details_url or context.run_url:
            body["details_url"] = details_url
        if self._check is not None:
            return self._api.write("PATCH", f"check-runs/{self._check.id}", body, CheckRun)
        body |= {
            "name": self._name,
            "head_sha": context.head_sha,
            "external_id": self._external_id,
        }
        self._check = self._api.write("POST", "check-runs", body, CheckRun, self._find)
        return self._check

    def _find(self) -> CheckRun | None:
        path = f"commits/{self._api.context.head_sha}/check-runs"
        listed = self._api.pages(path, CheckRun, "check_runs", check_name=self._name, filter="all")
        return next((check for check in listed if check.external_id == self._external_id), None)

    def _annotate(
        self, check: CheckRun, output: Mapping[str, Any], annotations: Sequence[Mapping[str, Any]]
    ) -> None:
        """Adds the annotations that the first request had no room for."""
        size = limits.ANNOTATIONS_PER_REQUEST
        try:
            for start in range(0, len(annotations), size):
                self._api.pause()
                body = {"output": {**output, "annotations": annotations[start : start + size]}}
                self._api.write("PATCH", f"check-runs/{check.id}", body, CheckRun)
        except ApiError as error:
            self._api.report("Some annotations could not be written", error, _PERMISSION)


def _output(report: CheckReport) -> Mapping[str, Any]:
    title = limits.cut_characters(" ".join(report.title.split()), limits.CHECK_TITLE)
    return {
        "title": title or "agentevals",
        "summary": limits.cut_markdown(report.summary, limits.CHECK_SUMMARY),
    }


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
