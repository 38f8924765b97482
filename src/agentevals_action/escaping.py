"""Escaping of untrusted text: for GitHub's Markdown (text, code, fenced blocks), plain text, a
terminal and the log of a job."""

import re
import textwrap

from agentevals_action.formatting import cut

#: Characters that hide, reorder or cannot be stored: controls, zero-width, bidirectional, fillers,
#: tags, lone surrogates.
_HIDDEN = re.compile(
    "[\x00-\x08\x0b-\x1f\x7f-\x9f\xad\u034f\u061c\u115f\u1160\u17b4\u17b5\u180b-\u180f\u200b\u200e\u200f\u2028-\u202e\u2060-\u206f\u3164"
    "\ufe00-\ufe0d\ufeff\uffa0\ufff0-\ufffb\ufffe\uffff\ud800-\udfff\U0001d173-\U0001d17a\U000e0000-\U000e0fff]"
    # Joiners are part of scripts and emoji; next to ASCII they only hide something.
    "|(?<![^\x00-\x7f])[\u200c\u200d]"
)
_PILED = re.compile(
    "([\u0300-\u036f\u0483-\u0489\u1ab0-\u1aff\u1dc0-\u1dff\u20d0-\u20ff\ufe20-\ufe2f]{4})[\u0300-\u20ff\ufe20-\ufe2f]*"
)
_SHOWN = "\ufffd"

_BREAK = "\u200b"
#: What GitHub makes live in any text outside code, each to be broken after the match: mentions and
#: e-mail addresses, issue and advisory references, addresses, emoji codes. It looks at the text
#: after Markdown, so neither backslash nor entity helps
#: (https://github.com/github/markup/issues/1168).
_LIVE = re.compile(
    r"@|#(?=\d)|\b(?:gh|ghsa|cve)-(?=\w)|:(?=//)|www(?=\.)|:(?=[\w+-]+:)", re.IGNORECASE
)
_SHA = re.compile(r"(?<![0-9a-z])[0-9a-f]{7,64}(?![0-9a-z])", re.IGNORECASE)
_SHA_PIECE = re.compile(r".{6}(?=.)")  # seven digits are a reference
_MARKUP = str.maketrans(
    {**{char: f"&#{ord(char)};" for char in "\\`*_[]<>&|~"}, _BREAK: "&#8203;"}
    # A dollar sign opens mathematics; this is the way out that GitHub documents.
    | {"$": "<span>$</span>"}
)
_LINE_START = re.compile(r"[-+=#]|\d+(?=[.)])")
_CODE_IN_PROSE = re.compile(r"`([^`]+)`")
_EMPTY = "(empty)"
_SLACK = 8  # a line is made from at most so many times its limit: what runs of spaces swallow

# The runner looks for `::` after white space, and for the old `##[` anywhere. It compares by
# culture, where characters without a weight (zero-width characters, controls) are ignored:
# everything that is not plain ASCII is ignored here.
_COMMAND = re.compile(r"[^\x21-\x7e]*:[^\x20-\x7e]*:")
_OLD_COMMAND = re.compile(r"#(?=[^\x20-\x7e]*#[^\x20-\x7e]*\[)")
_LINE_ENDS = re.compile(r"\r\n|\r|\n")
#: Sequences that colour a program's output or move the cursor (ECMA-48, 5.4).
_COLOURS = re.compile(r"\x1b\[[0-?]*[ -/]*[@-~]")


def uncoloured(text: str) -> str:
    """A program's output without the sequences for a terminal."""
    return _COLOURS.sub("", text)


def visible(text: str) -> str:
    """The text with every character that hides or reorders shown as `�`, and piles of combining
    marks cut; line ends become LF."""
    if text.isascii() and text.isprintable():  # nearly every one of the texts in a report page
        return text
    text = text.replace("\r\n", "\n").replace("\r", "\n")
    return _PILED.sub(r"\1", _HIDDEN.sub(_SHOWN, text))


def plain(text: str, limit: int = 200) -> str:
    """One line of plain text, at most `limit` characters, for output without markup."""
    line = " ".join(visible(text[: limit * _SLACK]).split())
    if len(line) > limit or len(text) > limit * _SLACK:
        return line[: limit - 1] + "…"
    return line


