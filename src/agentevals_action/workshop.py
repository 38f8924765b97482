"""One review with its adapters built: the same for a pull request and for a working tree."""

from collections.abc import Mapping
from dataclasses import dataclass
from functools import cached_property
from pathlib import Path

from agentevals_action import console, pipeline, wiring
from agentevals_action.activity import Job
from agentevals_action.bench import Bench
from agentevals_action.engine import engine_for
from agentevals_action.errors import InvalidInput
from agentevals_action.git import GitRepository
from agentevals_action.hosts.base import Host
from agentevals_action.model.comparison import Review
from agentevals_action.model.suite import Suite
from agentevals_action.redact import Redactor
from agentevals_action.redacted import redacted
from agentevals_action.reports import markdown
from agentevals_action.settings import Settings


@dataclass(frozen=True)
class Place:
    """Where a review works: the workspace, what the workflow asks for, the environment."""

    folder: Path
    settings: Settings
    environ: Mapping[str, str]

    @property
    def report(self) -> Path:
        """The report folder, absolute; InvalidInput when a symbolic link leads it out of the workspace."""
        path = self.folder / self.settings.report_dir
        if not path.resolve().is_relative_to(self.folder.resolve()):
            raise InvalidInput(f"`report-dir` {self.settings.report_dir!r} leads out of the workspace", "name a folder in it")
        return path

    @cached_property
    def redactor(self) -> Redactor:
        """Takes out the values of all secrets that the process was given, and of what `env` lets through."""
        return Redactor.from_environ(self.environ, self.settings.env)

    def template(self) -> Path | None:
        """The comment's own template, checked before anything is run; InvalidInput when it is missing or cannot make a comment."""
        name = self.settings.comment_template
        if name is None:
            return None
        path = (self.folder / name).resolve()
        if not path.is_file() or not path.is_relative_to(self.folder.resolve()):
            raise InvalidInput(f"there is no template {name!r} in the workspace", "mend `comment-template`, or leave it out")
        markdown.check_template(path)
        return path


def review(job: Job, place: Place, repository: GitRepository, host: Host) -> Review:
    """Runs the review and takes the secrets out of it."""
    checkout = wiring.Checkout.at(place.folder, place.settings, place.environ)
    for left in ("results.jsonl", "base.jsonl"):  # of an earlier run: what this one does not write must not be taken for its own
        (place.report / left).unlink(missing_ok=True)
    settings = place.settings
    suites = wiring.load_all(checkout, settings, wiring.suite_paths(checkout, settings), place.folder)
    with engine_for(settings, place.environ) as engine, console.progress() as progress:
        found = engine.secrets(suite for suite in suites if isinstance(suite, Suite))
        redact = Redactor.from_environ(place.environ, settings.env, found).redact
        bench = Bench(checkout, suites, settings, place.folder, engine, place.report, redact, progress)
        return redacted(pipeline.review(job, settings, repository, host, bench), redact)
