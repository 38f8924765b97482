"""Tests with pytest-rerunfailures, for the recorded `pytest-rerunfailures-16.7.xml`."""

import pytest

attempts = []


@pytest.mark.flaky(reruns=2)
def test_second_attempt(record_property):
    attempts.append(1)
    record_property("answer", f"attempt {len(attempts)}")
    assert len(attempts) == 2


@pytest.mark.flaky(reruns=1)
def test_never():
    assert 0
