"""A run from top to bottom: read the inputs, find base, run, confirm, write the files. Then
`publish` compares these files, decides and publishes: `cli/commands/action.py` calls both.

The command `run` is a run without a base, a shard runs a part of the tests, and a merge compares
the files of all shards."""

import asyncio

from agentevals_action.errors import unwrapped
from agentevals_action.reports.progress import show_progress
from agentevals_action.results.run_folder import RunResults
from agentevals_action.review.base_results import find_base
from agentevals_action.review.confirmation import confirm
from agentevals_action.review.head_and_base import (
    base_rows,
    completed_facts,
    head_rows,
    run_base,
    run_head,
)
from agentevals_action.review.inputs import open_inputs
from agentevals_action.review.request import ReviewRequest
from agentevals_action.review.rescoring import rescore_base, rescore_head
from agentevals_action.review.run_engine import open_engine
from agentevals_action.review.unmatched_globs import unmatched_globs
from agentevals_action.runners.executor import Executors
from agentevals_action.system.redaction import without_secrets


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
        notices = (*engine.notices, *map(str, unmatched_globs(inputs, head)))
        facts = without_secrets(completed_facts(inputs.facts, head, base_results, notices))
    # The engine is closed: no program is left that could change the files, which decide.
    results = RunResults(facts, tuple(head.values()), tuple(base.values()))
    return await asyncio.to_thread(inputs.request.write, results)
