"""The check run: written once, at the end of a run, with annotations."""

import re
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from hashlib import sha256
from typing import Any
from urllib.parse import quote, unquote
from uuid import uuid4

from github.CheckRun import CheckRun

from agentevals_action.errors import HostError
from agentevals_action.github.api import ApiError, GitHubApi, api_errors
from agentevals_action.github.run_requests import other_bases
from agentevals_action.github.runner.runner_environment import RunnerEnvironment
from agentevals_action.model.job import Job, PullRequest
from agentevals_action.reports.markdown import github_limits as limits
from agentevals_action.reports.publication import Annotation, CheckReport
from agentevals_action.settings import Settings

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
    """The check run of one job. What fails becomes a notice."""

    def __init__(
        self, api: GitHubApi, runner: RunnerEnvironment, settings: Settings, job: Job
    ) -> None:
        self._api, self._name, self._job = api, settings.check_name, job
        self._run_url = runner.run_url
        gate = quote(settings.comment_id, safe="")
        requested = job.requested_pull
        requested_for = branch_digest(requested.base_ref) if requested else ""
        self._external_id = (
            f"{_PREFIX}/{gate}/{runner.run_id}/{runner.run_attempt}/"
            f"{job.pull.number if job.pull else 0}/{requested_for}-{uuid4().hex[:8]}"
        )
        self._check: CheckRun | None = None

    @property
    def is_written(self) -> bool:
        """Whether the check run exists."""
        return self._check is not None

    def write(self, report: CheckReport) -> str | None:
        """Writes the check run with its annotations, and returns its URL. A second call replaces
        conclusion and text. The check of a requested run counts for its base branch only."""
        if (pull := self._job.requested_pull) and not self._counts_for(pull):
            return None
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

    def _counts_for(self, requested: PullRequest) -> bool:
        """Whether the check run of a requested run counts for its own base branch alone.

        Attack: the author changes the base branch while the run for a branch with weak judges takes
        place. The claims' check is written for the new branch, and the green check after it."""
        try:
            others = other_bases(self._api, requested)
        except HostError as error:
            self._api.notice(f"The check run was not written: {error.sentence}.")
            return False
        if others:
            self._api.notice(
                f"The check run was not written: it would also count for the base branch "
                f"`{others[0]}`, which was not asked for. Write the command in a new comment."
            )
        return not others

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

    def _send(self, report: CheckReport, output: dict[str, Any]) -> CheckRun:
        facts: dict[str, Any] = {
            "status": "completed",
            "conclusion": report.conclusion,
            "output": output,
        }
        if details_url := report.details_url or self._run_url:
            facts["details_url"] = details_url
        if self._check is not None:
            with api_errors():
                self._check.edit(**facts)
                return self._check
        commit, repository = self._job.head_sha, self._api.repository
        facts |= {"name": self._name, "head_sha": commit, "external_id": self._external_id}

        def find() -> CheckRun | None:
            listed = repository.get_commit(commit).get_check_runs(self._name, filter="all")
            return next((run for run in listed if run.external_id == self._external_id), None)

        self._check = self._api.create(lambda: repository.create_check_run(**facts), find)
        return self._check

    def _annotate(
        self, check: CheckRun, output: Mapping[str, Any], annotations: Sequence[Mapping[str, Any]]
    ) -> None:
        """Adds the annotations that the first request had no room for."""
        size = limits.ANNOTATIONS_PER_REQUEST
        try:
            for start in range(0, len(annotations), size):
                self._api.wait(limits.SECONDS_BETWEEN_WRITES)
                with api_errors():
                    check.edit(output={**output, "annotations": annotations[start : start + size]})
        except ApiError as error:
            self._api.report("Some annotations could not be written", error, _PERMISSION)


def _output(report: CheckReport) -> dict[str, Any]:
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
