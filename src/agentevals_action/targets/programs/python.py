"""`python`: an agent that is a Python function, imported once by each of the target's workers."""

import asyncio
import re
from collections.abc import Sequence
from dataclasses import replace
from pathlib import Path
from typing import Annotated, ClassVar

from pydantic import AfterValidator, Field

from agentevals_action.errors import AttemptError
from agentevals_action.model.diagnostic import NamedFile
from agentevals_action.model.target import Provider, ProviderContext, Request
from agentevals_action.model.trace import Trace
from agentevals_action.system.files.paths import Folder
from agentevals_action.system.program import Program
from agentevals_action.system.redaction import redact
from agentevals_action.system.workers import Worker, WorkerEnded
from agentevals_action.targets.dialects.envelope import ReplyModel
from agentevals_action.targets.programs import python_worker
from agentevals_action.targets.programs.command import (
    SKILL_FOLDERS,
    CommandLauncher,
    CommandTarget,
)
from agentevals_action.targets.programs.worker_client import WorkerClient
from agentevals_action.validation.file_model import NonEmpty
from agentevals_action.validation.json_values import parse_json

_TARGET = re.compile(r"[^\W\d]\w*(\.[^\W\d]\w*)*:[^\W\d]\w*(\.[^\W\d]\w*)*")
#: Seconds that an import may take. It does not end with the time-out of the test that waits for
#: it: the next test finds the worker ready.
_IMPORT_SECONDS = 300.0


def _check_target(target: str) -> str:
    if not _TARGET.fullmatch(target) or target.partition(":")[0].endswith(".py"):
        advice = "write `package.module:function`, as Python imports it"
        raise ValueError(f"it does not name a function of a module; {advice}")
    return target


class Python(CommandTarget):
    """An agent that is a Python function."""

    provider: ClassVar[str] = "python"
    skill_folders: ClassVar[tuple[str, ...]] = SKILL_FOLDERS

    target: Annotated[str, AfterValidator(_check_target)] = Field(
        description="The function, as `package.module:function`, imported from the folder to run "
        "in. It gets the messages (a list of `role` and `content`, as OpenAI's chat format has "
        "them) and, if it has parameters of these names, `test_id`, `conversation_id`, `metadata` "
        "and `mcp` (`url` and `headers` of the suite's tools). It returns a text, an envelope, or "
        "a framework's messages or result; it may be async."
    )
    python: NonEmpty = Field(
        "python3",
        description="The interpreter, Python 3.9 or later: a command, or a path relative to the "
        "folder to run in or to the repository's root, as `.venv/bin/python`.",
    )

    def connect(self, context: ProviderContext) -> Provider:
        """The function with its environment; AttemptError if it names a variable that the workflow
        does not pass on."""
        return _Connected(self, context)

    def named_files(self, folder: Folder) -> Sequence[NamedFile]:
        """The module, the packages around it, and what these import."""
        return self.files_among([self.target], folder)


class _Ready(ReplyModel):
    error: str = ""
    traceback: str = ""


class _Connected(Provider):
    def __init__(self, target: Python, context: ProviderContext) -> None:
        self._target, self._workers = target, context.workers
        self._runner = CommandLauncher(target, context)
        self._client = WorkerClient(self._runner, context.workers)

    async def complete(self, request: Request) -> Trace:
        return await self._client.ask(self._program(request), request, self._wait_for_import)

    async def close(self) -> None:
        """Ends the workers."""
        await self._workers.close()

    def _program(self, request: Request) -> Program:
        # The worker itself enters the workspace of each request.
        request = replace(request, workspace=None)
        words = [self._interpreter(request), python_worker.__file__, self._target.target]
        return self._runner.program(words, request)

    def _interpreter(self, request: Request) -> str:
        name, folder = self._target.python, self._runner.working_folder(request)
        folders = (folder, self._runner.tree(request))
        paths = [base / name for base in folders] if "/" in name else [Path(name)]
        for path in paths:
            if self._runner.finds(str(path), folder):
                return str(path)
        where = " or ".join(dict.fromkeys(str(path) for path in paths))
        raise AttemptError(
            "target",
            f"there is no interpreter {where}",
            "create it in the input `prepare`, or fix the target's `python`",
        )

    async def _wait_for_import(self, worker: Worker) -> None:
        target = self._target.target
        try:
            async with asyncio.timeout(_IMPORT_SECONDS):
                line = await worker.next_line()
            ready = _Ready.parse(parse_json(redact(line.decode())), "of a Python worker")
        except TimeoutError:
            problem = f"the import of {target} took over {_IMPORT_SECONDS:g} s"
            raise self._runner.error(problem, worker.errors) from None
        except WorkerEnded as ended:
            ready = _Ready(error=str(ended))
        if ready.error:
            problem = f"{target} cannot be imported: {ready.error}"
            raise self._runner.error(problem, ready.traceback or worker.errors)
