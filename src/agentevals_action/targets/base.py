"""What every provider is: validated options that connect to an agent or model, and one call."""

from abc import abstractmethod
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, ClassVar, Protocol

from agentevals_action.entries.entry import Entry
from agentevals_action.model.suite import Message
from agentevals_action.model.trace import Trace
from agentevals_action.system.paths import Folder


@dataclass(frozen=True)
class Request:
    """One call: `attempt` counts a test's samples from 0, `timeout` is in seconds, `suite_folder`
    the default working directory, and `workspace` the folder that an agent is to work in, where the
    test has one. `conversation_id` and `metadata` are the test's, `suite` is the suite's file,
    relative to the root, empty where none is known. `repeat` counts the same question within a
    sample. `question` is the digest of all that the test asks, as in its result's fingerprint,
    empty where it is not known."""

    messages: Sequence[Message]
    eval_id: str
    attempt: int
    timeout: float
    root: Path
    suite_folder: Path
    workspace: Path | None = None
    conversation_id: str | None = None
    metadata: Mapping[str, Any] = field(default_factory=dict)
    repeat: int = 0
    suite: str = ""
    question: str = ""


@dataclass(frozen=True)
class ProviderContext:
    """What a provider may use: `variables` resolves names (`${{ }}` and the vendor's usual key),
    `environment` is the scrubbed environment of children, `allowed` the variables that the workflow
    lets through (a target's `env` picks from those), `withheld` the names that were kept back,
    `scratch` the run's folder for temporary files (the system's when None)."""

    variables: Mapping[str, str]
    environment: Mapping[str, str]
    allowed: Mapping[str, str]
    withheld: tuple[str, ...] = ()
    scratch: Path | None = None


class Provider(Protocol):
    """A connected target."""

    async def complete(self, request: Request) -> Trace:
        """One call. Raises TransientError (worth repeating), TargetDead (stop calling),
        AttemptError (this test only)."""
        ...

    async def check(self, request: Request) -> None:
        """The least that tells whether it would answer (one token, a health check); raises what
        `complete` raises."""
        ...

    async def close(self) -> None:
        """Frees connections."""
        ...


class ProviderOptions(Entry):
    """The provider's own fields of a target. `${{ NAME }}` in any string of the definition is
    resolved before `connect`.

    A plug-in subclasses it, names its `provider` and writes `connect`. `is_model` says that it can
    judge without a `judge_target`; `is_defined` that its definition is all there is behind it, so
    that a stored reply to the same request is as good as a new one (a model; of an agent only its
    address or command is known); `deterministic` that it always answers the same, at no cost.
    `key_variable` is the vendor's usual variable of a key, which `connect` may fall back to."""

    provider: ClassVar[str]
    is_model: ClassVar[bool] = False
    is_defined: ClassVar[bool] = False
    deterministic: ClassVar[bool] = False
    key_variable: ClassVar[str] = ""
    spellings: ClassVar[Mapping[str, tuple[str, ...]]] = {}

    def __repr__(self) -> str:
        """The class alone: among the fields may be a key."""
        return f"{type(self).__name__}(…)"

    @abstractmethod
    def connect(self, surroundings: ProviderContext) -> Provider:
        """The connected target; cheap, opens nothing yet."""

    def variables(self) -> Sequence[str]:
        """Variables that it needs beside those that `${{ }}` names (`OPENAI_API_KEY` when no key is
        given)."""
        return ()

    def files(self, folder: Folder) -> Sequence[str]:
        """Files that the command names, relative to the repository (POSIX)."""
        return ()
