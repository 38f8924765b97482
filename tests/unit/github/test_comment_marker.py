"""The marker of our comments, from and to text."""

import pytest
from hypothesis import given
from hypothesis import strategies as st

from agentevals_action.github.comment import AcceptedCommit, Marker, read_marker
from agentevals_action.model.comparison import Outcome

ACCEPTED = AcceptedCommit(commit="a" * 40, by="ada")
MARKER = Marker(id="agentevals", run=50, attempt=1, head="a" * 40, outcome=Outcome.FAILED)


@given(
    st.text(),
    st.integers(0, 10**18),
    st.integers(1, 10**6),
    st.sampled_from(Outcome),
    st.sampled_from([None, ACCEPTED]),
)
def test_marker__is_read_as_it_was_written(
    comment_id: str, run: int, attempt: int, outcome: Outcome, accepted: AcceptedCommit | None
) -> None:
    marker = Marker(
        id=comment_id,
        run=run,
        attempt=attempt,
        head="a" * 40,
        outcome=outcome,
        accepted=accepted,
    )
    line = marker.line()
    assert "\n" not in line
    assert line.count("<!--") == line.count("-->") == 1
    assert "--" not in line[4:-3]
    assert read_marker(f"{line}\nbody") == marker


@pytest.mark.parametrize("before", ["", "\n", " \r\n", "\ufeff"])
def test_marker__is_read_at_the_beginning(before: str) -> None:
    assert read_marker(f"{before}{MARKER.line()}\r\nbody") == MARKER


@pytest.mark.parametrize(
    "body",
    [
        "",
        "body",
        f"> {MARKER.line()}",
        f"text\n{MARKER.line()}",
        f"`{MARKER.line()}`",
        MARKER.line().replace("failed", "superb"),
        MARKER.line().replace('"run":50', '"run":"50"'),
        MARKER.line().replace('"run":50', '"run":true'),
        MARKER.line().replace('"run":50,', ""),
        MARKER.line().replace('"agentevals"', "7"),
        MARKER.line().replace("}", ",}"),
        MARKER.line().replace("v1", "v2"),
        "<!-- agentevals:v1 {} -->",
    ],
)
def test_marker__that_is_none_is_not_read(body: str) -> None:
    assert read_marker(body) is None
