"""Which judges decide: those whose calibration reaches a floor. Pure."""

from dataclasses import dataclass

from agentevals_action.model.judge import Metric


@dataclass(frozen=True)
class Floor:
    """A condition: the one-sided lower 95 % bound of a judge's `metric` is at least `least`, over 0
    and under 1."""

    metric: Metric
    least: float

    def __str__(self) -> str:
        return f"{self.metric}:{self.least:g}"
