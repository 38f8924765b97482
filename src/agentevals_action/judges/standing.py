"""The standing of judges: what the calibration of a checkout states about them."""

from collections.abc import Mapping
from functools import cache, partial
from typing import get_args

from agentevals_action.execution.fingerprint import Fingerprints
from agentevals_action.formatting import joined, percent
from agentevals_action.judges.calibration_file import parse_calibration, read_calibration
from agentevals_action.judges.labels import list_measured
from agentevals_action.model.judge import CALIBRATION_FILE, JudgeRule, Metric
from agentevals_action.model.result import JudgeRecord
from agentevals_action.model.suite import Suite, Test
from agentevals_action.suites.checkout import Checkout
from agentevals_action.targets.variables import read_variables

#: The standing of a judge that is not in the calibration.
NOT_CALIBRATED = "not calibrated"


class Standings:
    """The standing of each judge in a checkout, by its `calibration.json` and the floor of its
    settings; `errors` are the errors of the file."""

    def __init__(self, checkout: Checkout) -> None:
        path = checkout.below / CALIBRATION_FILE
        data = read_calibration(path)
        content = parse_calibration(data, path.relative_to(checkout.root).as_posix())
        self.errors = content.errors
        self._rule = JudgeRule(checkout.settings.judge_floor, content.calibration)
        variables = cache(partial(read_variables, checkout.environ))
        self._fingerprints = Fingerprints(checkout.settings.watch_rules, variables)

    def of(self, suite: Suite, test: Test) -> Mapping[str, str]:
        """The standing of the judges of a test, by their paths in results."""
        return {
            path: self._describe(self._fingerprints.judge_key(suite, test, judge))
            for path, judge in list_measured(test).items()
        }

    def _describe(self, key: str) -> str:
        calibration = self._rule.calibration
        if calibration is None or key not in calibration.judges:
            return NOT_CALIBRATED
        measured = calibration.judges[key]
        metrics = ((name, getattr(measured, name)) for name in get_args(Metric) if name != "kappa")
        bounds = ", ".join(f"{name} ≥ {percent(share.low)}" for name, share in metrics if share)
        advisory = self._rule.why_advisory(JudgeRecord(key=key))
        decides = f"; advisory: {advisory}" if advisory else ""
        when = f"calibrated on {calibration.day} with {joined(measured.models)}"
        return f"{when}: {bounds}{decides}"
