"""HTML of Markdown: of the escaped one that the reports share, so that all reports use the same
words, and of answers."""

import re
from collections.abc import Sequence

from markdown_it import MarkdownIt
from markdown_it.renderer import RendererHTML
from markdown_it.token import Token
from markdown_it.utils import EnvType, OptionsDict
from markupsafe import Markup, escape

#: The tags that `escaping` writes; any other one is shown as text.
_TAGS = frozenset(f"<{slash}{name}>" for name in ("code", "span", "sub") for slash in ("", "/"))
#: What keeps GitHub from making a mention or a reference; nothing does so in a page.
_BREAK = "\u200b"


def _known_tag(
    _renderer: RendererHTML,
    tokens: Sequence[Token],
    index: int,
    _options: OptionsDict,
    _environment: EnvType,
) -> str:
    tag = tokens[index].content
    return tag if tag in _TAGS else str(escape(tag))


_MARKDOWN = MarkdownIt("commonmark", {"html": True}).disable(["html_block", "image"])
_MARKDOWN.add_render_rule("html_inline", _known_tag)


#: Markdown of others: no HTML, and links and pictures stay text.
_FOREIGN = MarkdownIt("commonmark", {"html": False}).enable(["table", "strikethrough"])
_FOREIGN.disable(["link", "autolink", "image", "reference"])
_LEVEL = 3  # of the headings above an answer
#: Any markup but paragraphs.
_IS_MARKED_UP = re.compile("<(?!/?p>)")


def markdown_line(text: str) -> Markup:
    """One line of Markdown."""
    return Markup(_MARKDOWN.renderInline(text).replace(_BREAK, ""))  # noqa: S704 - made by the renderer


def markdown_blocks(text: str, limit: int) -> Markup:
    """The blocks of an answer of an agent, whose elements have no attribute but the `start` of a
    list; empty for text without markup, and for more than `limit` characters of HTML."""
    tokens = _FOREIGN.parse(text)
    for token in tokens:
        token.info = ""
        token.attrs = {name: value for name, value in token.attrs.items() if name == "start"}
        if token.type.startswith("heading"):
            token.tag = f"h{min(int(token.tag[1]) + _LEVEL, 6)}"
    html = _FOREIGN.renderer.render(tokens, _FOREIGN.options, {})
    is_shown = _IS_MARKED_UP.search(html) and len(html) <= limit
    return Markup(html) if is_shown else Markup()  # noqa: S704 - made by the renderer
