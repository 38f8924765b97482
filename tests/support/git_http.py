"""A real git repository over HTTP on the loopback, by git's protocol for plain file servers."""

import threading
from collections.abc import Iterator
from contextlib import contextmanager
from functools import partial
from http.server import SimpleHTTPRequestHandler, ThreadingHTTPServer
from typing import Any

from tests.support.repositories import Repository


class _Handler(SimpleHTTPRequestHandler):
    def log_message(self, format: str, *arguments: Any) -> None:
        """Prints nothing."""


@contextmanager
def served(repository: Repository) -> Iterator[str]:
    """The URL of the repository, with the branches and tags that it has now."""
    repository.git("update-server-info")
    handler = partial(_Handler, directory=str(repository.path / ".git"))
    with ThreadingHTTPServer(("127.0.0.1", 0), handler) as server:
        thread = threading.Thread(target=server.serve_forever)
        thread.start()
        try:
            yield f"http://127.0.0.1:{server.server_address[1]}/"
        finally:
            server.shutdown()
            thread.join()
