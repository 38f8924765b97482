"""Where a report points to, when there is a code host to point to."""

from dataclasses import dataclass
from urllib.parse import quote

_LONGEST = 500  # characters of an address; a longer one is left out


@dataclass(frozen=True)
class Links:
    """What addresses are made of; with None in it (a local repository) there is no link.
    `repository` is `owner/name`, `run_url` the page of the workflow run."""

    server_url: str | None = None
    repository: str | None = None
    head_sha: str | None = None
    base_sha: str | None = None
    run_url: str | None = None

    def head_file(self, path: str, line: int | None = None) -> str | None:
        """Address of a file (and line, from 1) at head's commit."""
        return self._file(self.head_sha, path, line)

    def base_file(self, path: str, line: int | None = None) -> str | None:
        """Address of a file (and line, from 1) at base's commit."""
        return self._file(self.base_sha, path, line)

    def commit(self, sha: str | None) -> str | None:
        """Address of a commit."""
        return self._address("commit", quote(sha, safe="", errors="replace")) if sha else None

    def _file(self, sha: str | None, path: str, line: int | None) -> str | None:
        if not sha or not path:
            return None
        # quote() leaves `~` alone and refuses lone surrogates, which no path in git's index holds
        # in UTF-8.
        address = self._address("blob", sha, quote(path, safe="/", errors="replace"))
        return f"{address}#L{line}" if address and line else address

    def _address(self, *parts: str) -> str | None:
        if not self.server_url or not self.repository:
            return None
        address = "/".join([self.server_url.rstrip("/"), self.repository, *parts])
        return address if len(address) <= _LONGEST else None


def linked(text: str, address: str | None) -> str:
    """Markdown text, a link when there is an address."""
    return f"[{text}]({address})" if address else text
