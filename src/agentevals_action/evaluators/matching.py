"""Pure: texts looked for in an answer, and the words in which a hit or a miss is told."""

from collections.abc import Callable, Sequence
from typing import Annotated

from msgspec import Meta

from agentevals_action.entries.entry import Checked
from agentevals_action.formatting import quoted
from agentevals_action.model.result import Score


def _present(text: str) -> str:
    if not text:
        raise ValueError(
            "an empty text is found everywhere, so this checks nothing; write the text to look for"
        )
    return text


def _not_blank(text: str) -> str:
    if not text.strip():
        raise ValueError(
            "nothing is left of this text once it is trimmed, so this checks nothing; write the text to look for"
        )
    return text


def _some(texts: tuple[str, ...]) -> tuple[str, ...]:
    if not texts:
        raise ValueError(
            "the list is empty, so there is nothing to look for; write at least one text"
        )
    return texts


#: A text to look for; not empty.
Text = Annotated[str, Checked(_present), Meta(extra_json_schema={"minLength": 1})]

#: A text that is compared trimmed; something must be left of it.
TrimmedText = Annotated[str, Checked(_not_blank), Meta(extra_json_schema={"minLength": 1})]

#: Texts to look for; at least one, none empty.
Texts = Annotated[tuple[Text, ...], Checked(_some), Meta(extra_json_schema={"minItems": 1})]


def exact(text: str) -> str:
    """The text as it is: the folding of comparisons that heed case."""
    return text


def folded(text: str) -> str:
    """The text with its case folded: the folding of comparisons that do not heed case."""
    return text.casefold()


def score_any(output: str, wanted: Sequence[str], fold: Callable[[str], str] = exact) -> Score:
    """1 when the output contains at least one of the texts; each that is there is a hit."""
    found = [text for text in wanted if fold(text) in fold(output)]
    if found:
        return Score(1.0, hits=tuple(f"contains {quoted(text)}" for text in found))
    missed = (
        quoted(wanted[0])
        if len(wanted) == 1
        else "any of " + ", ".join(quoted(text) for text in wanted)
    )
    return Score(0.0, misses=(f"does not contain {missed}",))


def score_all(output: str, wanted: Sequence[str], fold: Callable[[str], str] = exact) -> Score:
    """1 when the output contains all of the texts; each is a hit or a miss."""
    hits = tuple(f"contains {quoted(text)}" for text in wanted if fold(text) in fold(output))
    misses = tuple(
        f"does not contain {quoted(text)}" for text in wanted if fold(text) not in fold(output)
    )
    return Score(0.0 if misses else 1.0, hits=hits, misses=misses)


def score_check(holds: bool, hit: str, miss: str) -> Score:
    """1 with the sentence `hit` when the check holds, 0 with the sentence `miss` when it does
    not."""
    return Score(1.0, hits=(hit,)) if holds else Score(0.0, misses=(miss,))
