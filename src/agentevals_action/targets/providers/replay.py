"""`replay`: the outputs of an earlier run from its results file, to develop evaluators at no
cost."""

import asyncio
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from pathlib import Path, PurePosixPath
from typing import ClassVar

from pydantic import Field

from agentevals_action.errors import AttemptError
from agentevals_action.model.result import SampleResult, TestResult
from agentevals_action.model.trace import Trace, text_of
from agentevals_action.model.validation.file_model import NonEmpty
from agentevals_action.results.jsonl import read_row
from agentevals_action.results.trace_summary import stored_work
from agentevals_action.system.files.paths import Folder
from agentevals_action.system.files.regular_files import open_resolved
from agentevals_action.targets.base import Provider, ProviderContext, ProviderOptions, Request

_SUITE_ENDINGS = (".yaml", ".yml", ".jsonl")
_RERUN = "run the suite that the results come from again, or use another target for this test"


class Replay(ProviderOptions):
    """The outputs of an earlier run: evaluators are developed without calls of the agent."""

    provider: ClassVar[str] = "replay"
    deterministic: ClassVar[bool] = True
    stores_answers: ClassVar[bool] = True

    path: NonEmpty = Field(
        description="The results (JSON Lines) of an earlier run, ours or AgentV's index.jsonl; "
        "relative to the suite's folder, a leading / is the repository's root."
    )
    source_target: NonEmpty | None = Field(
        None, description="Name of the target to use, if the file has results of several."
    )

    def connect(self, context: ProviderContext) -> Provider:  # noqa: ARG002  # of the interface
        """The results, not yet opened."""
        return _Connected(self)

    def files(self, folder: Folder) -> Sequence[str]:
        """The results file, if it exists; ValueError if it leads out of the repository."""
        if "${{" in self.path:
            return ()
        path = folder.resolve(self.path)
        return (folder.relative(path),) if path.is_file() else ()


@dataclass(frozen=True)
class _Row:
    """The result of a test with the names of its suite and target in the file. It is parsed when it
    is used: a file has thousands."""

    suite: str
    target: str
    line: bytes


#: The rows of a file by the test's id.
_Rows = Mapping[str, Sequence[_Row]]


class _Connected(Provider):
    def __init__(self, options: Replay) -> None:
        self._options = options
        self._lock = asyncio.Lock()
        self._files: dict[Path, _Rows] = {}

    def load(self, folder: Folder) -> None:
        """Reads the results. If there are none yet, `prepare` may bring them.

        Attack: an agent writes answers into the results that another test replays."""
        path = self._path(folder)
        self._files[path] = _read_rows(path, self._options.path)

    async def complete(self, request: Request) -> Trace:
        path, rows = await self._rows(request)
        name = self._options.path
        result = _parse(self._find_row(rows, request).line, path.parent, name)
        if not _is_same_question(request, result):
            problem = f"the result of the test `{request.eval_id}` in {name} answers another "
            raise AttemptError("target", problem + "question", _RERUN)
        return _trace(result, request, name)

    async def _rows(self, request: Request) -> tuple[Path, _Rows]:
        path = self._path(Folder(request.root, request.suite_folder))
        async with self._lock:
            if path not in self._files:
                # A thread: a large file takes seconds, and other targets answer meanwhile.
                self._files[path] = await asyncio.to_thread(_read_rows, path, self._options.path)
        return path, self._files[path]

    def _path(self, folder: Folder) -> Path:
        try:
            return folder.file(self._options.path)
        except ValueError as error:
            raise AttemptError(
                "configuration", f"`path`: {error}", "name a results file of the repository"
            ) from None

    def _find_row(self, rows: _Rows, request: Request) -> _Row:
        name, source, eval_id = self._options.path, self._options.source_target, request.eval_id
        candidates = [row for row in rows.get(eval_id, ()) if source in (None, row.target)]
        found = [row for row in candidates if _may_be_of_suite(row, request.suite)]
        if len(found) == 1:
            return found[0]
        hint = _RERUN
        if not candidates:
            of_target = f" of the target `{source}`" if source else ""
            problem = f"{name} has no result of the test `{eval_id}`{of_target}"
        elif not found:
            suites = ", ".join(dict.fromkeys(f"`{row.suite}`" for row in candidates))
            problem = f"{name} has `{eval_id}` of {suites}, and not of `{request.suite}`"
        else:
            sources = dict.fromkeys(f"`{row.suite}` (target `{row.target}`)" for row in found)
            problem = f"{name} has {len(found)} results for `{eval_id}`: of {' and '.join(sources)}"
            hint = (
                "name the target in `source_target`, or keep the results of one suite in the file"
            )
        raise AttemptError("target", problem, hint)


