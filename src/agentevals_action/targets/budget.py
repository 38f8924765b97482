"""What a run may cost: calls are counted as they are paid for, and none begins once the limit is
reached."""

from agentevals_action.errors import AttemptError
from agentevals_action.formatting import cost, dollars
from agentevals_action.model.trace import Trace


class Budget:
    """US dollars spent by all calls of a run, `limit` what they may cost (None: no limit).

    Calls that are under way when the limit is reached are still paid for. `unknown` names the
    targets whose replies do not tell what they cost: those calls are not in `spent`."""

    def __init__(self, limit: float | None = None) -> None:
        self._limit = limit
        self.spent = 0.0
        self.unknown: set[str] = set()
        self.refused = 0

    def check(self) -> None:
        """AttemptError of kind `budget` when nothing may be spent any more."""
        if self._limit is not None and self.spent >= self._limit:
            self.refused += 1
            raise AttemptError(
                "budget",
                f"`max-cost-usd` ({dollars(self._limit)}) is reached",
                "raise it, or run fewer tests or samples",
            )

    def add(self, target: str, reply: Trace) -> None:
        """A reply of a target; one out of a cache costs nothing."""
        if reply.cached:
            return
        if reply.cost_usd is None:
            self.unknown.add(target)
        else:
            self.spent += reply.cost_usd

    def notices(self) -> tuple[str, ...]:
        """What a reader has to know, in sentences: that the limit was reached, and that it does not
        see all."""
        if self._limit is None:
            return ()
        told = []
        if self.refused:
            told.append(
                f"`max-cost-usd` ({dollars(self._limit)}) was reached after {cost(self.spent)}; {_calls(self.refused)} not made."
            )
        if self.unknown:
            names = ", ".join(f"`{name}`" for name in sorted(self.unknown))
            told.append(
                f"The cost of calls to {names} is not known and not counted in `max-cost-usd`; give the target a `price`."
            )
        return tuple(told)


def _calls(count: int) -> str:
    return "1 call was" if count == 1 else f"{count} calls were"
