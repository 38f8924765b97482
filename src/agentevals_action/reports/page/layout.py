"""What the pages share: their frame, one file that opens without a server and fetches nothing; JSON
in HTML; HTML of Markdown, the escaped Markdown of the reports and the Markdown of answers."""

import base64
import hashlib
import json
import math
import re
from collections.abc import Mapping, Sequence
from typing import Any

from markdown_it import MarkdownIt
from markdown_it.renderer import RendererHTML
from markdown_it.token import Token
from markdown_it.utils import EnvType, OptionsDict
from markupsafe import Markup, escape

from agentevals_action import __version__, templating
from agentevals_action.escaping import visible

TEXT = 20_000  # characters of one text
#: The scripts of a page that follow the shared one and precede its own.
_SCRIPTS = {"report": ("difference.js", "test.js")}


def page(name: str, title: str, data: str, context: Mapping[str, Any]) -> str:
    """The page `name` of `templates/report`. A Content Security Policy allows its own script and
    style, and no request. `data` is made by `json_in_html`."""
    style = _joined("base.css", f"{name}.css")
    script = _joined("base.js", *_SCRIPTS.get(name, ()), f"{name}.js")
    frame = {
        "title": title,
        "version": __version__,
        "data": _trusted(data),
        "script": _trusted(script),
        "script_hash": _digest(script),
        "style": _trusted(style),
        "style_hash": _digest(style),
    }
    return templating.render_page(f"report/{name}.html.j2", {**context, **frame})


def _joined(*files: str) -> str:
    return "".join(templating.packaged_text(f"report/{file}") for file in files)


def _trusted(text: str) -> Markup:
    """A packaged file, or JSON whose characters `<`, `>` and `&` are escaped."""
    return Markup(text)  # noqa: S704 - no text of others


def _digest(text: str) -> str:
    """The digest of an element's content in a Content Security Policy."""
    return f"sha256-{base64.b64encode(hashlib.sha256(text.encode()).digest()).decode()}"


def json_in_html(value: Any) -> str:
    """JSON in which no text can end the element of HTML that it stands in. Hidden characters are
    visible, long texts are cut, and numbers that JSON does not have are missing; HTML stays as it
    is."""
    text = json.dumps(_shown_value(value), ensure_ascii=False, separators=(",", ":"))
    return text.replace("<", "\\u003c").replace(">", "\\u003e").replace("&", "\\u0026")


def _shown_value(value: Any) -> Any:
    if isinstance(value, Markup):
        return value
    if isinstance(value, str):
        return shown_text(value)
    if isinstance(value, Mapping):
        return {visible(str(key)): _shown_value(item) for key, item in value.items()}
    if isinstance(value, list | tuple):
        return [_shown_value(item) for item in value]
    if isinstance(value, float) and not math.isfinite(value):
        return None
    return value


def shown_text(text: str) -> str:
    """The first characters of a text with hidden ones visible, and how many are left out."""
    text = visible(text)
    left = len(text) - TEXT
    return f"{text[:TEXT]}\n… ({left:,} more characters: see results.jsonl)" if left > 0 else text


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
