"""`review`: the working tree against a base, as a pull request would be reviewed; no code host."""

import sys
from collections.abc import Mapping
from pathlib import Path

from agentevals_action.github import events
from agentevals_action.github.base import LocalHost
from agentevals_action.reports.view.links import Links
from agentevals_action.review import pipeline, publish
from agentevals_action.review.workspace import Workspace
from agentevals_action.settings import Settings
from agentevals_action.system.git import GitRepository


def main(environ: Mapping[str, str], inputs: Mapping[str, str], folder: Path, base: str) -> int:
    """Prints the comment, writes the report folder, gives the gate's exit code."""
    settings = Settings.from_environ(inputs)
    repository = GitRepository(folder, environ=environ)
    job = events.local_job(
        repository.head(), base, events.JobOptions(settings.select, settings.fail_on)
    )
    workspace = Workspace(folder, settings, environ)
    presentation = publish.Presentation(Links(), template=workspace.comment_template())
    host = LocalHost(sys.stdout)
    review = pipeline.review(job, workspace, repository, host)
    publish.write_folder(review, workspace.report, presentation)
    publish.publish(review, host, presentation)
    print(f"report: {workspace.report}", file=sys.stderr)
    return review.decision.exit_code
