"""`replay`: the outputs of an earlier run again, out of its results file, so that graders can be
worked on at no cost."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from pathlib import Path, PurePosixPath
from typing import TYPE_CHECKING, Annotated, ClassVar

from msgspec import Meta

from agentevals_action.entries.entry import NonEmpty
from agentevals_action.errors import AttemptError
from agentevals_action.model.trace import Trace, text_of
from agentevals_action.system.paths import Folder
from agentevals_action.targets import base

if TYPE_CHECKING:
    from agentevals_action.model.result import SampleResult, TestResult

_SUITE_ENDINGS = (".yaml", ".yml", ".jsonl")
_RERUN = "run the suite again where the results come from, or put this test to another target"


class Replay(base.ProviderOptions):
    """The outputs of an earlier run again: graders are worked on without a call to the agent."""

    provider: ClassVar[str] = "replay"
    deterministic: ClassVar[bool] = True

    path: Annotated[
        str,
        Meta(
            min_length=1,
            description="The results (JSON Lines) of an earlier run, ours or AgentV's index.jsonl; relative to the suite's folder, a "
            "leading / is the repository's root.",
        ),
    ]
    source_target: Annotated[
        NonEmpty | None,
        Meta(
            description="Name of the target whose results are meant, where the file holds those of several."
        ),
    ] = None

    def connect(self, surroundings: base.ProviderContext) -> base.Provider:  # noqa: ARG002
        """The results, not yet opened."""
        return _Connected(self)

    def files(self, folder: Folder) -> Sequence[str]:
        """The results file, where it is there; ValueError when it leads out of the repository."""
        if "${{" in self.path:
            return ()
        path = folder.resolve(self.path)
        return (folder.relative(path),) if path.is_file() else ()


@dataclass(frozen=True)
class _Row:
    """Where a test's row stands in its file: offset and length in bytes; `suite` and `target` as it
    names them."""

    suite: str
    target: str
    offset: int
    length: int


#: The rows of a file by the test's id.
_Index = Mapping[str, Sequence[_Row]]


class _Connected:
    def __init__(self, options: Replay) -> None:
        import asyncio  # late: targets are read without an event loop

        self._options = options
        self._lock = asyncio.Lock()
        self._indexes: dict[Path, _Index] = {}

    async def complete(self, request: base.Request) -> Trace:
        path, index = await self._index(request)
        row = self._row(index, request)
        result = _read(path, row)
        if result.eval_id != request.eval_id:
            raise AttemptError("target", f"{self._options.path} was changed while it was read")
        if not _asks(request, result):
            problem = f"the result of the test `{request.eval_id}` in {self._options.path} answers another question than this one"
            raise AttemptError("target", problem, _RERUN)
        return _trace(result, request, self._options.path)

    async def check(self, request: base.Request) -> None:
        """The file is there and can be read."""
        await self._index(request)

    async def close(self) -> None:
        """Holds nothing open."""

    async def _index(self, request: base.Request) -> tuple[Path, _Index]:
        try:
            path = Folder(request.root, request.suite_folder).file(self._options.path)
        except ValueError as error:
            raise AttemptError(
                "configuration", f"`path`: {error}", "name a results file of the repository"
            ) from None
        async with self._lock:
            if path not in self._indexes:
                import asyncio

                # A thread: a large file takes seconds, and other targets answer meanwhile.
                self._indexes[path] = await asyncio.to_thread(_indexed, path, self._options.path)
        return path, self._indexes[path]

    def _row(self, index: _Index, request: base.Request) -> _Row:
        name, wanted = self._options.path, self._options.source_target
        rows = [row for row in index.get(request.eval_id, ()) if wanted in (None, row.target)]
        of_target = f" of the target `{wanted}`" if wanted else ""
        if not rows:
            raise AttemptError(
                "target",
                f"{name} holds no result of the test `{request.eval_id}`{of_target}",
                _RERUN,
            )
        found = [row for row in rows if _is_of(row, request)]
        if not found:
            suites = ", ".join(dict.fromkeys(f"`{row.suite}`" for row in rows))
            problem = f"{name} holds `{request.eval_id}` of {suites}, and not of `{request.suite}`"
            raise AttemptError("target", problem, _RERUN)
        if len(found) > 1:
            told = " and ".join(
                dict.fromkeys(f"`{row.suite}` (target `{row.target}`)" for row in found)
            )
            problem = f"{name} holds {len(found)} results that may be meant by `{request.eval_id}`: of {told}"
            raise AttemptError(
                "target",
                problem,
                "name the target in `source_target`, or keep the results of one suite in the file",
            )
        return found[0]


def _is_of(row: _Row, request: base.Request) -> bool:
    """Whether a row is of the test's suite, or may be: AgentV's rows need not tell the file."""
    told, suite = PurePosixPath(row.suite), PurePosixPath(request.suite)
    if not request.suite or told.suffix not in _SUITE_ENDINGS:
        return True
    # AgentV's path may be an absolute one, of another machine.
    return told.parts[-len(suite.parts) :] == suite.parts if told.is_absolute() else told == suite


def _asks(request: base.Request, result: "TestResult") -> bool:
    """Whether a request is the one that was answered then: by all that is asked, files and earlier
    messages included, where the row tells what that was (ours does), else by the text that it keeps
    of the last message; AgentV's rows need not keep any."""
    if request.question and result.fingerprint:
        return request.question == result.fingerprint.question
    asked = [message for message in request.messages if message.role == "user"] or list(
        request.messages
    )
    text = text_of(asked[-1]) if asked else ""
    return not result.question or text.encode("utf-8", "replace") == result.question.encode(
        "utf-8", "replace"
    )


