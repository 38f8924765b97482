"""The answers and tool calls of base and head side by side: so that the first difference is
visible."""

import json
import re
from collections.abc import Sequence
from dataclasses import dataclass
from difflib import SequenceMatcher
from functools import lru_cache
from itertools import pairwise

from agentevals_action.escaping import fenced
from agentevals_action.formatting import counted, cut_line
from agentevals_action.model.suite import ToolCall

#: Columns of a block that fit into a comment; GitHub does not wrap the lines of a block.
_WIDTH = 95
_LONG = 400  # characters of an answer, from which on both are compared word by word
_ALIKE = 0.5  # share of equal words, below which a comparison would only be confusing
_MOST_WORDS = 1_000  # that are compared, because the time grows with their square
_CONTEXT = 10  # equal words that are shown before and after a difference
_BRIDGE = 2  # equal words between two differences that make them one
_CALL = 300  # characters of a tool call
_BEFORE = 100  # characters that are shown before the first difference

_TOKEN = re.compile(r"\S+|\n[ \t]*")
_JOINED_LINE_END = re.compile(r" ?(\n[ \t]*) ")
_DIFFERENCES = "`[-only base-]` `{+only head+}`"


@dataclass(frozen=True)
class Answer:
    """An answer: its `title` and its verdict in words, and its `text`, a fenced block."""

    title: str
    verdict: str
    text: str


def block(text: str, limit: int) -> str:
    """A text as a fenced block that is wrapped at 95 columns, cut to `limit` characters."""
    return fenced(text, limit, width=_WIDTH)


def show_answers(base: str, head: str, verdicts: tuple[str, str], limit: int) -> tuple[Answer, ...]:
    """Both answers in `limit` characters each: once if they are equal, as a comparison of words if
    both are long and similar, else each from shortly before the first difference."""
    on_base, on_head = verdicts
    both = f"base {on_base}; head {on_head}"
    if base == head:
        return (Answer("Both answers are equal", both, block(base, limit)),)
    if min(len(base), len(head)) >= _LONG and (words := _compare_words(base, head)):
        return (Answer(f"Both answers: {_DIFFERENCES}", both, block(words, 2 * limit)),)
    pairs = enumerate(zip(base, head, strict=False))
    difference = next((at for at, (one, other) in pairs if one != other), min(len(base), len(head)))
    start = difference - _BEFORE
    return (
        Answer("Base's answer", on_base, _block_from(base, start, limit)),
        Answer("Head's answer", on_head, _block_from(head, start, limit)),
    )


Calls = Sequence[ToolCall] | None


def show_calls(base: Calls, head: Calls, limit: int) -> tuple[Answer, ...]:
    """The tool calls of both sides with their arguments, once if they are equal; None is
    unknown. `limit` is in characters of a side."""
    on_base, on_head = _call_lines(base), _call_lines(head)
    if base is not None and on_base == on_head:
        return (_calls_answer("Tool calls on both sides", base, on_base, limit),)
    return (
        _calls_answer("Base's tool calls", base, on_base, limit),
        _calls_answer("Head's tool calls", head, on_head, limit),
    )


def _calls_answer(title: str, calls: Calls, lines: str, limit: int) -> Answer:
    if calls is None:
        return Answer(title, "unknown", "*(not stored)*")
    return Answer(title, counted(len(calls), "call"), block(lines, limit))


def _call_lines(calls: Calls) -> str:
    # A line is wrapped, and a secret that a line end divides is not recognized any more.
    lines = (
        f"{call.name} {json.dumps(call.arguments or {}, ensure_ascii=False, default=str)}"
        f"{' (refused)' if call.refused else ''}"
        for call in calls or ()
    )
    return "\n".join(cut_line(line, _CALL) for line in lines)


def _block_from(text: str, start: int, limit: int) -> str:
    if len(text) <= limit or start + 2 * _BEFORE <= limit:
        return block(text, limit)
    return block(f"… ({start:,} equal characters)\n{text[start:]}", limit)


@lru_cache(maxsize=512)  # because a report is rendered several times
def _compare_words(base: str, head: str) -> str:
    """The words of both answers as `git diff --word-diff` shows them; long equal parts are left
    out. Empty if the answers have little in common."""
    all_before, all_after = _TOKEN.findall(base), _TOKEN.findall(head)
    before, after = all_before[:_MOST_WORDS], all_after[:_MOST_WORDS]
    matcher = SequenceMatcher(None, before, after)
    if matcher.quick_ratio() < _ALIKE or matcher.ratio() < _ALIKE:
        return ""
    parts: list[str] = []
    on_base = on_head = 0
    for one, following in pairwise(matcher.get_matching_blocks()):
        if one.size <= _BRIDGE and (one.a or one.b) and following.size:
            continue
        parts += _change(before[on_base : one.a], after[on_head : one.b])
        on_base, on_head = one.a + one.size, one.b + one.size
        is_last = (on_base, on_head) == (len(before), len(after))
        parts += _shortened(before[one.a : on_base], not (one.a or one.b), is_last)
    parts += _change(before[on_base:], after[on_head:])
    if (left := max(len(all_before), len(all_after)) - _MOST_WORDS) > 0:
        parts.append(f"[… {left:,} more words are not compared]")
    return _JOINED_LINE_END.sub(r"\1", " ".join(parts))


def _change(removed: Sequence[str], added: Sequence[str]) -> list[str]:
    marked = ((f"[-{' '.join(removed)}-]", removed), (f"{{+{' '.join(added)}+}}", added))
    return [text for text, words in marked if words]


def _shortened(words: Sequence[str], is_first: bool, is_last: bool) -> list[str]:
    """Equal words: all if they are few, else those next to a difference."""
    start, end = (0 if is_first else _CONTEXT), len(words) - (0 if is_last else _CONTEXT)
    if end - start <= _CONTEXT:
        return list(words)
    left = sum(not word.isspace() for word in words[start:end])
    return [*words[:start], f"[… {left:,} equal words …]", *words[end:]]
