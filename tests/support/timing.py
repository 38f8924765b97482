"""Processor time, for tests that compare two pieces of work in the same run."""

import time
from collections.abc import Callable


def processor_seconds(work: Callable[[], object]) -> float:
    """The least processor time of three runs, which is the one that least else disturbed."""

    def measure() -> float:
        started = time.process_time()
        work()
        return time.process_time() - started

    return min(measure() for _ in range(3))
