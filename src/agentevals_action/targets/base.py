"""The interface of providers: validated options, and a connected provider that answers calls."""

from abc import abstractmethod
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, ClassVar, Protocol

from agentevals_action.model.messages import Message
from agentevals_action.model.target import Target, TargetTraits
from agentevals_action.model.trace import Trace
from agentevals_action.system.child_environment import ChildContext
from agentevals_action.system.files.paths import Folder
from agentevals_action.system.workers import Workers


@dataclass(frozen=True)
class Request:
    """One call of a target.

    `attempt` counts the samples of a test from 0, `repeat` the same question within a sample.
    `is_judge`: the reply is part of a score, and its program runs as the user of judges.
    `timeout` is in seconds. `workspace` is the folder that the agent works in, if the test has one.
    `suite` is the path of the suite's file from the root, `question` the digest of the test's
    question in its fingerprint; both are empty if unknown. `temperature` replaces that of a model's
    definition."""

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
    is_judge: bool = False
    temperature: float | None = None


@dataclass(frozen=True)
class ProviderContext:
    """The environment of a provider.

    `variables` are those for `${{ }}` and the vendors' usual keys. `scratch` is the run's folder
    for temporary files, `workers` are those of the run. `judge_path` returns the path from which a
    target that judges runs for a path in the tree of its suite."""

    variables: Mapping[str, str]
    children: ChildContext
    scratch: Path | None = None
    workers: Workers = field(default_factory=Workers)
    judge_path: Callable[[Path], Path] = lambda path: path


class Calls(Protocol):
    """Answers the requests of a run: by calls of targets, or with stored replies."""

    async def complete(self, target: Target, request: Request) -> Trace:
        """One answer of a target. Raises AttemptError."""
        ...


class Provider(Protocol):
    """A connected target."""

    async def complete(self, request: Request) -> Trace:
        """One call. Raises TransientError (retry), TargetDead (stop calling this target),
        AttemptError (an error of this test)."""
        ...

    def load(self, folder: Folder) -> None:  # of the interface
        """Reads the files that decide about answers, before the first program starts; `folder` is
        that of the suite. Raises AttemptError."""
        return

    async def check(self, request: Request) -> str:  # of the interface
        """One call of a model or a service, with the errors of `complete`. What is known in its
        place if the target was not asked, otherwise empty."""
        return "it was not asked: only models, services and healthchecks are"

    async def close(self) -> None:
        """Closes the connections, if there are any."""
        return


class ProviderOptions(TargetTraits):
    """The provider's own fields of a target, with `${{ NAME }}` resolved before `connect`.

    `key_variable` is the vendor's usual variable for a key, `vendor_url` the vendor's own address.
    `aliases` are other names of the provider."""

    provider: ClassVar[str]
    aliases: ClassVar[tuple[str, ...]] = ()
    key_variable: ClassVar[str] = ""
    vendor_url: ClassVar[str] = ""

    def __repr__(self) -> str:
        """The class alone: a field may hold a key."""
        return f"{type(self).__name__}(…)"

    __str__ = __repr__

    @abstractmethod
    def connect(self, context: ProviderContext) -> Provider:
        """The connected target; opens no connection yet."""

    def warnings(self) -> Sequence[tuple[str, str, str]]:
        """Probable mistakes: the field, the problem, the advice."""
        return ()

    def default_keys(self) -> Sequence[str]:
        """The vendor's usual variable, if its value is sent because no key is given."""
        return ()

    def destination(self) -> str:
        """Where a call sends the fields and the key: the origin of a server, else the name of the
        provider. `${{ NAME }}` is resolved."""
        return self.provider

    def files(self, folder: Folder) -> Sequence[str]:
        """Files of the repository that the definition names (relative, POSIX)."""
        return ()
