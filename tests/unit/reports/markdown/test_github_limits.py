"""Text cut to the limits of GitHub."""

from hypothesis import given
from hypothesis import strategies as st

from agentevals_action.reports.markdown import github_limits as limits

TEXTS = st.text(alphabet=st.sampled_from("ab\n😀é\u200d"), max_size=400)


@given(TEXTS, st.integers(0, 300))
def test_characters__are_cut_to_the_longest_beginning(text: str, limit: int) -> None:
    cut = limits.cut_characters(text, limit)
    assert text.startswith(cut)
    assert limits.count_characters(cut) <= limit
    rest = text[len(cut) :]
    assert not rest or limits.count_characters(cut + rest[0]) > limit


@given(TEXTS, st.integers(0, 300))
def test_bytes__are_cut_to_whole_characters(text: str, limit: int) -> None:
    cut = limits.cut_bytes(text, limit)
    assert text.startswith(cut)
    assert len(cut.encode()) <= limit


@given(TEXTS, st.integers(150, 300), st.integers(0, 20))
def test_markdown__leaves_space_and_notes_the_cut(text: str, limit: int, room: int) -> None:
    fit = limits.cut_markdown(text, limit, room)
    assert limits.count_characters(fit) + room <= limit
    assert fit == text or fit.startswith("**This text is longer than")
