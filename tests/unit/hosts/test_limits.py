"""Text cut to what GitHub takes."""

from hypothesis import given
from hypothesis import strategies as st

from agentevals_action.github import limits

TEXTS = st.text(alphabet=st.sampled_from("ab\n😀é\u200d"), max_size=400)


@given(TEXTS, st.integers(0, 300))
def test_characters__are_cut_to_the_longest_beginning(text: str, limit: int) -> None:
    cut = limits.cut_characters(text, limit)
    assert text.startswith(cut)
    assert limits.characters(cut) <= limit
    rest = text[len(cut) :]
    assert not rest or limits.characters(cut + rest[0]) > limit


@given(TEXTS, st.integers(0, 300))
def test_bytes__are_cut_to_whole_characters(text: str, limit: int) -> None:
    cut = limits.cut_bytes(text, limit)
    assert text.startswith(cut)
    assert len(cut.encode()) <= limit


@given(TEXTS, st.integers(150, 300), st.integers(0, 20))
def test_fitting__leaves_room_and_says_what_it_did(text: str, limit: int, room: int) -> None:
    fit = limits.fitting(text, limit, room)
    assert limits.characters(fit) + room <= limit
    assert fit == text or fit.startswith("**This text is longer than")
