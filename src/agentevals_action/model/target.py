"""Configured targets and their calls, and the choice of a target for a test or a judge."""

from abc import abstractmethod
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Annotated, Any, ClassVar, Protocol

from pydantic import AfterValidator, Field

from agentevals_action.model.diagnostic import Diagnostic, Location, NamedFile, missing_program
from agentevals_action.model.messages import Message
from agentevals_action.model.tools import ToolAccess, ToolSet
from agentevals_action.model.trace import Trace
from agentevals_action.system.child_environment import ChildContext
from agentevals_action.system.files.paths import Folder
from agentevals_action.system.services import StartedServices
from agentevals_action.system.workers import Workers
from agentevals_action.validation.file_model import (
    Computed,
    NonEmpty,
    TargetModel,
    spelled,
)

_Dollars = Annotated[float, Field(ge=0)]


class Price(TargetModel):
    """US dollars per million tokens. If a price of cached input is None, the price of `input`
    applies. Calls with more than `max_prompt` input tokens have other prices, which are unknown."""

    noun = "price"

    input: _Dollars
    output: _Dollars
    cached_input: _Dollars | None = None
    cache_write: _Dollars | None = None
    max_prompt: Computed[int | None] = None


@dataclass(frozen=True)
class Request:
    """One call of a target.

    `attempt` counts the samples of a test from 0, `repeat` the same question within a sample.
    `is_judge`: the reply is part of a score, and its program runs as the user of judges. `timeout`
    is in seconds. `workspace` is the folder that the agent works in, if the test has one. `suite`
    is the path of the suite's file from the root, `question` the digest of the test's question in
    its fingerprint; both are empty if unknown. `temperature` replaces the temperature of a model's
    definition. `tools` are the tools that the test answers; `access` is how the agent reaches them,
    in the call of a provider."""

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
    tools: ToolSet | None = None
    access: ToolAccess | None = None


@dataclass(frozen=True)
class ProviderContext:
    """The environment of a provider.

    `variables` are the variables for `${{ }}` and the vendors' usual keys. `scratch` is the run's
    folder for temporary files, `workers` and `services` belong to the run. `judge_path` returns the
    path from which a target that judges runs for a path in the tree of its suite."""

    variables: Mapping[str, str]
    children: ChildContext
    scratch: Path | None = None
    workers: Workers = field(default_factory=Workers)
    judge_path: Callable[[Path], Path] = lambda path: path
    services: StartedServices = field(default_factory=StartedServices)


class Provider(Protocol):
    """A connected target."""

    async def wait_until_ready(self, request: Request) -> None:  # noqa: ARG002  # of the interface
        """Waits until the target can be called, before each call. The wait is no part of the call's
        time, and has its own limit. Raises AttemptError."""
        return

    async def complete(self, request: Request) -> Trace:
        """One call. Raises TransientError (retry), TargetDead (stop calling this target),
        AttemptError (an error of this test)."""
        ...

    def load(self, folder: Folder) -> None:  # noqa: ARG002  # of the interface
        """Reads the files that decide about answers, before the first program starts; `folder` is
        the suite's. Raises AttemptError."""
        return

    async def check(self, request: Request) -> str:  # noqa: ARG002  # of the interface
        """One call of a model or a service that is ready, with the errors of `complete`. Returns a
        sentence if the target was not asked, else an empty text."""
        return "it was not asked: only models, services and healthchecks are"

    async def close(self) -> None:
        """Closes the connections, if there are any."""
        return


def _refuse_batching(value: bool) -> bool:
    if value:
        raise ValueError("it is not supported: each test is a separate call; leave it out")
    return value


