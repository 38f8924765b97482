"""A page of HTML as a program reads it."""

from html.parser import HTMLParser


class HtmlPage(HTMLParser):
    """The elements of a page: their attributes, and the text of each."""

    def __init__(self, text: str) -> None:
        super().__init__()
        self.elements: list[tuple[str, dict[str, str | None]]] = []
        self.texts: dict[str, str] = {}
        self._open: list[str] = []
        self.feed(text)

    def handle_starttag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        self.elements.append((tag, dict(attrs)))
        self._open.append(dict(attrs).get("id") or tag)

    def handle_data(self, data: str) -> None:
        key = self._open[-1] if self._open else ""
        self.texts[key] = self.texts.get(key, "") + data

    @property
    def policy(self) -> list[str]:
        """The directives of the Content Security Policy."""
        found = (
            attributes["content"] or ""
            for _, attributes in self.elements
            if attributes.get("http-equiv") == "Content-Security-Policy"
        )
        return next(found).split("; ")
