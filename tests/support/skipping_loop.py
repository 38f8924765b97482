"""An event loop that waits for nothing: its clock stands, and is put forward where it would
sleep."""

import asyncio
import selectors
from collections.abc import Coroutine
from typing import Any, TypeVar

T = TypeVar("T")


class _Selector(selectors.DefaultSelector):
    skipped = 0.0

    def select(self, timeout: float | None = None) -> Any:
        found = super().select(0)
        if not found and timeout:
            self.skipped += timeout
        return found


class _SkippingLoop(asyncio.SelectorEventLoop):
    def __init__(self) -> None:
        self._skips = _Selector()
        super().__init__(self._skips)

    def time(self) -> float:
        return self._skips.skipped


def run(main: Coroutine[Any, Any, T]) -> T:
    """Runs what waits for nothing but time, at once."""
    with asyncio.Runner(loop_factory=_SkippingLoop) as runner:
        return runner.run(main)
