"""Real runners of suites, which slow tests start."""

import shutil

import pytest


def find_runner(name: str) -> str:
    """The program of a runner on PATH; the test is skipped where it is not installed."""
    program = shutil.which(name)
    if program is None:
        pytest.skip(f"{name} is not on PATH; install it to run this test")
    return program
