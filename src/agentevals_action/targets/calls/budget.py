"""The cost limit of a run: calls are counted when they are paid for; none begins at the limit."""

from agentevals_action.errors import AttemptError
from agentevals_action.formatting import cost, dollars, plural
from agentevals_action.model.trace import Trace


class Budget:
    """US dollars `spent` by all calls of a run, and their `limit` (None: no limit).

    Calls in flight when the limit is reached are still paid for. `unknown` names the targets whose
    replies report no cost: their calls are not in `spent`."""

    def __init__(self, limit: float | None = None) -> None:
        self._limit = limit
        self.spent = 0.0
        self.unknown: set[str] = set()
        self.refused = 0

    def check(self) -> None:
        """AttemptError of kind `budget` if the limit is reached."""
        if self._limit is not None and self.spent >= self._limit:
            self.refused += 1
            raise AttemptError(
                "budget",
                f"`max-cost-usd` ({dollars(self._limit)}) is reached",
                "raise it, or run fewer tests or samples",
            )

    def add(self, target: str, reply: Trace) -> None:
        """Counts a reply of a target; a cached one costs nothing."""
        if not reply.cached:
            self.count(target, reply.usage.cost_usd)

    def count(self, name: str, cost_usd: float | None) -> None:
        """Counts what a target, or a runner of others, cost; None if it is unknown."""
        if cost_usd is None:
            self.unknown.add(name)
        else:
            self.spent += cost_usd

    def notices(self) -> tuple[str, ...]:
        """Sentences for the report: the limit was reached, or some costs are unknown."""
        if self._limit is None:
            return ()
        notices = []
        if self.refused:
            refused = f"{self.refused} {plural(self.refused, 'call was', 'calls were')}"
            notices.append(
                f"`max-cost-usd` ({dollars(self._limit)}) was reached after {cost(self.spent)}; "
                f"{refused} not made."
            )
        if self.unknown:
            names = ", ".join(f"`{name}`" for name in sorted(self.unknown))
            notices.append(
                f"The cost of calls to {names} is not known and not counted in `max-cost-usd`; "
                "give a target a `price`."
            )
        return tuple(notices)
