"""Reads suites, each in a process of its own with limits of its own, and prints what each needed:
folders in, a line of JSON for each out."""

import json
import os
import resource
import sys
import time
import traceback
from collections.abc import Iterable
from pathlib import Path

from agentevals_action.model.suite import Suite
from agentevals_action.suites.catalog import Catalog
from agentevals_action.suites.load import load_suite

#: Seconds of processor time, and bytes of address space, after which the system ends a reading: a
#: bomb must not take the machine along.
MAX_SECONDS, MAX_SPACE = 20, 2_000_000_000


def read(root: Path) -> dict[str, object]:
    """Describes the suite `EVAL.yaml` in a folder, the processor time of its reading in seconds and
    the peak of memory in megabytes."""
    resource.setrlimit(resource.RLIMIT_CPU, (MAX_SECONDS, MAX_SECONDS))
    resource.setrlimit(resource.RLIMIT_AS, (MAX_SPACE, MAX_SPACE))
    started = time.process_time()
    suite = load_suite(
        root / "EVAL.yaml",
        root,
        Catalog(),
    )
    diagnostics = [
        str(diagnostic)
        for diagnostic in (suite.warnings if isinstance(suite, Suite) else suite.errors)
    ]
    tests = sum(1 for _ in suite.tests) if isinstance(suite, Suite) else 0
    seconds = time.process_time() - started
    # Not getrusage: its peak is the parent's when that is higher.
    status = Path("/proc/self/status").read_text(encoding="ascii").splitlines()
    megabytes = next(int(line.split()[1]) / 1024 for line in status if line.startswith("VmHWM"))
    return {
        "is_valid": isinstance(suite, Suite),
        "tests": tests,
        "diagnostics": diagnostics[:3],
        "longest": max(map(len, diagnostics), default=0),
        "seconds": seconds,
        "megabytes": megabytes,
    }


def main(folders: Iterable[str]) -> None:
    for folder in folders:
        child = os.fork()
        if child == 0:
            try:
                print(json.dumps({"folder": folder, **read(Path(folder))}), flush=True)
            except BaseException:
                traceback.print_exc()
            finally:
                os._exit(0)  # the rest of the folders is the parent's
        os.waitpid(child, 0)


if __name__ == "__main__":
    main(sys.argv[1:])
