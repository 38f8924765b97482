"""Links to files, commits and the run at the code host."""

from dataclasses import dataclass
from urllib.parse import quote

_LONGEST_URL = 500  # characters; a longer URL is left out


@dataclass(frozen=True)
class Links:
    """The parts of URLs; without a server or a repository (`owner/name`) there are no links.
    `pull_request` is the number of the one that runs, `branch` the name of head's branch;
    `report_url` is the uploaded report page, empty within that page."""

    server_url: str | None = None
    repository: str | None = None
    head_sha: str | None = None
    base_sha: str | None = None
    run_url: str | None = None
    pull_request: int | None = None
    branch: str = ""
    report_url: str | None = None

    def head_file(self, path: str, line: int | None = None) -> str | None:
        """The URL of a file (and line, from 1) at head's commit."""
        return self._file(self.head_sha, path, line)

    def base_file(self, path: str, line: int | None = None) -> str | None:
        """The URL of a file (and line, from 1) at base's commit."""
        return self._file(self.base_sha, path, line)

    def pull(self) -> str | None:
        """The URL of the pull request."""
        return self._url("pull", str(self.pull_request))

    def commit(self, sha: str | None) -> str | None:
        """The URL of a commit."""
        return self._url("commit", quote(sha, safe="", errors="replace")) if sha else None

    def report_test(self, suite: str, test: str) -> str | None:
        """The URL of a test in the report page.

        GitHub redirects the address of the artifact to a signed one; a browser keeps the fragment
        (https://fetch.spec.whatwg.org/#http-redirect-fetch)."""
        path = "/".join(quote(part, safe="", errors="replace") for part in (suite, test))
        url = f"{self.report_url}#test/{path}"
        return None if self.report_url is None or len(url) > _LONGEST_URL else url

    def group(self, key: str) -> str | None:
        """The URL of a group of tests in the report page."""
        return None if self.report_url is None else f"{self.report_url}#group={key}"

    def _file(self, sha: str | None, path: str, line: int | None) -> str | None:
        if not sha or not path:
            return None
        # `replace`: a path in git's index may contain bytes that are not UTF-8.
        url = self._url("blob", sha, quote(path, safe="/", errors="replace"))
        return f"{url}#L{line}" if url and line else url

    def _url(self, *parts: str) -> str | None:
        if not self.server_url or not self.repository:
            return None
        url = "/".join([self.server_url.rstrip("/"), self.repository, *parts])
        return url if len(url) <= _LONGEST_URL else None


def linked(text: str, url: str | None) -> str:
    """Markdown text, as a link if there is a URL."""
    return f"[{text}]({url})" if url else text
