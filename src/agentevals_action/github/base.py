"""What a code host is to a review: changed files in, one comment and one check out."""

from collections.abc import Collection, Sequence
from dataclasses import dataclass
from typing import Literal, Protocol

from agentevals_action.model.comparison import ChangedFile, Outcome
from agentevals_action.model.history import Remembered
from agentevals_action.model.past import Lineage
from agentevals_action.model.quarantine import Acceptance
from agentevals_action.model.result import SuiteRun


@dataclass(frozen=True)
class Annotation:
    """A remark on a line of a file; plain text, `path` relative to the repository, `line` from
    1."""

    path: str
    line: int
    level: Literal["failure", "warning"]
    title: str
    message: str


@dataclass(frozen=True)
class CheckReport:
    """What a finished check shows; `conclusion` as GitHub names it (`success`, `failure`,
    `neutral`, `cancelled`).

    `annotations` are already cut to the limit, the rest is counted in the words of `summary`."""

    conclusion: str
    title: str
    summary: str
    annotations: Sequence[Annotation] = ()


@dataclass(frozen=True)
class CommentReport:
    """The comment as it should stand. `body` has no marker of the host's yet: it adds its own. With
    `wanted` False none is created, but a standing one is still updated unless it says `passed` and
    the outcome is `passed`."""

    body: str
    outcome: Outcome
    wanted: bool


class Host(Protocol):
    """A code host. What it may not or cannot do it tells as a plain sentence in `notices` and goes
    on; a refusal never raises."""

    @property
    def notices(self) -> Sequence[str]:
        """What could not be read or written, and what to grant: one sentence each."""
        ...

    def changed_files(self) -> Sequence[ChangedFile] | None:
        """The change, None when git should be asked instead."""
        ...

    def merge_base(self) -> str | None:
        """SHA of the merge base of base branch and head, None when unknown."""
        ...

    def acceptance(self, label: str) -> Acceptance | None:
        """Who takes the regressions of this head on by putting the label on it; None when nobody
        does, or that cannot be told."""
        ...

    def start_check(self) -> str | None:
        """Completes orphans of killed runs, opens the check `in_progress`; its URL if it exists
        now."""
        ...

    def finish_check(self, report: CheckReport) -> str | None:
        """Completes the check, or creates it completed; its URL."""
        ...

    def publish_comment(self, report: CommentReport) -> str | None:
        """Creates, updates or replaces the comment; its URL."""
        ...


class Past(Protocol):
    """What knows the history before a commit. HostError or GitError when it cannot be asked at all:
    then it is not asked again."""

    def lineage(self, commit: str) -> Lineage:
        """The commit's ancestors, as far back as a baseline may lie."""
        ...

    def changes(self, ancestor: str, commit: str) -> Sequence[ChangedFile] | str:
        """What changed from one to the other; in words why this cannot be told of them."""
        ...


class Memory(Protocol):
    """Where results of the default branch are remembered from run to run."""

    def read(self, suites: Collection[str]) -> Remembered:
        """What is there of these suites (paths); HostError, in words, when it cannot be read."""
        ...

    def store(self, runs: Sequence[SuiteRun], commit: str, time: str) -> Sequence[str]:
        """Adds what suites came to on a commit (SHA) in a run of that time (ISO 8601 with a zone),
        without secrets; what to tell the reader of the run, among it why it could not be written.
        Never raises for a refusal."""
        ...
