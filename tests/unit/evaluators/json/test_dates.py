"""Dates in the forms that people and programs write them in."""

from datetime import UTC, datetime

import pytest
from hypothesis import given
from hypothesis import strategies as st

from agentevals_action.evaluators.json import dates

DAY = datetime(2025, 1, 15, tzinfo=UTC)


@pytest.mark.parametrize(
    "text",
    [
        "2025-01-15", "20250115", "2025-01-15T00:00:00Z", "2025-01-15 00:00", "2025/01/15",
        "2025-01-14T19:00:00-05:00", "2025-01-15T00:00:00.000+00:00", " 2025-01-15 ", "2025.01.15",
        "15-JAN-2025", "15-Jan-2025", "15 January 2025", "15 jan, 2025", "January 15, 2025",
        "15/Jan/2025", "15.01.2025", "01/15/2025", "15/01/2025", "01-15-2025", "15-01-2025",
        "Wed, 15 Jan 2025 00:00:00 GMT", "Wed, 15 Jan 2025 01:00:00 +0100",
    ],
)  # fmt: skip
def test_date__is_read_in_every_clear_form(text: str) -> None:
    assert dates.read_dates(text) == (DAY,)


@pytest.mark.parametrize(
    "text", ["", "soon", "2025", "2025-02-30", "32 Jan 2025", "13/13/2025", "15-JAN-25"]
)
def test_date__is_none(text: str) -> None:
    assert dates.read_dates(text) == ()


def test_date__that_may_be_two_is_not_guessed() -> None:
    assert [len(dates.read_dates(text)) for text in ("03/04/2025", "03-04-2025")] == [2, 2]
    assert len(dates.read_dates("04/04/2025")) == 1


@pytest.mark.parametrize(
    ("form", "text"),
    [
        ("MM/DD/YYYY", "01/15/2025"),
        ("DD-MMM-YYYY", "15-JAN-2025"),
        ("DD.MM.%y", "15.01.25"),
        ("%B %d, %Y", "January 15, 2025"),
        ("YYYY-MM-DDTHH:mm:ss%z", "2025-01-15T01:00:00+0100"),
    ],
)
def test_format__is_read(form: str, text: str) -> None:
    assert dates.read_dates(text, [form]) == (DAY,)


def test_formats__decide_in_their_order() -> None:
    american, european = datetime(2025, 3, 4, tzinfo=UTC), datetime(2025, 4, 3, tzinfo=UTC)
    assert dates.read_dates("03/04/2025", ["MM/DD/YYYY"]) == (american,)
    assert dates.read_dates("03/04/2025", ["DD/MM/YYYY", "MM/DD/YYYY"]) == (european,)
    assert dates.read_dates("2025-03-04", ["DD/MM/YYYY"]) == (american,)
    assert dates.read_dates("03/14/2025", ["DD/MM/YYYY"]) == ()


@pytest.mark.parametrize("form", ["MM/YYYY", "DD-MM", "", "YYYY-MM-DD %q", "YYYY-MM-DD DD", "QQ"])
def test_format__without_a_day_is_refused(form: str) -> None:
    with pytest.raises(ValueError, match=r"is not a valid date format .* write it as YYYY-MM-DD"):
        dates.read_format(form)


@given(st.text(max_size=40))
def test_date__reading_never_fails(text: str) -> None:
    assert len(dates.read_dates(text)) <= 2