class Target(TargetModel):
    """One entry of a targets file, `extends` applied: the fields that all targets have in common.

    Each provider is a subclass, which adds its own fields and implements `connect`. `key_variable`
    is the vendor's usual variable for a key. A target that `is_model` can judge without a
    `judge_target`. `is_defined`: its definition determines its replies, so that they can be cached.
    `deterministic`: it always answers the same, at no cost. `stores_answers`: its answers are in a
    file, which is read before the first program starts. `runs_programs`: a call may run a program
    of the repository. `skill_folders` are the folders of a workspace in which it finds skills;
    `skill_mark` precedes the name of a skill in a prompt that invokes it, and is empty if no prompt
    can. A target that `takes_tools` calls the tools that a suite answers.

    The strings of the provider's fields may contain `${{ NAME }}`, which is resolved before
    `connect`. `timeout_seconds`, `max_concurrency` and `requests_per_minute` are None when the
    target sets none; `retries` counts repetitions after the first call. `definition` is the whole
    entry as written, for fingerprints. `variables` are the names that it needs, `files` the
    files of its command and what they import."""

    noun = "target"

    provider: ClassVar[str]
    key_variable: ClassVar[str] = ""
    is_model: ClassVar[bool] = False
    is_defined: ClassVar[bool] = False
    deterministic: ClassVar[bool] = False
    stores_answers: ClassVar[bool] = False
    runs_programs: ClassVar[bool] = False
    skill_folders: ClassVar[tuple[str, ...]] = ()
    skill_mark: ClassVar[str] = "/"
    takes_tools: ClassVar[bool] = False

    name: NonEmpty
    written_provider: NonEmpty = spelled("provider")
    extends: NonEmpty | None = spelled("extends", "use_target", default=None)
    judge_target: NonEmpty | None = spelled("judge_target", "grader_target", default=None)
    max_concurrency: Annotated[int, Field(ge=1)] | None = spelled(
        "max_concurrency", "workers", default=None
    )
    retries: Annotated[int, Field(ge=0, le=10)] = spelled("retries", "max_retries", default=2)
    timeout_seconds: Annotated[float, Field(gt=0)] | None = None
    price: Price | None = None
    requests_per_minute: Annotated[int, Field(ge=1)] | None = None
    provider_batching: Annotated[bool, AfterValidator(_refuse_batching)] = False

    definition: Computed[Mapping[str, Any]] = Field(default_factory=dict)
    location: Computed[Location] = Location("")
    places: Computed[Mapping[str, Location]] = Field(default={})
    variables: Computed[tuple[str, ...]] = ()
    files: Computed[tuple[NamedFile, ...]] = ()

    def __repr__(self) -> str:
        """The class alone: a field may hold a key."""
        return f"{type(self).__name__}(…)"

    __str__ = __repr__

    @abstractmethod
    def connect(self, context: ProviderContext) -> Provider:
        """The connected target; opens no connection yet."""

    @property
    def is_shared(self) -> bool:
        """Whether a call asks a service that runs already, the same for head and base."""
        return False

    def refuse_commands(self) -> tuple[str, str] | None:
        """Why it cannot call the commands that a suite answers, and the advice; None if it can."""
        advice = "`commands` need a coding agent, or `cli` without `serve`"
        return "keeps its program for several tests", advice

    def find_own_servers(self) -> Sequence[str]:
        """The words with which its definition starts MCP servers that no suite answers."""
        return ()

    @property
    def asks_vendor(self) -> bool:
        """Whether a call goes to the vendor's own address. `${{ NAME }}` is resolved."""
        return False

    def own_fields(self) -> dict[str, Any]:
        """The fields of its provider as data, without defaults."""
        return self.model_dump(exclude={*Target.model_fields}, exclude_defaults=True)

    def warnings(self) -> Sequence[tuple[str, str, str]]:
        """Probable mistakes: the field, the problem, the advice."""
        return ()

    def other_variables(self) -> Sequence[str]:
        """Names of the variables that it needs in addition to those in `${{ }}`."""
        return ()

    def default_keys(self) -> Sequence[str]:
        """The vendor's usual variable, if its value is sent because no key is given."""
        return ()

    def priced_model(self) -> str | None:
        """The model whose price per token the answers have, if the definition names it."""
        return None

    def destination(self) -> str:
        """Where a call sends the fields and the key: the origin of a server, else the name of the
        provider. `${{ NAME }}` is resolved."""
        return self.provider

    def named_files(self, folder: Folder) -> Sequence[NamedFile]:  # noqa: ARG002  # of the interface
        """Files of the repository that the definition names."""
        return ()

    def missing_script(self, folder: Folder) -> Path | None:  # noqa: ARG002  # of the interface
        """The program or script that it runs as a file and that does not exist, for a suite in a
        folder."""
        return None

    def missing_program(self, folder: Folder) -> Diagnostic | None:
        """The error of the program of `missing_script`."""
        script, owner = self.missing_script(folder), f"the target `{self.name}`"
        return missing_program(self.location, owner, script, folder.root) if script else None


class Calls(Protocol):
    """Answers the requests of a run: by calls of targets, or with stored replies."""

    async def complete(self, target: Target, request: Request) -> Trace:
        """One answer of a target. Raises AttemptError."""
        ...


@dataclass(frozen=True)
class Choice:
    """The name of a target, and the reason in a word; both empty if nothing names a target."""

    name: str | None = None
    reason: str = ""


@dataclass(frozen=True)
class TargetTable:
    """The targets that a suite sees. `path` is the targets file, relative to the repository, None
    without one; `names` are the names of all its targets, also of invalid targets.

    `agent_override` and `judge_override` are the user's inputs."""

    path: str | None = None
    targets: Mapping[str, Target] = field(default_factory=dict)
    agent_override: str | None = None
    judge_override: str | None = None
    names: tuple[str, ...] = ()

    def get(self, name: str | None) -> Target | None:
        """The target of this name; None without such a target, or without a name."""
        return self.targets.get(name or "")

    def agent(self, wanted: str | None) -> str | None:
        """Name of the agent's target: override, choice of the test or its suite, `default`; None
        without a target."""
        return self.agent_choice(wanted).name

    def agent_choice(self, wanted: str | None) -> Choice:
        """The agent's target, with its reason: `input`, `suite`, `default`."""
        default = "default" if "default" in self.targets else None
        return _first(
            ("input", self.agent_override),
            ("suite", wanted),
            ("default", default),
        )

    def judge_choice(self, evaluator_target: str | None, agent: Target | None) -> Choice:
        """The judge's target, with its reason: `evaluator` (its `target`), `input`,
        `judge_target` of the agent, `agent` (itself, if it is a model)."""
        named = agent.judge_target if agent else None
        itself = agent.name if agent and agent.is_model else None
        return _first(
            ("evaluator", evaluator_target),
            ("input", self.judge_override),
            ("judge_target", named),
            ("agent", itself),
        )


def _first(*choices: tuple[str, str | None]) -> Choice:
    return next((Choice(name, reason) for reason, name in choices if name), Choice())
