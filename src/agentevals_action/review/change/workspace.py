"""The workspace of a review: the folder, the settings, the environment."""

import errno
import os
from collections.abc import Mapping
from dataclasses import dataclass
from functools import cached_property
from pathlib import Path

from agentevals_action.errors import InvalidInput, OutputError
from agentevals_action.reports.registry import REPORTS
from agentevals_action.results.run_folder import (
    BASE_RESULTS,
    HEAD_RESULTS,
    RUN_FILES,
    RunResults,
)
from agentevals_action.results.shards import read_shards
from agentevals_action.settings import Settings
from agentevals_action.system.files.tree_files import WRITE_ADVICE, write_file
from agentevals_action.system.redaction import Redactor

#: Folder in the report folder with those of the shards.
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
        """The report folder, absolute."""
        return self.folder / self.settings.report_dir

    @cached_property
    def output(self) -> Path:
        """The report folder for writers, without links. Raises InvalidInput when the path leads out
        of the workspace."""
        root = self.folder.resolve()
        try:
            return root / self.report.resolve().relative_to(root)
        except (OSError, RuntimeError, ValueError) as error:
            problem = f"`report-dir` {self.settings.report_dir!r} leads out of the workspace"
            raise InvalidInput(problem, _FOLDER_ADVICE) from error

    def writes(self, file: Path) -> bool:
        """Whether a file (absolute) is in a folder that the action writes, as its report."""
        folders = self.settings.output_folders
        return any(file.is_relative_to(self.folder / name) for name in folders)

    @property
    def in_actions(self) -> bool:
        """Whether this process runs in a job of GitHub Actions."""
        return self.environ.get("GITHUB_ACTIONS") == "true"

    @property
    def redactor(self) -> Redactor:
        """Removes the values of all secrets of the process and of the variables in `env`."""
        return Redactor.from_environ(self.environ, self.settings.env)

    def write(self, results: RunResults, *, streamed: bool = False) -> RunResults:
        """Writes the files of a run. Nothing is read from them: a file that another program put
        there is replaced, and a notice states it, unless the results were `streamed` there. A file
        that cannot be written is a problem of the run."""
        names = () if streamed else (HEAD_RESULTS, BASE_RESULTS)
        foreign = [name for name in names if os.path.lexists(self.output / name)]
        results = results.adding(
            notices=(
                f"another program wrote `{name}` into the report folder while the tests ran; the "
                "action replaced it: see which agent, hook or judge writes there"
                for name in foreign
            )
        )
        for name in RUN_FILES:
            try:
                write_file(self.output / name, results.content(name))
            except OutputError as error:
                results = results.adding(problems=[error.sentence])
        return results

    def merge_shards(self, head_sha: str) -> RunResults:
        """The results of all shards of a commit, from their folders in the folder `shards` of the
        report folder; they are written as those of one run. Raises InvalidInput without a shard."""
        merged = read_shards(self.report / SHARDS, head_sha)
        self.make_report_folder()
        return self.write(merged)

    def make_report_folder(self, *, keeps_results: bool = False) -> None:
        """Makes the report folder and deletes the files of an earlier run, apart from the results
        of head if it `keeps_results`.

        Raises InvalidInput when the path cannot be a folder of the workspace (what is there may be
        part of the change), and OutputError when the disk refuses it.
        """
        output = self.output
        try:
            names = {*RUN_FILES, *REPORTS} - ({HEAD_RESULTS} if keeps_results else set())
            output.mkdir(parents=True, exist_ok=True)
            for name in names:
                (output / name).unlink(missing_ok=True)
        except OSError as error:
            if error.errno in _DISK_ERRORS:
                problem = f"{self.report} cannot be written: {error.strerror}"
                raise OutputError(problem, WRITE_ADVICE) from error
            problem = f"`report-dir` {self.settings.report_dir!r} cannot be used: {error.strerror}"
            raise InvalidInput(problem, _FOLDER_ADVICE) from error
