"""A run from top to bottom: read the inputs, find base, run, confirm, write the files. From these
files, `outcome.compare` makes the review with its decision, which `publish` shows.

The command `run` is a run without a base, a shard runs a part of the tests, and a merge compares
the files of all shards."""

import asyncio
from datetime import UTC, datetime

from agentevals_action.errors import unwrapped
from agentevals_action.reports.progress import show_progress
from agentevals_action.results.run_folder import RunResults
from agentevals_action.review.base_results import find_base
from agentevals_action.review.head_and_base import HeadAndBase, base_rows
from agentevals_action.review.inputs import engine_of, open_inputs
from agentevals_action.review.request import ReviewRequest
from agentevals_action.review.rescoring import rescore_base, rescore_head
from agentevals_action.review.run_facts import policy_of, run_facts
from agentevals_action.system.redaction import redact_reply


async def run(request: ReviewRequest) -> RunResults:
    """Runs the suites that a change affects on head and base, or the part of a shard, and writes
    the files of the run, which contain no secrets. Raises AgentEvalsError when nothing can run."""
    started, stream = datetime.now(UTC), request.run.output if request.run else None
    async with open_inputs(request) as inputs, engine_of(inputs) as engine:
        part, workspace = inputs.part, inputs.request.workspace
        with show_progress() as progress:
            both = HeadAndBase(engine, workspace, progress, part.head, part.base)
            try:
                with unwrapped():
                    stored = await find_base(inputs)
                    async with asyncio.TaskGroup() as tasks:
                        of_base = tasks.create_task(both.run_base(stored))
                        of_head = tasks.create_task(both.run_head(inputs.kept, stream))
                    head, base = of_head.result(), base_rows(of_base.result(), part.base)
                    base = await rescore_base(engine, part.head, head, base)
                    head = await rescore_head(engine, part.base, head, inputs.edits)
                    head, base = await both.confirm(head, base, policy_of(inputs.request))
            except asyncio.CancelledError:
                await asyncio.to_thread(both.write_finished)
                raise
        facts = redact_reply(run_facts(inputs, of_base.result(), started, engine.notices))
    # No program is left that could change the files: those of a shard decide.
    results = RunResults(facts, tuple(head.values()), tuple(base.values()))
    return await asyncio.to_thread(workspace.write, results, streamed=bool(request.run))
