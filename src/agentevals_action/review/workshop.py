"""One review with its adapters built: the same for a pull request and for a working tree."""

import errno
from collections.abc import Mapping
from dataclasses import dataclass, replace
from functools import cached_property
from pathlib import Path

from agentevals_action.errors import InvalidInput, OutputError
from agentevals_action.execution.engine import engine_for
from agentevals_action.github.base import Host
from agentevals_action.github.events import Job
from agentevals_action.model.comparison import Review
from agentevals_action.model.suite import Suite
from agentevals_action.reports import console, markdown
from agentevals_action.review import pipeline
from agentevals_action.review.baseline_source import Places
from agentevals_action.review.run_sides import Bench
from agentevals_action.settings import Settings
from agentevals_action.suites import checkout as wiring
from agentevals_action.system.git import GitRepository
from agentevals_action.system.redaction import Redactor, redact_record
from agentevals_action.system.tree_files import WRITE_ADVICE
from agentevals_action.targets.cache.store import check_cache

#: Refusals that are the machine's and say nothing of what was asked for.
_DISK = frozenset({errno.EACCES, errno.EDQUOT, errno.EIO, errno.ENOSPC, errno.EPERM, errno.EROFS})


@dataclass(frozen=True)
class Place:
    """Where a review works: the workspace, what the workflow asks for, the environment."""

    folder: Path
    settings: Settings
    environ: Mapping[str, str]

    @property
    def report(self) -> Path:
        """The report folder, absolute."""
        return self.folder / self.settings.report_dir

    def begin_report(self) -> None:
        """Makes the report folder without results of an earlier run, which must not be taken for
        this one's; InvalidInput when it cannot be a folder of the workspace: what stands there may
        have come with the change. OutputError when the disk refuses it."""
        name, hint = (
            self.settings.report_dir,
            "name a folder of its own, which is not in the repository",
        )
        if not self.report.resolve().is_relative_to(self.folder.resolve()):
            raise InvalidInput(f"`report-dir` {name!r} leads out of the workspace", hint)
        try:
            self.report.mkdir(parents=True, exist_ok=True)
            for left in ("results.jsonl", "base.jsonl"):
                (self.report / left).unlink(missing_ok=True)
        except OSError as error:
            if error.errno in _DISK:
                raise OutputError(
                    f"{self.report} cannot be written: {error.strerror}", WRITE_ADVICE
                ) from error
            raise InvalidInput(
                f"`report-dir` {name!r} cannot be used: {error.strerror}", hint
            ) from error

    @cached_property
    def redactor(self) -> Redactor:
        """Takes out the values of all secrets that the process was given, and of what `env` lets
        through."""
        return Redactor.from_environ(self.environ, self.settings.env)

    def template(self) -> Path | None:
        """The comment's own template, checked before anything is run; InvalidInput when it is
        missing or cannot make a comment."""
        name = self.settings.comment_template
        if name is None:
            return None
        path = (self.folder / name).resolve()
        if not path.is_file() or not path.is_relative_to(self.folder.resolve()):
            raise InvalidInput(
                f"there is no template {name!r} in the workspace",
                "mend `comment-template`, or leave it out",
            )
        markdown.check_template(path)
        return path


def review(job: Job, place: Place, repository: GitRepository, host: Host, places: Places) -> Review:
    """Runs the review and takes the secrets out of it."""
    settings = place.settings
    checkout = wiring.Checkout.at(place.folder, settings, place.environ)
    check_cache(settings, place.folder, place.environ)
    earlier = wiring.earlier_figures(place.report / "results.jsonl")
    place.begin_report()
    suites = wiring.load_all(
        checkout, settings, wiring.suite_paths(checkout, settings), place.folder
    )
    with (
        engine_for(settings, place.environ, place.folder) as engine,
        console.progress() as progress,
    ):
        engine.forecast.earlier = earlier
        redactor = engine.redactor(suite for suite in suites if isinstance(suite, Suite))
        bench = Bench(
            checkout,
            suites,
            settings,
            place.folder,
            place.environ,
            engine,
            place.report,
            redactor,
            progress,
            places,
        )
        told = pipeline.review(job, settings, repository, host, bench)
        return redact_record(replace(told, notices=(*told.notices, *engine.notices)), redactor)
