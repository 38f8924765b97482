"""The request of a run: what runs, and where."""

import errno
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path

from agentevals_action.baselines.data_branch import DataBranch
from agentevals_action.errors import InvalidInput, OutputError
from agentevals_action.formatting import join_choices
from agentevals_action.github.base import Host
from agentevals_action.model.job import Job
from agentevals_action.model.judge import JudgeRule
from agentevals_action.model.result import Fingerprint, Key, TestResult
from agentevals_action.model.run import Level, Policy
from agentevals_action.model.suite import BrokenSuite, Suite, Test
from agentevals_action.reports.registry import REPORTS
from agentevals_action.results.run_folder import HEAD_RESULTS, RUN_FILES, RunResults
from agentevals_action.results.shards import read_shards
from agentevals_action.settings import Settings
from agentevals_action.system.files.tree_files import (
    LINKED,
    WRITE_ADVICE,
    leads_elsewhere,
    write_file,
)
from agentevals_action.system.git import GitRepository
from agentevals_action.system.isolation import NO_ISOLATION, Isolation
from agentevals_action.system.redaction import Redactor
from agentevals_action.targets.calls.reply_store import Mode
from agentevals_action.validation.field_errors import did_you_mean

Suites = Sequence[Suite | BrokenSuite]

#: Folder in the report folder with the report folders of the shards.
SHARDS = "shards"
#: Errors of the machine. Other errors are caused by the input `report-dir`.
_DISK_ERRORS = frozenset(
    {errno.EACCES, errno.EDQUOT, errno.EIO, errno.ENOSPC, errno.EPERM, errno.EROFS}
)
_FOLDER_ADVICE = "name a folder of its own, which is not in the repository"


@dataclass(frozen=True)
class ReviewWorkspace:
    """The checked out repository, the inputs of the workflow, and the environment variables."""

    folder: Path
    settings: Settings
    environ: Mapping[str, str]

    @property
    def report(self) -> Path:
        """The report folder: absolute, and without links unless a program replaced it by a link."""
        return self.folder.resolve() / self.settings.report_dir

    def writes(self, file: Path) -> bool:
        """Whether a file (absolute) is in a folder that the action writes, as its report."""
        folders = self.settings.output_folders
        return any(file.is_relative_to(self.folder / name) for name in folders)

    @property
    def in_actions(self) -> bool:
        """Whether this process runs in a job of GitHub Actions."""
        return self.environ.get("GITHUB_ACTIONS") == "true"

    @property
    def workflow(self) -> str:
        """The path of the workflow that runs, if it is one of this repository; else empty."""
        name, _, rest = self.environ.get("GITHUB_WORKFLOW_REF", "").partition("/.github/")
        is_own = rest and name == self.environ.get("GITHUB_REPOSITORY")
        return f".github/{rest.partition('@')[0]}" if is_own else ""

    @property
    def redactor(self) -> Redactor:
        """Removes the values of all secrets of the process and of the variables in `env`."""
        return Redactor.from_environ(self.environ, self.settings.env)

    def make_report_folder(self, *, keeps_results: bool = False) -> None:
        """Makes the report folder and deletes the files of an earlier run, apart from the results
        of head if `keeps_results`.

        Raises InvalidInput when the path cannot be a folder of the workspace (what is there may be
        part of the change), and OutputError when the disk refuses it.
        """
        folder = self.report
        try:
            if leads_elsewhere(folder):
                raise OSError(errno.ELOOP, LINKED)
            names = {*RUN_FILES, *REPORTS} - ({HEAD_RESULTS} if keeps_results else set())
            folder.mkdir(parents=True, exist_ok=True)
            for name in names:
                (folder / name).unlink(missing_ok=True)
        except OSError as error:
            if error.errno in _DISK_ERRORS:
                problem = f"{folder} cannot be written: {error.strerror}"
                raise OutputError(problem, WRITE_ADVICE) from error
            problem = f"`report-dir` {self.settings.report_dir!r} cannot be used: {error.strerror}"
            raise InvalidInput(problem, _FOLDER_ADVICE) from error

    def write(self, results: RunResults) -> RunResults:
        """Writes the files of a run. Nothing is read from them: what another program put there is
        replaced. A file that cannot be written is a problem of the run."""
        for name in RUN_FILES:
            try:
                write_file(self.report / name, results.content(name))
            except OutputError as error:
                results = results.with_notes(Level.PROBLEM, [error.sentence])
        return results

    def merge_shards(self, head_sha: str, policy: Policy | None = None) -> RunResults:
        """The results of all shards of a commit, from their folders in the folder `shards` of the
        report folder; they are written as the results of one run, which `policy` decides (None: the
        policy of the shards). Raises InvalidInput without a shard."""
        merged = read_shards(self.report / SHARDS, head_sha, policy)
        self.make_report_folder()
        return self.write(merged)