def _indexed(path: Path, name: str) -> _Index:
    """The rows of a file. AttemptError of kind `configuration` when there are none, or one cannot
    be read: half of the results would look like tests that never ran."""
    rows: dict[str, list[_Row]] = {}
    known: dict[str, str] = {}
    try:
        with path.open("rb") as file:
            offset = 0
            for number, line in enumerate(file, 1):
                if line.strip():
                    try:
                        result = _parsed(line, path.parent, f"{name}:{number}")
                    except AttemptError:
                        if line.endswith(b"\n"):
                            raise
                        break  # a killed run left its last row broken: its test has no result
                    # Thousands of rows name few suites and targets: each is kept once.
                    suite, target = (
                        known.setdefault(text, text) for text in (result.eval_path, result.target)
                    )
                    rows.setdefault(result.eval_id, []).append(
                        _Row(suite, target, offset, len(line))
                    )
                offset += len(line)
    except OSError as error:
        raise AttemptError("configuration", f"{name} cannot be read: {error.strerror}") from None
    if not rows:
        raise AttemptError(
            "configuration",
            f"{name} holds no result",
            "name the results file of a run that finished tests",
        )
    return rows


def _read(path: Path, row: _Row) -> "TestResult":
    try:
        with path.open("rb") as file:
            file.seek(row.offset)
            return _parsed(file.read(row.length), path.parent, path.name)
    except OSError as error:
        raise AttemptError(
            "configuration", f"{path.name} cannot be read: {error.strerror}"
        ) from None


def _parsed(line: bytes, folder: Path, place: str) -> "TestResult":
    from agentevals_action.results.rows import read_row

    try:
        return read_row(line, folder)
    except ValueError as error:
        raise AttemptError(
            "configuration",
            f"{place}: no result: {error}",
            "give the file as it was written, or run again",
        ) from None


def _trace(result: "TestResult", request: base.Request, name: str) -> Trace:
    """The trace of the sample whose turn it is, its figures those of the earlier run."""
    from agentevals_action.results.build import stored_work

    sample = _sample(result, request.attempt)
    of = f"of the test `{request.eval_id}` in {name}"
    # What a judge could not tell is no matter: the answer stands. An agent's failure may look like
    # an answer in AgentV's rows.
    if sample.error and (not sample.output_messages or sample.error.kind == "target"):
        raise AttemptError(
            "target",
            f"the result {of} is an error ({sample.error.kind}): {sample.error.message}",
            _RERUN,
        )
    if not sample.output_messages:
        raise AttemptError("target", f"the result {of} keeps no answer", _RERUN)
    try:
        return replace(stored_work(sample).trace, cached=True)
    except ValueError as error:
        raise AttemptError("target", f"the answer {of} cannot be read: {error}") from None


def _sample(result: "TestResult", attempt: int) -> "SampleResult":
    from agentevals_action.model.result import SampleResult

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
    return replace(
        sample, output_messages=({"role": "assistant", "content": sample.candidate_answer},)
    )
