"""What a code host makes of Markdown, near enough to see what comes alive in it."""

import html
import re

import cmarkgfm  # type: ignore[import-untyped]  # has no types
from cmarkgfm.cmark import Options  # type: ignore[import-untyped]  # has no types

_CODE = re.compile(r"<pre.*?</pre>|<code>.*?</code>", re.DOTALL)
_TAG = re.compile(r"<[^>]*>")

#: What GitHub links in text outside code, after Markdown was read.
LIVE = re.compile(
    r"@\w|#\d|\b(?:gh|ghsa|cve)-\w|\w://|www\.\w|:[a-z0-9_+-]+:|(?<![0-9a-z])[0-9a-f]{7,64}(?![0-9a-z])",
    re.IGNORECASE,
)


def rendered(text: str) -> str:
    """HTML as for a comment (each line end is one), raw HTML let through."""
    flags = Options.CMARK_OPT_UNSAFE | Options.CMARK_OPT_FOOTNOTES | Options.CMARK_OPT_HARDBREAKS
    return str(cmarkgfm.github_flavored_markdown_to_html(text, options=flags))


def tags(page: str) -> list[str]:
    """Every tag of a page, in order."""
    return _TAG.findall(page)


def text_outside_code(page: str) -> str:
    """What a mention filter looks at; code and tags become line ends, so that nothing joins across
    them."""
    return html.unescape(_TAG.sub("\n", _CODE.sub("\n", page)))


def shown(page: str) -> str:
    """What a reader sees of an inline text."""
    return html.unescape(_TAG.sub("", page)).replace("\u200b", "").strip()
