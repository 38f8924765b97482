"""Tests that `outcomes.py` takes over."""


class SharedChecks:
    def test_inherited(self):
        assert 0


def test_imported():
    pass
