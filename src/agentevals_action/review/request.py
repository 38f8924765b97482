"""The request of a review: what is reviewed, and where."""

from collections.abc import Sequence
from dataclasses import dataclass

from agentevals_action.baselines.data_branch import DataBranch
from agentevals_action.github.base import Host
from agentevals_action.github.events import Job
from agentevals_action.model.suite import BrokenSuite, Suite
from agentevals_action.review.change.workspace import ReviewWorkspace
from agentevals_action.settings import Settings
from agentevals_action.system.git import GitRepository
from agentevals_action.system.isolation import NO_ISOLATION, Isolation

Suites = Sequence[Suite | BrokenSuite]


@dataclass(frozen=True)
class ReviewRequest:
    """What is reviewed, and where. `data_branch` has the results of the default branch, None in a
    local run; `isolation` gives the users of the programs that run."""

    job: Job
    workspace: ReviewWorkspace
    repository: GitRepository
    host: Host
    data_branch: DataBranch | None = None
    isolation: Isolation = NO_ISOLATION

    @property
    def settings(self) -> Settings:
        """The inputs; in an open change, also those of `.agentevals.yaml`."""
        return self.workspace.settings

    @property
    def fail_on(self) -> frozenset[str]:
        """The conditions that block."""
        return self.settings.fail_on or self.job.fail_on
