"""HTML of the escaped Markdown that the reports share, so that all reports use the same words."""

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


def markdown_line(text: str) -> Markup:
    """One line of Markdown."""
    return Markup(_MARKDOWN.renderInline(text).replace(_BREAK, ""))  # noqa: S704 - made by the renderer
