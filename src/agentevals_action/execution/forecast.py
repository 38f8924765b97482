"""What earlier runs say of the one to come, and what this one says of the next."""

from collections.abc import Mapping, Sequence

from agentevals_action.model.result import TestResult
from agentevals_action.model.suite import Suite
from agentevals_action.results.estimate import Figures, Tally, sentence
from agentevals_action.settings import Settings


class Forecast:
    """The estimate of a run, and the figures that the next one's is made from. `earlier` are those
    of the last results file, for a run without a cache."""

    def __init__(self, settings: Settings) -> None:
        self._settings = settings
        self._tally = Tally()
        self.earlier: Mapping[str, Figures] = {}

    def add(self, result: TestResult) -> None:
        """One more result of this run."""
        self._tally.add(result)

    def figures(self) -> Mapping[str, Figures]:
        """What this run took, by suite path."""
        return self._tally.figures()

    def sentence(
        self, suites: Sequence[Suite], sides: int, last: Mapping[str, Figures] | None = None
    ) -> str:
        """The estimate for the log; `sides` is 2 where the base is run as well."""
        settings = self._settings
        tests = {suite.path: suite.test_count for suite in suites}
        known = self.earlier if last is None else last
        return sentence(
            tests,
            samples=settings.samples,
            sides=sides,
            at_once=settings.max_concurrency,
            last=known,
            limit=settings.max_cost_usd,
        )
