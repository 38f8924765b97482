"""`review`: the working tree against a base, as a pull request would be reviewed; no code host."""

import sys
from collections.abc import Mapping
from pathlib import Path

from agentevals_action.github import events
from agentevals_action.github.base import LocalHost
from agentevals_action.reports.view.links import Links
from agentevals_action.review import publish, workshop
from agentevals_action.review.baseline_source import Places
from agentevals_action.settings import Settings
from agentevals_action.system.git import GitRepository


def main(environ: Mapping[str, str], inputs: Mapping[str, str], folder: Path, base: str) -> int:
    """Prints the comment, writes the report folder, gives the gate's exit code."""
    settings = Settings.from_environ(inputs)
    repository = GitRepository(folder, environ=environ)
    job = events.local_job(
        repository.head(), base, events.JobOptions(settings.select, settings.fail_on)
    )
    place = workshop.Place(folder, settings, environ)
    manner = publish.Manner(Links(), template=place.template())
    host = LocalHost(sys.stdout)
    review = workshop.review(job, place, repository, host, Places(repository))
    publish.write_folder(review, place.report, manner)
    publish.publish(review, host, manner)
    print(f"report: {place.report}", file=sys.stderr)
    return review.decision.exit_code
