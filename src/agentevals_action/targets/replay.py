"""`replay`: the outputs of an earlier run from its results file, to develop evaluators at no
cost."""

from collections.abc import Mapping, Sequence
from dataclasses import replace
from pathlib import Path
from typing import ClassVar

from pydantic import Field

from agentevals_action.errors import AttemptError
from agentevals_action.model.diagnostic import NamedFile
from agentevals_action.model.result import SampleResult, TestResult, as_declared
from agentevals_action.model.target import Provider, ProviderContext, Request, Target
from agentevals_action.model.trace import Trace
from agentevals_action.results.jsonl import parse_results
from agentevals_action.results.trace_summary import stored_work
from agentevals_action.system.files.paths import Folder
from agentevals_action.system.files.regular_files import read_resolved
from agentevals_action.validation.file_model import NonEmpty

_SIZE_LIMIT = 2 * 1024**3  # bytes of a results file
_RERUN = "run the suite that the results come from again, or use another target for this test"

#: The rows of a file by the test's id.
_Rows = Mapping[str, Sequence[TestResult]]


class Replay(Target):
    """The outputs of an earlier run: evaluators are developed without calls of the agent."""

    provider: ClassVar[str] = "replay"
    deterministic: ClassVar[bool] = True
    stores_answers: ClassVar[bool] = True

    path: NonEmpty = Field(
        description="The results (JSON Lines) of an earlier run; relative to the suite's folder, a "
        "leading / is the repository's root."
    )

    def connect(self, context: ProviderContext) -> Provider:  # noqa: ARG002  # of the interface
        """The results, not yet opened."""
        return _Connected(self)

    def named_files(self, folder: Folder) -> Sequence[NamedFile]:
        """The results file, if it exists; ValueError if it leads out of the repository."""
        if "${{" in self.path:
            return ()
        path = folder.resolve(self.path)
        return (NamedFile(folder.relative(path), "results"),) if path.is_file() else ()


class _Connected(Provider):
    def __init__(self, target: Replay) -> None:
        self._target = target
        self._files: dict[Path, _Rows] = {}

    def load(self, folder: Folder) -> None:
        """Reads the results, so that no agent can change what another test replays. If there are
        none yet, `prepare` may bring them."""
        path = self._path(folder)
        self._files[path] = _read_rows(path, self._target.path)

    async def complete(self, request: Request) -> Trace:
        """The answer of the stored result."""
        path, name = self._path(Folder(request.root, request.suite_folder)), self._target.path
        if path not in self._files:
            self._files[path] = _read_rows(path, name)
        result = self._find_row(self._files[path], request)
        of_test = f"the result of the test `{request.eval_id}` in {name}"
        if not result.fingerprint or request.question not in ("", result.fingerprint.question):
            raise AttemptError("target", f"{of_test} answers another question", _RERUN)
        if not result.samples:
            raise AttemptError("target", f"{of_test} has no answer", _RERUN)
        return _trace(result.samples[request.attempt % len(result.samples)], of_test)

    def _path(self, folder: Folder) -> Path:
        try:
            return folder.file(self._target.path)
        except ValueError as error:
            raise AttemptError(
                "configuration", f"`path`: {error}", "name a results file of the repository"
            ) from None

    def _find_row(self, rows: _Rows, request: Request) -> TestResult:
        of_test = rows.get(request.eval_id, ())
        matching = [row for row in of_test if request.suite in ("", row.eval_path)]
        if len(matching) == 1:
            return matching[0]
        problem = f"{self._target.path} has {len(matching) or 'no'} results of the test "
        problem += f"`{request.eval_id}` of `{request.suite}`"
        raise AttemptError("target", problem, _RERUN)


def _read_rows(path: Path, name: str) -> _Rows:
    """The rows of a file. AttemptError of kind `configuration` if there are none, or one cannot be
    read: its test would seem never to have run. The last row is left out if a killed run left it
    incomplete."""
    try:
        content = read_resolved(path, _SIZE_LIMIT)
        results = parse_results(content[: content.rfind(b"\n") + 1])
    except (OSError, ValueError) as error:
        problem = error.strerror if isinstance(error, OSError) else error
        hint = "use the file as it was written, or run again"
        raise AttemptError("configuration", f"{name} cannot be read: {problem}", hint) from None
    if not results:
        hint = "name the results file of a run that finished tests"
        raise AttemptError("configuration", f"{name} has no results", hint)
    rows: dict[str, list[TestResult]] = {}
    for result in as_declared(results):
        rows.setdefault(result.eval_id, []).append(result)
    return rows


def _trace(sample: SampleResult, of_test: str) -> Trace:
    # The answer is valid even if a judge failed.
    if sample.error and (not sample.output_messages or sample.error.kind == "target"):
        problem = f"{of_test} is an error ({sample.error.kind}): {sample.error.message}"
        raise AttemptError("target", problem, _RERUN)
    if not sample.output_messages:
        raise AttemptError("target", f"{of_test} has no answer", _RERUN)
    try:
        return replace(stored_work(sample).trace, cached=True)
    except ValueError as error:
        raise AttemptError("target", f"{of_test} cannot be read: {error}") from None
