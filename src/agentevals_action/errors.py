"""Everything a user can cause to go wrong: one tree, each class with its exit code and what to do
about it."""

import signal
from collections.abc import Sequence
from enum import IntEnum
from typing import Any


class ExitCode(IntEnum):
    """What the process tells its caller."""

    PASSED = 0
    FAILED = 1
    INVALID = 2
    COULD_NOT_TELL = 3
    BUG = 4


class AgentEvalsError(Exception):
    """A failure that a user can cause or mend: `str(error)` is what happened, `hint` what to do."""

    exit_code: ExitCode = ExitCode.BUG

    def __init__(self, message: str, hint: str = "") -> None:
        super().__init__(message)
        self.hint = hint

    @property
    def sentence(self) -> str:
        """What happened and what to do about it, in one."""
        return f"{self}; {self.hint}" if self.hint else str(self)


class InvalidInput(AgentEvalsError):
    """Inputs, suites or targets that mean nothing; `faults` holds one line for each, all at
    once."""

    exit_code = ExitCode.INVALID

    def __init__(self, message: str, hint: str = "", errors: Sequence[str] = ()) -> None:
        super().__init__(message, hint)
        self.errors = tuple(errors)


class GitError(AgentEvalsError):
    """Git could not do or find what was asked of it."""

    exit_code = ExitCode.INVALID


class HostError(AgentEvalsError):
    """The code host did not answer, or refused."""

    exit_code = ExitCode.COULD_NOT_TELL


class OutputError(AgentEvalsError):
    """What a run leaves could not be written, or was changed by others before the run was over."""

    exit_code = ExitCode.COULD_NOT_TELL


class AttemptError(AgentEvalsError):
    """One attempt or one evaluator could not be told; never a score.

    `kind` is one of `target`, `judge`, `evaluator`, `timeout`, `budget`, `prepare`, `workspace`,
    `configuration`."""

    exit_code = ExitCode.COULD_NOT_TELL

    def __init__(self, kind: str, message: str, hint: str = "") -> None:
        super().__init__(message, hint)
        self.kind = kind
        #: The `Trace` of what was done, and paid for, before it failed; None where nothing tells.
        self.spent: Any = None


class TransientError(AttemptError):
    """A target's failure worth repeating: connection, 408, 409, 429, 5xx; `retry_after` in seconds
    when the target said so, `limited` when it refuses for its rate limit (429), which is nobody's
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
    """A target that will refuse every further call: 401, 403, a model that does not exist."""

    def __init__(self, message: str, hint: str = "") -> None:
        super().__init__("target", message, hint)


class Interrupted(BaseException):
    """SIGINT or SIGTERM, by its name; not an `Exception`, so that nothing on the way swallows
    it."""

    @property
    def exit_code(self) -> int:
        """As shells tell of a process that a signal ended: 128 and its number."""
        return 128 + signal.Signals[str(self)]
