"""A review from top to bottom: read the inputs, find base, run, confirm, write the files of the
run; then compare and decide. `publish` shows the review."""

import asyncio
import sys
from collections.abc import Iterable, Sequence
from datetime import UTC, datetime

from agentevals_action.errors import InvalidInput, OutputError, unwrapped
from agentevals_action.model.baseline import BaseResults
from agentevals_action.model.review import Review
from agentevals_action.model.run import Policy, Run
from agentevals_action.model.suite import Suite
from agentevals_action.reports import console
from agentevals_action.reports.progress import show_progress
from agentevals_action.results.estimate import estimate
from agentevals_action.results.run_folder import BASE_RESULTS, HEAD_RESULTS, RunResults, read_folder
from agentevals_action.review.base_results import find_base
from agentevals_action.review.change.workspace import SHARDS, ReviewWorkspace
from agentevals_action.review.inputs import ReviewInputs, open_inputs
from agentevals_action.review.outcome import compare
from agentevals_action.review.request import ReviewRequest
from agentevals_action.review.rescoring import Rows, rescore_base, rescore_head
from agentevals_action.review.run_facts import policy_of, run_facts
from agentevals_action.review.run_sides import Sides
from agentevals_action.review.shards import merge
from agentevals_action.system.redaction import redact_record


async def review(request: ReviewRequest) -> Review:
    """Reviews a change: runs the affected suites on head and base, compares the results and
    decides. Raises AgentEvalsError when nothing can be reviewed."""
    return await asyncio.to_thread(compare, await run(request))


async def run(request: ReviewRequest) -> RunResults:
    """Runs the suites that a change affects on head and base, or the part of a shard, and writes
    the files of the run, which contain no secrets. Raises AgentEvalsError when nothing can run."""
    started = datetime.now(UTC)
    async with open_inputs(request) as inputs:
        engine, part, workspace = inputs.engine, inputs.part, inputs.request.workspace
        policy = policy_of(inputs.request)
        with show_progress() as progress:
            sides = Sides(engine, inputs.redactor, workspace, progress, part.head, part.base)
            try:
                with unwrapped():
                    stored = await find_base(inputs)
                    _print_estimate(inputs, stored.left.values())
                    async with asyncio.TaskGroup() as tasks:
                        of_base = tasks.create_task(sides.run_base(stored))
                        stream = request.run.output if request.run else None
                        of_head = tasks.create_task(sides.run_head(inputs.kept, stream))
                    head, base = of_head.result(), _base_rows(inputs, of_base.result())
                    base = await rescore_base(engine, part.head, head, base)
                    head = await rescore_head(engine, part.base, head, inputs.edits)
                    head, base = await sides.confirm(head, base, policy)
            except asyncio.CancelledError:
                await asyncio.to_thread(sides.write_finished)
                raise
            finally:
                await engine.close()
        facts = redact_record(run_facts(inputs, of_base.result(), started), inputs.redactor)
        results = RunResults(facts, tuple(head.values()), tuple(base.values()))
        return await asyncio.to_thread(write, workspace, results, streamed=bool(request.run))


def merge_shards(workspace: ReviewWorkspace, head_sha: str) -> RunResults:
    """The results of all shards of a commit, from their folders in the folder `shards` of the
    report folder; they are written as those of one run. Raises InvalidInput without a shard."""
    parts, unreadable = [], []
    for file in sorted((workspace.report / SHARDS).glob("*/run.json")):
        try:
            parts.append(read_folder(file.parent))
        except InvalidInput as error:
            unreadable.append(str(error))
    merged = merge(parts, head_sha, unreadable)
    workspace.make_report_folder()
    return write(workspace, merged)


def write(workspace: ReviewWorkspace, results: RunResults, *, streamed: bool = False) -> RunResults:
    """Writes the files of a run. Nothing is read from them: a file that another program put there
    is replaced, and a notice states it, unless the results were `streamed` there. A file that
    cannot be written is a problem of the run."""
    output = workspace.output
    names = () if streamed else (HEAD_RESULTS, BASE_RESULTS)
    foreign = [name for name in names if output.contains(name)]
    notices = (
        f"another program wrote `{name}` into the report folder while the tests ran; the action "
        "replaced it: see which agent, hook or judge writes there"
        for name in foreign
    )
    results = results.adding(notices=notices)
    for name in results.files():
        try:
            output.write(name, results.files()[name])
        except OutputError as error:
            results = results.adding(problems=[error.sentence])
    return results


def _base_rows(inputs: ReviewInputs, base: BaseResults) -> Rows:
    """The results of base, of the tests of this part."""
    return {
        (path, row.eval_id): row
        for path, suite in base.suites.items()
        for names in [{test.id for test in inputs.part.base[path].tests}]
        for row in suite.rows
        if row.eval_id in names
    }


def not_run(head_sha: str, reasons: Sequence[str]) -> RunResults:
    """The results of a job with invalid inputs."""
    return RunResults(Run(head_sha=head_sha, policy=Policy(frozenset()), refused=tuple(reasons)))


def not_completed(head_sha: str, reasons: Sequence[str], policy: Policy) -> RunResults:
    """The results of a job that could not be completed."""
    return RunResults(Run(head_sha=head_sha, policy=policy, problems=tuple(reasons)))


def _print_estimate(inputs: ReviewInputs, reruns: Iterable[Suite]) -> None:
    """What the run will cost, by the last one."""
    settings, suites = inputs.request.settings, (*inputs.part.head.values(), *reruns)
    tests = sum(len(suite.tests) for suite in suites) - len(inputs.kept)
    attempts = settings.samples * tests
    sentence = estimate(attempts, inputs.last_cost, settings.max_cost_usd)
    console.print_sentences([sentence], sys.stderr)