@dataclass(frozen=True)
class LocalRun:
    """The command `run`: a review without a base, of which each suite must be valid. `paths` are
    the suites, or folders of suites, that run (empty: all); by the `globs`, `select` reduces suites
    to tests. `resume` gives the results of an earlier run that stay. The results are
    written to the file `output`, too. If the run `records`, the reply store gets each reply. With a
    `variant`, the suites that have it run in that arm."""

    paths: tuple[Path, ...]
    globs: tuple[str, ...]
    select: Callable[[Sequence[Suite]], Sequence[Suite]]
    resume: Callable[
        [Sequence[Suite], Callable[[Suite, Test], Fingerprint], JudgeRule], Mapping[Key, TestResult]
    ]
    output: Path
    records: bool = False
    variant: str | None = None

    def arms(self, suites: Sequence[Suite]) -> Sequence[Suite]:
        """The suites in the one arm that runs. InvalidInput if no suite has the variant."""
        if self.variant is None:
            return [suite.model_copy(update={"variants": ()}) for suite in suites]
        every = [arm for suite in suites for arm in suite.arms]
        arms = [arm for arm in every if arm.variant == self.variant]
        if not arms:
            names = sorted({arm.variant for arm in every})
            advice = f"write {join_choices(names)}" if names else "declare it in `variants`"
            problem = f"no suite has a variant `{self.variant}`"
            raise InvalidInput(problem, did_you_mean(self.variant, names, advice))
        return arms


@dataclass(frozen=True)
class ReviewRequest:
    """The inputs of one review: job, workspace, repository, host, users. A `run` has no base, and
    may have no repository. `data_branch` has the results of the default branch, None in a local
    run; `isolation` gives the users of the programs that run."""

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
    def is_of_all_tests(self) -> bool:
        """Whether no working directory, path or glob leaves out tests of the repository."""
        is_part = self.run and (self.run.paths or self.run.globs)
        return self.settings.working_directory == "." and not is_part

    @property
    def cache(self) -> Mode | None:
        """What the run does with stored replies; None without stored replies."""
        if self.run and self.run.records:
            return "record"
        return None if self.settings.cache == "off" else self.settings.cache

    @property
    def policy(self) -> Policy:
        """The settings that decide."""
        settings = self.settings
        return Policy(
            settings.fail_on or self.job.fail_on,
            settings.min_pass_rate,
            settings.on_inconclusive,
            settings.accept_label,
            settings.untouched,
            settings.confirm,
            settings.alpha,
            asks_person=bool(self.job.without_secrets),
            min_pass_all=settings.min_pass_all,
            judge_floor=settings.judge_floor,
            max_cost_increase=settings.max_cost_increase,
            max_latency_increase=settings.max_latency_increase,
        )

    @property
    def results_file(self) -> Path:
        """The file that gets each result of head as soon as it is known."""
        return self.run.output if self.run else self.workspace.report / HEAD_RESULTS

    def write(self, results: RunResults) -> RunResults:
        """Writes the files of a run, which contain no secrets; gives the results with the problems
        of writing."""
        file = self.results_file
        if file != self.workspace.report / HEAD_RESULTS:
            write_file(file, results.content(HEAD_RESULTS))
        return self.workspace.write(results)
