"""One row of a results file: ours, or one of AgentV's `index.jsonl`."""

import json
from pathlib import Path

from pydantic import TypeAdapter

from agentevals_action.model.result import TestResult
from agentevals_action.results import agentv

#: Reads and writes one row.
RESULT = TypeAdapter(TestResult)
_DEEP = "it is nested too deeply"


def read_row(line: bytes, folder: Path) -> TestResult:
    """The result in a line; `folder` is that of the file, below which AgentV keeps answers.
    ValueError says what is wrong with it."""
    try:
        return RESULT.validate_json(line)
    except ValueError as error:
        problem = error
    except RecursionError:
        raise ValueError(_DEEP) from None
    try:
        data = json.loads(line)
    except RecursionError:
        raise ValueError(_DEEP) from None
    if agentv.is_agentv_row(data):
        return agentv.read_row(data, folder)
    raise problem
