"""What every provider is: validated options that connect to an agent or model, and one call."""

from abc import abstractmethod
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import ClassVar, Protocol

from pydantic import BaseModel, ConfigDict

from agentevals_action.model.suite import Message
from agentevals_action.model.trace import Trace
from agentevals_action.paths import Folder


@dataclass(frozen=True)
class Request:
    """One call: `attempt` counts a test's samples from 0, `timeout` is in seconds, `suite_folder` the default working directory."""

    messages: Sequence[Message]
    eval_id: str
    attempt: int
    timeout: float
    root: Path
    suite_folder: Path


@dataclass(frozen=True)
class Surroundings:
    """What a provider may use: `variables` resolves names (`${{ }}` and the vendor's usual key), `environment` is the scrubbed
    environment of children, `allowed` the variables that the workflow lets through (a target's `env` picks from those),
    `withheld` the names that were kept back, `scratch` the run's folder for temporary files (the system's when None)."""

    variables: Mapping[str, str]
    environment: Mapping[str, str]
    allowed: Mapping[str, str]
    withheld: tuple[str, ...] = ()
    scratch: Path | None = None


class Provider(Protocol):
    """A connected target."""

    async def complete(self, request: Request) -> Trace:
        """One call. Raises TransientError (worth repeating), TargetDead (stop calling), AttemptError (this test only)."""
        ...

    async def close(self) -> None:
        """Frees connections."""
        ...


class Options(BaseModel):
    """The provider's own fields of a target. `${{ NAME }}` in any string of the definition is resolved before `connect`.

    A plug-in subclasses it, names its `provider` and writes `connect`. `is_model` says that it can judge without a `judge_target`.
    """

    model_config = ConfigDict(frozen=True, strict=True, extra="ignore")

    provider: ClassVar[str]
    is_model: ClassVar[bool] = False
    spellings: ClassVar[Mapping[str, tuple[str, ...]]] = {}

    @abstractmethod
    def connect(self, surroundings: Surroundings) -> Provider:
        """The connected target; cheap, opens nothing yet."""

    def variables(self) -> Sequence[str]:
        """Variables that it needs beside those that `${{ }}` names (`OPENAI_API_KEY` when no key is given)."""
        return ()

    def files(self, folder: Folder) -> Sequence[str]:
        """Files that the command names, relative to the repository (POSIX)."""
        return ()
