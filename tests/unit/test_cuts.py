"""Every function that shortens a text removes secrets first."""

from collections.abc import Callable

import pytest
from hypothesis import given
from hypothesis import strategies as st

from agentevals_action import escaping, formatting
from agentevals_action.model.validation.json_values import shown
from agentevals_action.suites.files.validation_errors import shorten
from agentevals_action.system.redaction import Redactor

SECRET = "c0ffee7QWERTZuiop9asdf+ghJKLmnbvcxy1245Z"
PARTS = [SECRET[start : start + 8] for start in range(len(SECRET) - 7)]
CUTS: dict[str, Callable[[str, int], str]] = {
    "cut": formatting.cut,
    "cut_line": formatting.cut_line,
    "ending": formatting.ending,
    "last_lines": lambda text, limit: "".join(formatting.last_lines(text, 2, limit)),
    "quoted": lambda text, _: formatting.quoted(text),
    "plain": escaping.plain,
    "inline": escaping.inline,
    "code": escaping.code,
    "prose": escaping.prose,
    "fenced": escaping.fenced,
    "printable": escaping.printable,
    "shown text": lambda text, _: shown(text),
    "shown value": lambda text, _: shown([text]),
    "shorten": lambda text, _: shorten(text),
}


@pytest.mark.parametrize("name", CUTS)
@given(
    before=st.text(max_size=100),
    after=st.text(max_size=100),
    limit=st.integers(2, 200),
)
def test_cut__leaves_no_part_of_a_secret(name: str, before: str, after: str, limit: int) -> None:
    redactor = Redactor([SECRET])
    with formatting.redacting(redactor.redact):
        # Whoever shows the result redacts it once more: a text that is short enough stays as it is.
        result = redactor.redact(CUTS[name](f"{before}{SECRET}{after}", limit))
    assert [part for part in PARTS if part in result] == []


def test_redacting__ends_with_its_block_and_learns_of_more_secrets_inside() -> None:
    text = "one-secret two-secrets"
    with formatting.redacting(Redactor(["one-secret"]).redact):
        assert formatting.redacted(text) == "*** two-secrets"
        formatting.redact_with(Redactor(["one-secret", "two-secrets"]).redact)
        assert formatting.redacted(text) == "*** ***"
    assert formatting.redacted(text) == text


def test_ending__is_as_long_as_asked_for() -> None:
    assert formatting.ending("abcdef", 6) == "abcdef"
    assert formatting.ending("abcdef", 4) == "…def"
    assert formatting.last_lines("a\nbb\n\ncc\n", 2, 10) == ["", "cc"]
