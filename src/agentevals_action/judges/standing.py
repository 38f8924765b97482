"""The standing of judges: what the calibration of a checkout says of them."""

from collections.abc import Mapping
from functools import cache, partial
from typing import get_args

from agentevals_action.execution.fingerprint import Fingerprints
from agentevals_action.formatting import joined, percent
from agentevals_action.judges.calibration_file import parse_calibration, read_calibration
from agentevals_action.judges.labels import list_measured
from agentevals_action.model.diagnostic import Diagnostic
from agentevals_action.model.judge import CALIBRATION_FILE, Calibration, Metric
from agentevals_action.model.judge_rule import JudgeRule
from agentevals_action.model.result import JudgeRecord
from agentevals_action.model.suite import Suite, Test
from agentevals_action.suites.checkout import Checkout
from agentevals_action.targets.variables import read_variables

#: The standing of a judge that the calibration does not know.
NOT_CALIBRATED = "not calibrated"


class Standings:
    """The standing of each judge in a checkout, by its `calibration.json` and the floor of its
    settings; `errors` are those of the file."""

    def __init__(self, checkout: Checkout) -> None:
        self.errors: tuple[Diagnostic, ...] = ()
        self._calibration: Calibration | None = None
        self._floor = checkout.settings.judge_floor
        variables = cache(partial(read_variables, checkout.environ))
        self._fingerprints = Fingerprints(checkout.settings.watch_rules, variables)
        path = checkout.below / CALIBRATION_FILE
        if (data := read_calibration(path)) is not None:
            content = parse_calibration(data, path.relative_to(checkout.root).as_posix())
            self._calibration, self.errors = content.calibration, content.errors

    def of(self, suite: Suite, test: Test) -> Mapping[str, str]:
        """The standing of the judges of a test, by their paths in results."""
        return {
            path: self._describe(self._fingerprints.judge_key(suite, test, judge))
            for path, judge in list_measured(test).items()
        }

    def _describe(self, key: str) -> str:
        found = self._calibration.judges.get(key) if self._calibration else None
        if found is None or self._calibration is None:
            return NOT_CALIBRATED
        metrics = ((name, getattr(found, name)) for name in get_args(Metric) if name != "kappa")
        bounds = ", ".join(f"{name} ≥ {percent(own.low)}" for name, own in metrics if own)
        advisory = JudgeRule(self._floor, self._calibration).why_advisory(JudgeRecord(key=key))
        decides = f"; advisory: {advisory}" if advisory else ""
        when = f"calibrated on {self._calibration.day} with {joined(found.models)}"
        return f"{when}: {bounds}{decides}"
