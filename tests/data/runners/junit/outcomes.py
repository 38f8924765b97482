"""Every outcome that pytest has, for the recorded `pytest-9.2.xml`."""

import unittest

import pytest

from evals.shared import SharedChecks, test_imported


class TestShared(SharedChecks):
    class TestInner:
        def test_nested(self):
            pass


class Question:
    pass


@pytest.mark.parametrize("question", [Question(), Question()])
def test_numbered(question):
    pass


@pytest.mark.parametrize("text", ["a b", "a\nb", "a::b", "x]y", "é", "q10", "<&>\"'", "@x", ""])
def test_texts(text):
    pass


def test_recorded(record_property):
    record_property("question", "What\nis it?")
    record_property("answer", "one <two>")
    record_property("score", 0.25)
    answer = "one two"
    assert "three" in answer, f"the answer was {answer}"


def test_long():
    answer = "one two " * 80
    assert "three" in answer, f"the answer was {answer}"


def test_chain():
    try:
        {}["key"]
    except KeyError as error:
        raise ConnectionError("HTTP 500") from error


@pytest.fixture
def no_service():
    raise RuntimeError("no service")


@pytest.fixture
def no_end():
    yield
    raise RuntimeError("no end")


def test_setup(no_service):
    pass


def test_teardown(no_end):
    pass


def test_failure_and_teardown(no_end):
    pytest.fail("wrong", pytrace=False)


@pytest.mark.xfail(reason="known")
def test_expected_failure():
    assert 0


@pytest.mark.xfail
def test_expected_failure_without_reason():
    assert 0


@pytest.mark.xfail(strict=True, reason="known")
def test_unexpected_pass():
    pass


@pytest.mark.skip(reason="no key")
def test_skipped():
    pass


def test_subtests(subtests):
    for number in range(3):
        with subtests.test("each", number=number):
            assert number == 1


def test_subtests_pass(subtests):
    for number in range(3):
        with subtests.test("each", number=number):
            assert number < 3


class TestUnit(unittest.TestCase):
    def test_unit(self):
        self.assertEqual(1, 2)
