"""A suite without its dialect: tests, messages, evaluators, gates."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, ClassVar, Literal

from agentevals_action.model.diagnostic import Diagnostic, Location
from agentevals_action.model.target import Target, TargetTable
from agentevals_action.model.validation.file_model import FileModel

Role = Literal["system", "user", "assistant", "tool"]
BlockType = Literal["text", "file", "image", "json"]
Origin = Literal["test", "rubrics", "suite", "default"]


@dataclass(frozen=True)
class NamedFile:
    """A file that a suite names: `path` relative to the repository (POSIX), `role` in words
    (`prompt`, `judge script`, `test file`)."""

    path: str
    role: str


@dataclass(frozen=True)
class Block:
    """One part of a message: `value` is text for `text`, the data for `json`, and for `file` and
    `image` what the suite wrote; `path` is then the absolute file (None for an inline base64
    image), and `data` its content when the suite was loaded."""

    type: BlockType
    value: Any
    path: Path | None = None
    data: bytes = field(default=b"", repr=False)


@dataclass(frozen=True)
class ToolCall:
    """A tool that an assistant called; `arguments` decoded, `duration_ms` None when unknown.
    `refused`: the agent was not permitted to make the call, so that it was not made."""

    name: str
    arguments: Any = None
    output: Any = None
    id: str | None = None
    duration_ms: float | None = None
    refused: bool = False


@dataclass(frozen=True)
class Message:
    """One message; a string content in the file is kept as a string, blocks as a tuple."""

    role: Role
    content: str | tuple[Block, ...]
    name: str | None = None
    tool_call_id: str | None = None
    tool_calls: tuple[ToolCall, ...] = ()

    @property
    def blocks(self) -> tuple[Block, ...]:
        """The blocks; a string is one of text."""
        return (Block("text", self.content),) if isinstance(self.content, str) else self.content


@dataclass(frozen=True)
class Gate:
    """Something `required`: `name` is the path of names from the test's evaluator down, joined by
    `/`; `location` is where an annotation goes (the gate's own entry, or the test when the gate is
    the suite's)."""

    name: str
    location: Location


@dataclass(frozen=True)
class Mismatch:
    """A reason why an evaluator's options do not fit a test."""

    location: Location | None
    problem: str
    advice: str


class EvaluatorTraits(FileModel):
    """The properties of an evaluator that the options of its type declare.

    `deterministic` types give the same score for the same answer. With `asks_judge`, the common
    field `target` names a judge. `children_field` is the field that holds other evaluators."""

    deterministic: ClassVar[bool] = True
    asks_judge: ClassVar[bool] = False
    children_field: ClassVar[str] = ""

    def needs_judge(self) -> bool:
        """Whether these options need a judge target."""
        return self.asks_judge

    def judge_temperature(self) -> float | None:
        """The temperature that the judge is asked with; None for the target's own."""
        return None

    def missing_script(self) -> Path | None:
        """The program or script that these options run as a file and that does not exist."""
        return None

    def check(self, test: "Test") -> Sequence[Mismatch]:  # noqa: ARG002  # of the interface
        """Reasons why these options, not those of inner evaluators, do not fit a test."""
        return ()

    def children(self) -> Sequence["Evaluator"]:
        """The evaluators directly inside this one, in suite order."""
        return ()


@dataclass(frozen=True)
class Evaluator:
    """One effective evaluator of a test: the common fields resolved, the type's own in `options`.

    `threshold` is the score (0-1) that it must reach as a gate, None when it is none. `target`
    names the judge, if the suite names one. `gates` are its own gate (when it is one) and those
    inside it. `files` are what its options name."""

    name: str
    type: str
    options: EvaluatorTraits
    origin: Origin
    location: Location
    weight: float = 1.0
    threshold: float | None = None
    negate: bool = False
    config: Mapping[str, Any] = field(default_factory=dict)
    target: str | None = None
    gates: tuple[Gate, ...] = ()
    files: tuple[NamedFile, ...] = ()


Reset = Literal["none", "fast", "strict"]


@dataclass(frozen=True)
class Repo:
    """A git repository that a workspace holds at `path` (relative to it): `source` is a URL, or
    absolute where the suite names a folder of the repository; `commit` a revision."""

    path: str
    source: str | Path
    commit: str | None = None


@dataclass(frozen=True)
class Hook:
    """A command of a workspace's life: words, or a script of `sh`. `cwd` is absolute (by default
    the folder of the file that declares the command), `timeout_seconds` its limit, `files` those of
    the repository that its words name."""

    command: str | tuple[str, ...]
    location: Location
    cwd: Path
    timeout_seconds: float = 60.0
    files: tuple[NamedFile, ...] = ()


@dataclass(frozen=True)
class Workspace:
    """The folder that an agent works in, effective for one test (its own fields over the suite's).

    All tests share the suite's folder, one after another in suite order; a test with workspace
    fields (`own`) has its own. `per_test` makes a fresh folder for each sample.
    `template` is absolute. `reset` is what happens to the folder after each test, `reset_before`
    before each. `files` are those that make it: of the template, of repositories that lie in this
    one, of all hooks."""

    location: Location
    own: bool = False
    template: Path | None = None
    per_test: bool = False
    repos: tuple[Repo, ...] = ()
    before_all: Hook | None = None
    before_each: Hook | None = None
    after_each: Hook | None = None
    after_all: Hook | None = None
    reset: Reset = "none"
    reset_before: Reset = "none"
    files: tuple[NamedFile, ...] = ()


@dataclass(frozen=True)
class Test:
    """One test, effective: the suite's messages and evaluators are already in it, in the order of
    the README's section "Suites"."""

    __test__ = False  # pytest: not a test case

    id: str
    location: Location
    input: tuple[Message, ...]
    evaluators: tuple[Evaluator, ...]
    criteria: str | None = None
    expected_output: tuple[Message, ...] = ()
    target: str | None = None
    timeout_seconds: float | None = None
    description: str | None = None
    conversation_id: str | None = None
    note: str | None = None
    metadata: Mapping[str, Any] = field(default_factory=dict)
    files: tuple[NamedFile, ...] = ()
    workspace: Workspace | None = None

    @property
    def gates(self) -> tuple[Gate, ...]:
        """Every gate declared for this test, in suite order."""
        return tuple(gate for evaluator in self.evaluators for gate in evaluator.gates)


@dataclass(frozen=True)
class Suite:
    """A suite without errors.

    `path` is relative to the repository root `root`; `folder` is the absolute folder of its file.
    `files` are the files that the suite and its tests name, itself and its targets file included,
    each once. `used_targets` are the names of the targets that answer and judge its tests."""

    path: str
    name: str
    root: Path
    folder: Path
    tests: tuple[Test, ...]
    targets: TargetTable
    files: tuple[NamedFile, ...] = ()
    warnings: tuple[Diagnostic, ...] = ()
    metadata: Mapping[str, Any] = field(default_factory=dict)
    default_target: str | None = None
    timeout_seconds: float | None = None
    used_targets: tuple[str, ...] = ()

    def target_of(self, test: Test) -> str | None:
        """Name of the target that answers a test."""
        return self.targets.agent(test.target or self.default_target)

    def agent_of(self, test: Test) -> Target | None:
        """The target that answers a test; None if it is not declared."""
        return self.targets.get(self.target_of(test))


@dataclass(frozen=True)
class BrokenSuite:
    """A suite file that cannot be used: its errors, the files that it names as far as they could be
    read, and the valid targets that it sees."""

    path: str
    errors: tuple[Diagnostic, ...]
    files: tuple[NamedFile, ...] = ()
    targets: TargetTable = field(default_factory=TargetTable)
