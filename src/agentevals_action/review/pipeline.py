"""A review from top to bottom, in three phases with files between them. `run` reads the inputs,
finds base, runs head and base, confirms, and writes the files of the run. `report` compares these
files, decides, and writes the reports. `publish` writes the page, the check and the comment.

The command `run` is a run without a base, a shard runs a part of the tests, and a merge reports the
files of all shards."""

import asyncio

from agentevals_action.errors import InvalidInput, unwrapped
from agentevals_action.github.base import Host
from agentevals_action.model.run import Level
from agentevals_action.reports.page.report_page import PAGE
from agentevals_action.reports.publication import Published
from agentevals_action.reports.registry import write_reports
from agentevals_action.reports.terminal.progress import show_progress
from agentevals_action.reports.view.build import build_view
from agentevals_action.reports.view.models import Links, ReportView
from agentevals_action.results.run_folder import RunResults, not_completed, not_run
from agentevals_action.review import publication
from agentevals_action.review.comparison.compare import compare
from agentevals_action.review.inputs.inputs import open_inputs
from agentevals_action.review.inputs.request import ReviewRequest, ReviewWorkspace
from agentevals_action.review.run.base_results import find_base
from agentevals_action.review.run.conditions import (
    compare_answers,
    confirm_answers,
    confirm_increases,
)
from agentevals_action.review.run.confirmation import confirm
from agentevals_action.review.run.engine import open_engine
from agentevals_action.review.run.head_and_base import (
    base_rows,
    completed_facts,
    head_rows,
    run_base,
    run_head,
)
from agentevals_action.review.run.rescoring import rescore_base, rescore_head
from agentevals_action.review.run.variants import run_variants
from agentevals_action.runners.executor import Executors
from agentevals_action.system.redaction import without_secrets

#: Seconds for the comparison and the reports of claims.
_CLAIM_SECONDS = 60.0


async def run(request: ReviewRequest) -> RunResults:
    """Runs the suites that a change affects on head and base, or the part of a shard, and writes
    the files of the run, which contain no secrets. Raises AgentEvalsError when nothing can run."""
    async with open_inputs(request) as inputs, open_engine(inputs) as engine:
        executors = Executors(engine)
        with show_progress() as progress, unwrapped():
            stored = await find_base(inputs)
            async with asyncio.TaskGroup() as tasks:
                running = tasks.create_task(run_head(inputs, executors, progress))
                base_results = await run_base(inputs, executors, stored, progress)
            base = base_rows(base_results, executors, inputs.part.base)
            head = head_rows(inputs, executors, running.result(), base)
            base = await rescore_base(inputs, executors, head, base)
            head = await rescore_head(inputs, executors, head)
            head, base = await confirm(inputs, executors, head, base, progress)
            head = await compare_answers(inputs, executors, head, base, progress)
            head, base = await confirm_answers(inputs, executors, head, base, progress)
            head, base = await confirm_increases(inputs, executors, head, base, progress)
            variants = await run_variants(inputs, executors, stored.variants, head, progress)
        facts = without_secrets(completed_facts(inputs, head, base_results, engine.notices))
    # The engine is closed: no program is left that could change the files, which decide.
    results = RunResults(facts, tuple(head.values()), tuple(base.values()), variants)
    return await asyncio.to_thread(inputs.request.write, results)


def report(
    results: RunResults, workspace: ReviewWorkspace, links: Links | None = None
) -> tuple[ReportView, bytes]:
    """Compares head with base, decides, and writes the reports into the report folder; gives the
    view of the review, which is compared again if a report cannot be written, and the page. Raises
    InvalidInput for a template that fails on the review.

    The page is what was written, not what is in the file: a program of the pull request that is
    still running could replace the file."""
    view = build_view(compare(results), links)
    written = write_reports(view, workspace.report)
    if written.problems:
        view = build_view(compare(results.with_notes(Level.PROBLEM, written.problems)), links)
        written = write_reports(view, workspace.report)
    return view, written.contents[PAGE]


async def publish(
    results: RunResults,
    workspace: ReviewWorkspace,
    host: Host,
    links: Links,
    claim_seconds: float = _CLAIM_SECONDS,
) -> tuple[ReportView, Published]:
    """Reports the results, which contain no secrets, and publishes the review. If the user's
    template fails on the review, that is the outcome.

    Attack: the author of a fork makes rows whose comparison keeps the job busy for hours."""
    limit = claim_seconds if results.run.claims else None
    try:
        async with asyncio.timeout(limit):
            view, page = await asyncio.to_thread(report, results, workspace, links)
    except TimeoutError:
        reason = f"the claims could not be compared and reported within {limit:g} s"
        unread = not_completed(results.run.head_sha, [reason], results.run.policy).as_claims()
        view, page = await asyncio.to_thread(report, unread, workspace, links)
    except InvalidInput as error:
        invalid = not_run(results.run.head_sha, [workspace.redactor.redact(error.sentence)])
        view, page = await asyncio.to_thread(report, invalid, workspace, links)
    return await publication.publish(view, page, workspace.settings, host)