def no_command(line: str) -> str:
    """A line that a runner does not take for a command."""
    line = _OLD_COMMAND.sub("# ", line)
    return f"| {line}" if _COMMAND.match(line) else line


def printable(text: str, limit: int = 200) -> str:
    """One line of at most `limit` characters that controls neither a terminal nor a runner."""
    characters = (char if char.isprintable() else " " if char in "\n\r\t" else "�" for char in text)
    return cut(no_command("".join(characters)), limit)


def safe_log_line(text: str) -> str:
    """Text for the log with its lines, none of which is a command to the runner."""
    return "\n".join(no_command(line) for line in _LINE_ENDS.split(text))


def inline(text: str, limit: int = 200) -> str:
    """One line of Markdown that shows `text` and nothing else: no markup, HTML, mention, reference
    or link comes alive.

    Good in paragraphs, list items, table cells, link texts and inside HTML. `limit` is in
    characters of the text, before escaping."""
    return _escaped(plain(text, limit)) or _EMPTY


def _escaped(line: str) -> str:
    start = _LINE_START.match(line)
    opening = ""
    if start and start[0].isdigit():
        opening, line = f"{start[0]}&#{ord(line[start.end()])};", line[start.end() + 1 :]
    elif start and not line[1:2].isdigit():
        opening, line = f"&#{ord(line[0])};", line[1:]
    after = rf"\g<0>{_BREAK}"
    line = _SHA.sub(lambda match: _SHA_PIECE.sub(after, match[0]), line)
    return opening + _LIVE.sub(after, line).translate(_MARKUP)


def code(text: str, limit: int = 120) -> str:
    """One line of inline code; good where `inline` is, except inside HTML."""
    line = _no_comment(plain(text, limit))
    if not line:
        return _EMPTY
    # A table cell ends at a pipe, also in code, and what stands before an escaped pipe decides how
    # it reads. At the beginning of a paragraph, a link whose text is code with `]:` in it reads as
    # the definition of another link, which shows nothing.
    if "|" in line or "]:" in line:
        return html_code(text, limit)
    fence = "`" * (_longest(line, "`") + 1)
    space = " " if line[0] == "`" or line[-1] == "`" else ""
    return f"{fence}{space}{line}{space}{fence}"


def html_code(text: str, limit: int = 120) -> str:
    """One line of code for inside HTML, where Markdown is not read (`<summary>`)."""
    return f"<code>{inline(text, limit)}</code>"


def prose(text: str, limit: int = 300) -> str:
    """A sentence of ours with untrusted parts: as `inline`, but what stands between single
    backticks becomes code."""
    line, parts, end = plain(text, limit), [], 0
    for match in _CODE_IN_PROSE.finditer(line):
        before = line[end : match.start()]
        parts += [_escaped(before) if before else "", code(match[1], limit)]
        end = match.end()
    return "".join([*parts, _escaped(line[end:]) if line[end:] else ""]) or _EMPTY


def fenced(text: str, limit: int, width: int = 0) -> str:
    """A fenced block with at most `limit` characters of the text; how many are left out is its last
    line.

    Lines are wrapped at `width` columns (0: not)."""
    shown = visible(text[: limit + 1])[:limit].rstrip("\n").split("\n")
    lines = [_no_comment(part) for line in shown for part in _wrapped(line, width)]
    if not any(lines):
        return f"*{_EMPTY}*"
    if len(text) > limit:
        lines.append(f"… ({len(text) - limit:,} more characters)")
    mark = min("`~", key=lambda char: max(_longest(line, char) for line in lines))
    fence = mark * max(3, 1 + max(_longest(line, mark) for line in lines))
    return "\n".join([f"{fence}text", *lines, fence])


def _wrapped(line: str, width: int) -> list[str]:
    return textwrap.wrap(line, width, break_on_hyphens=False) or [""] if width else [line]


def _no_comment(text: str) -> str:
    # Code is not escaped, so that a forged marker would stand in the comment's source as it is.
    return text.replace("<!--", f"<!{_BREAK}--")


def _longest(text: str, char: str) -> int:
    return max((len(run) for run in re.findall(f"{char}+", text)), default=0)
