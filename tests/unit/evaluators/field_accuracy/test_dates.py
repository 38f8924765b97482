"""Dates in the forms that people and programs write them in."""

from datetime import UTC, date, datetime, timedelta, timezone

import pytest
from hypothesis import given
from hypothesis import strategies as st

from agentevals_action.evaluators.field_accuracy import dates

DAY = datetime(2025, 1, 15, tzinfo=UTC)


@pytest.mark.parametrize(
    "text",
    [
        *(
            "2025-01-15",
            "20250115",
            "2025-01-15T00:00:00Z",
            "2025-01-15 00:00",
            "2025-01-14T19:00:00-05:00",
            "2025-1-15",
            "2025/01/15",
        ),
        *(
            "15-JAN-2025",
            "15-Jan-2025",
            "15 January 2025",
            "15. Jan 2025",
            "15 jan, 2025",
            "January 15, 2025",
            "Jan. 15 2025",
            "15/Jan/2025",
        ),
        *(
            "15th January 2025",
            "January 15th, 2025",
            "Wed, 15 Jan 2025 00:00:00 GMT",
            "Wednesday, January 15, 2025 at 12:00 AM",
            "15.01.2025",
        ),
        *(
            "01/15/2025",
            "15/01/2025",
            "01-15-2025",
            "15-01-2025",
            " 2025-01-15 ",
            "2025-01-15T00:00:00.000+00:00",
            "2025.01.15",
        ),
    ],
)
def test_date__is_read_in_every_clear_form(text: str) -> None:
    assert dates.read_dates(text) == (DAY,)


def test_date__with_a_time_is_another_instant() -> None:
    assert dates.read_dates("15 Jan 2025 3:04:05 PM +01:30") == (
        datetime(2025, 1, 15, 15, 4, 5, tzinfo=timezone(timedelta(hours=1, minutes=30))),
    )
    assert (
        dates.read_dates("2025-01-15T10:00:00Z")
        == dates.read_dates("Jan 15, 2025 12:00 +0200")
        != (DAY,)
    )


@pytest.mark.parametrize(
    "text",
    [
        "",
        "soon",
        "2025",
        "2025-02-30",
        "32 Jan 2025",
        "15 Foo 2025",
        "13/13/2025",
        "15-JAN-25",
        "1736899200",
        "15 Jan 2025 13:00 PM",
    ],
)
def test_date__is_none(text: str) -> None:
    assert dates.read_dates(text) == ()


def test_date__that_may_be_two_is_not_guessed() -> None:
    assert len(dates.read_dates("03/04/2025")) == 2
    assert len(dates.read_dates("03-04-2025")) == 2
    assert len(dates.read_dates("04/04/2025")) == 1


@pytest.mark.parametrize(
    ("form", "text"),
    [
        ("MM/DD/YYYY", "01/15/2025"),
        ("DD.MM.YY", "15.01.25"),
        ("%d/%m/%Y", "15/01/2025"),
        ("%B %d, %Y", "January 15, 2025"),
        ("yyyy-MM-dd", "2025-01-15"),
        ("YYYY-MM-DDTHH:mm:ssZ", "2025-01-15T01:00:00+0100"),
        ("[on] D MMM YYYY h:mm A", "on 15 Jan 2025 12:00 am"),
        ("YYYYMMDD", "20250115"),
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


@pytest.mark.parametrize(
    ("form", "said"),
    [
        ("YYYY-mm-DD", "it has no month; write MM or MMM"),
        ("MM/YYYY", "it has no day; write DD"),
        ("DD-MM", "it has no year; write YYYY"),
        ("", "it has no year"),
        ("YYYY-MM-DD QQ", '"QQ" is unknown; write it as'),
        ("%Y-%m-%d %q", '"%q" is unknown'),
        ("YYYY-MM-DD DD", "a part is in it twice; write each once"),
    ],
)
def test_format__is_refused(form: str, said: str) -> None:
    with pytest.raises(ValueError, match="is not a valid date format") as refused:
        dates.read_format(form)
    assert said in str(refused.value)


@given(
    st.dates(min_value=date(1000, 1, 1)),
    st.sampled_from(["YYYY-MM-DD", "DD MMMM YYYY", "MMM D, YYYY", "DD.MM.YYYY", "MM/DD/YYYY"]),
)
def test_format__reads_what_it_writes(day: date, form: str) -> None:
    month = day.strftime("%B")
    written = form.replace("YYYY", f"{day.year:04}").replace("DD", f"{day.day:02}")
    written = (
        written.replace("MMMM", "#")
        .replace("MMM", "@")
        .replace("MM", f"{day.month:02}")
        .replace("D", str(day.day))
    )
    written = written.replace("#", month).replace("@", month[:3])
    assert dates.read_dates(written, [form]) == (
        datetime(day.year, day.month, day.day, tzinfo=UTC),
    )


@given(st.text(max_size=40))
def test_date__reading_never_fails(text: str) -> None:
    assert len(dates.read_dates(text)) <= 2
