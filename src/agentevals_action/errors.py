"""Every failure that a user can cause: one class per exit code and cause, each with advice."""

import signal
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from enum import IntEnum
from typing import Any


class ExitCode(IntEnum):
    """The exit codes of the program."""

    PASSED = 0
    FAILED = 1
    INVALID = 2
    INCONCLUSIVE = 3
    BUG = 4


class AgentEvalsError(Exception):
    """A failure that a user can cause or fix: `str(error)` states it, `hint` is the advice. Several
    failures have one line each in `errors`."""

    exit_code: ExitCode = ExitCode.BUG
    errors: tuple[str, ...] = ()

    def __init__(self, message: str, hint: str = "") -> None:
        super().__init__(message)
        self.hint = hint

    @property
    def sentence(self) -> str:
        """The message and the hint: in one sentence, or below the lines of an output."""
        if not self.hint:
            return str(self)
        return f"{self}\n{self.hint}" if "\n" in str(self) else f"{self}; {self.hint}"


class InvalidInput(AgentEvalsError):
    """Invalid inputs, suites or targets; `errors` has one line for each, all at once."""

    exit_code = ExitCode.INVALID

    def __init__(self, message: str, hint: str = "", errors: Sequence[str] = ()) -> None:
        super().__init__(message, hint)
        self.errors = tuple(errors)


class GitError(AgentEvalsError):
    """A git command failed, or a revision does not exist."""

    exit_code = ExitCode.INVALID


class HostError(AgentEvalsError):
    """The code host did not answer, or refused."""

    exit_code = ExitCode.INCONCLUSIVE


class OutputError(AgentEvalsError):
    """A file of the run could not be written, or others changed it during the run."""

    exit_code = ExitCode.INCONCLUSIVE


class ResourceError(AgentEvalsError):
    """The machine has no memory, process, thread, open file or disk space left for the run. A
    program of the pull request can cause this, so that it is a failure whatever `on-inconclusive`
    is."""

    exit_code = ExitCode.INCONCLUSIVE


class AttemptError(AgentEvalsError):
    """An attempt or an evaluator that could not be scored.

    `kind` is one of `target`, `judge`, `evaluator`, `timeout`, `budget`, `prepare`, `workspace`,
    `configuration`, `resources`, `shard`, `runner`, `bug`, `tools` (a call that the suite has
    no reply for)."""

    exit_code = ExitCode.INCONCLUSIVE

    def __init__(self, kind: str, message: str, hint: str = "") -> None:
        super().__init__(message, hint)
        self.kind = kind
        #: The `Trace` of the part before the failure, which has a cost; None if unknown.
        self.spent: Any = None

    def copy(self) -> "AttemptError":
        """The same error for another call: an exception keeps the frames of the call that raised
        it."""
        return AttemptError(self.kind, str(self), self.hint)


class UnusableVariables(AttemptError):
    """A `.env` file that cannot be used. Before a run, it is invalid input."""

    exit_code = ExitCode.INVALID

    def __init__(self, message: str, hint: str) -> None:
        super().__init__("configuration", message, hint)


class TransientError(AttemptError):
    """A failure of a target that is retried: connection, 408, 409, 429, 5xx. `retry_after` is in
    seconds if the target gave it. `limited` marks a rate limit (429), which is not counted as a
    failure."""

    def __init__(
        self,
        message: str,
        retry_after: float | None = None,
        *,
        limited: bool = False,
        hint: str = "",
    ) -> None:
        super().__init__("target", message, hint)
        self.retry_after = retry_after
        self.limited = limited


class TargetDead(AttemptError):
    """A target that refuses every further call: 401, 403, a model that does not exist."""

    def __init__(self, message: str, hint: str = "") -> None:
        super().__init__("target", message, hint)


class NoCredit(TargetDead):
    """A target whose account cannot pay further calls."""

    def __init__(self, message: str) -> None:
        super().__init__(
            message,
            "the account has no credit, or its limit is reached: raise it, or wait until it is "
            "renewed",
        )


class NotStored(AttemptError):
    """A request that no stored reply answers in a replay. The test could not be scored, whatever a
    judge's program makes of it."""

    def __init__(self, message: str, hint: str = "") -> None:
        super().__init__("target", message, hint)


class Interrupted(BaseException):
    """SIGINT or SIGTERM, by name; not an `Exception`, so that no handler of errors catches it."""

    @property
    def exit_code(self) -> int:
        """128 plus the number of the signal, as in shells."""
        return 128 + signal.Signals[str(self)]


@contextmanager
def unwrapped() -> Iterator[None]:
    """If a group of tasks failed only with errors that a user can fix, raises the first error
    instead of the group."""
    try:
        yield
    except BaseExceptionGroup as group:
        matched, others = group.split(AgentEvalsError)
        if others is not None or matched is None:
            raise
        first: BaseException = matched
        while isinstance(first, BaseExceptionGroup):
            first = first.exceptions[0]
        raise first from group
