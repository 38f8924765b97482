"""`is_json`: the output parses as JSON."""

import json
from typing import NoReturn

from agentevals_action.errors import AttemptError
from agentevals_action.evaluators import matching
from agentevals_action.evaluators.base import Case, Options
from agentevals_action.model.result import Score
from agentevals_action.model.suite import Evaluator


class IsJson(Options):
    """Passes when the whole output is one JSON value; `NaN` and code fences are not JSON."""

    type = "is_json"

    async def evaluate(self, case: Case, evaluator: Evaluator) -> Score:
        """1 when the output parses, else 0 with the place where it does not."""
        try:
            failure = json_error(case.trace.output)
        except RecursionError:
            raise AttemptError(
                "evaluator", "the output is nested too deeply to tell whether it is JSON"
            ) from None
        return matching.score_check(not failure, "is valid JSON", f"is not valid JSON: {failure}")


def json_error(text: str) -> str:
    """What keeps a text from being JSON, empty when nothing does; RecursionError when it nests too
    deeply to tell."""
    try:
        # Numbers are not converted: their size is no question of syntax.
        json.loads(text, parse_constant=_refuse, parse_int=str, parse_float=str)
    except json.JSONDecodeError as error:
        return (
            f"{error.msg} at line {error.lineno}, column {error.colno}"
            if text.strip()
            else "the output is empty"
        )
    except ValueError as error:
        return str(error)
    return ""


def _refuse(constant: str) -> NoReturn:
    raise ValueError(f"{constant} is no JSON value")
