"""One row of a results file: ours, or one of AgentV's `index.jsonl`."""

import json
from pathlib import Path

from pydantic import ValidationError

from agentevals_action.model.result import TestResult
from agentevals_action.stored import agentv_rows

_SHOWN = 3  # faults of a row that are told


def read_row(line: bytes, folder: Path) -> TestResult:
    """The result in a line; `folder` is that of the file, below which AgentV keeps answers. ValueError says what is wrong with it."""
    try:
        return TestResult.model_validate_json(line)
    except ValidationError as error:
        problem = error
    data = json.loads(line)
    if agentv_rows.is_agentv_row(data):
        return agentv_rows.read_row(data, folder)
    told = problem.errors(include_url=False, include_input=False)[:_SHOWN]
    raise ValueError("; ".join(f"{'.'.join(map(str, one['loc'])) or 'row'}: {one['msg']}" for one in told))
