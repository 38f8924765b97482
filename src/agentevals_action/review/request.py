"""The request of a run: what runs, and where."""

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path

from agentevals_action.baselines.data_branch import DataBranch
from agentevals_action.github.base import Host
from agentevals_action.github.events import Job
from agentevals_action.model.result import Fingerprint, Key, TestResult
from agentevals_action.model.suite import BrokenSuite, Suite, Test
from agentevals_action.review.change.workspace import ReviewWorkspace
from agentevals_action.settings import Settings
from agentevals_action.system.git import GitRepository
from agentevals_action.system.isolation import NO_ISOLATION, Isolation
from agentevals_action.targets.calls.reply_store import Mode

Suites = Sequence[Suite | BrokenSuite]


@dataclass(frozen=True)
class LocalRun:
    """The command `run`: a review without a base, of which each suite must be valid. `paths` are
    the suites, or folders of suites, that run (empty: all); `globs` are those by which `select`
    reduces suites to tests. `resume` gives the results of an earlier run that stay. Each result is
    added to the file `output` at once. `keep` gets the workspaces of tests that did not pass, the
    reply store each reply if the run `records`."""

    paths: tuple[Path, ...]
    globs: tuple[str, ...]
    select: Callable[[Sequence[Suite]], Sequence[Suite]]
    resume: Callable[
        [Sequence[Suite], Callable[[Suite, Test], Fingerprint]], Mapping[Key, TestResult]
    ]
    output: Path
    keep: Path | None = None
    records: bool = False


@dataclass(frozen=True)
class ReviewRequest:
    """What is reviewed, and where; a `run` has no base, and may have no repository. `data_branch`
    has the results of the default branch, None in a local run; `isolation` gives the users of the
    programs that run."""

    job: Job
    workspace: ReviewWorkspace
    repository: GitRepository | None
    host: Host
    data_branch: DataBranch | None = None
    isolation: Isolation = NO_ISOLATION
    run: LocalRun | None = None

    @property
    def settings(self) -> Settings:
        """The inputs; in an open change, also those of `.agentevals.yaml`."""
        return self.workspace.settings

    @property
    def cache(self) -> Mode | None:
        """What the run does with stored replies; None without these."""
        if self.run and self.run.records:
            return "record"
        return None if self.settings.cache == "off" else self.settings.cache

    @property
    def fail_on(self) -> frozenset[str]:
        """The conditions that block."""
        return self.settings.fail_on or self.job.fail_on