def _may_be_of_suite(row: _Row, suite: str) -> bool:
    """Whether a row belongs to a suite; AgentV's rows need not name the file."""
    stored, own = PurePosixPath(row.suite), PurePosixPath(suite)
    if not suite or stored.suffix not in _SUITE_ENDINGS:
        return True
    # AgentV's path may be an absolute path of another machine.
    return stored.parts[-len(own.parts) :] == own.parts if stored.is_absolute() else stored == own


def _is_same_question(request: Request, result: TestResult) -> bool:
    """Compares the digests of the questions if the row has one (ours has), else the text of the
    last message, which AgentV's rows need not have."""
    if request.question and result.fingerprint:
        return request.question == result.fingerprint.question
    messages = [message for message in request.messages if message.role == "user"]
    messages = messages or list(request.messages)
    text = text_of(messages[-1]) if messages else ""
    stored = result.question
    return not stored or text.encode("utf-8", "replace") == stored.encode("utf-8", "replace")


def _read_rows(path: Path, name: str) -> _Rows:
    """The rows of a file. AttemptError of kind `configuration` if there are none, or one cannot be
    read: its test would seem never to have run."""
    rows: dict[str, list[_Row]] = {}
    try:
        with open_resolved(path) as file:
            for number, line in enumerate(file, 1):
                if not line.strip():
                    continue
                try:
                    result = _parse(line, path.parent, f"{name}:{number}")
                except AttemptError:
                    if line.endswith(b"\n"):
                        raise
                    break  # a killed run leaves its last row incomplete
                row = _Row(result.eval_path, result.target, line)
                rows.setdefault(result.eval_id, []).append(row)
    except OSError as error:
        raise AttemptError("configuration", f"{name} cannot be read: {error.strerror}") from None
    if not rows:
        raise AttemptError(
            "configuration",
            f"{name} has no results",
            "name the results file of a run that finished tests",
        )
    return rows


def _parse(line: bytes, folder: Path, name: str) -> TestResult:
    try:
        return read_row(line, folder)
    except ValueError as error:
        raise AttemptError(
            "configuration",
            f"{name}: not a valid result: {error}",
            "use the file as it was written, or run again",
        ) from None


def _trace(result: TestResult, request: Request, name: str) -> Trace:
    sample = _sample(result, request.attempt)
    of_test = f"of the test `{request.eval_id}` in {name}"
    # The answer is valid even if a judge failed. In AgentV's rows the failure of an agent may look
    # like an answer.
    if sample.error and (not sample.output_messages or sample.error.kind == "target"):
        problem = f"the result {of_test} is an error ({sample.error.kind}): {sample.error.message}"
        raise AttemptError("target", problem, _RERUN)
    if not sample.output_messages:
        raise AttemptError("target", f"the result {of_test} has no answer", _RERUN)
    try:
        return replace(stored_work(sample).trace, cached=True)
    except ValueError as error:
        raise AttemptError("target", f"the answer {of_test} cannot be read: {error}") from None


def _sample(result: TestResult, attempt: int) -> SampleResult:
    if result.samples:
        sample = result.samples[attempt % len(result.samples)]
    else:
        sample = SampleResult(
            candidate_answer=result.candidate_answer,
            trace_summary=result.trace_summary,
            error=result.error,
        )
    if sample.output_messages or not sample.candidate_answer:
        return sample
    message = {"role": "assistant", "content": sample.candidate_answer}
    return replace(sample, output_messages=(message,))
