"""A real git repository over HTTP on the loopback: by git's protocol for plain file servers, and by
the one of GitHub, which gives single commits."""

import os
import subprocess
from collections.abc import Iterator
from contextlib import contextmanager
from functools import partial
from http.server import SimpleHTTPRequestHandler
from pathlib import Path

from tests.support.loopback import LoopbackServer, QuietHandler
from tests.support.repositories import ENVIRONMENT, Repository


class _Handler(QuietHandler, SimpleHTTPRequestHandler):
    pass


@contextmanager
def served(repository: Repository) -> Iterator[str]:
    """The URL of the repository, with the branches and tags that it has now."""
    repository.git("update-server-info")
    handler = partial(_Handler, directory=str(repository.path / ".git"))
    with LoopbackServer(handler) as server:
        yield f"{server.url}/"


@contextmanager
def served_as_github(
    repository: Repository, folder: Path, full_name: str, certificate: Path | None = None
) -> Iterator[str]:
    """The URL of a server that has the repository at `/<full_name>.git`; `folder` is a new one.
    With a folder for its `certificate`, it is a server of HTTPS."""
    link = folder / f"{full_name}.git"
    link.parent.mkdir(parents=True)
    link.symlink_to(repository.path / ".git")
    common = {
        **ENVIRONMENT,
        "GIT_PROJECT_ROOT": str(folder),
        "GIT_HTTP_EXPORT_ALL": "1",
        "GIT_CONFIG_COUNT": "1",
        "GIT_CONFIG_KEY_0": "safe.directory",
        "GIT_CONFIG_VALUE_0": "*",
    }

    class Handler(QuietHandler):
        def do_GET(self) -> None:
            path, _, query = self.path.partition("?")
            body = self.rfile.read(int(self.headers.get("content-length", "0")))
            environment = {
                **common,
                "PATH_INFO": path,
                "QUERY_STRING": query,
                "REQUEST_METHOD": self.command,
                "CONTENT_TYPE": self.headers.get("content-type", ""),
                "CONTENT_LENGTH": str(len(body)),
                "HTTP_CONTENT_ENCODING": self.headers.get("content-encoding", ""),
                "GIT_PROTOCOL": self.headers.get("git-protocol", ""),
                "REMOTE_ADDR": "127.0.0.1",
            }
            command = ["git", "http-backend"]
            done = subprocess.run(command, env=environment, input=body, capture_output=True)
            head, _, content = done.stdout.partition(b"\r\n\r\n")
            headers = dict(line.split(": ", 1) for line in os.fsdecode(head).split("\r\n") if line)
            self.send_response(int(headers.pop("Status", "200").split()[0]))
            for name, value in headers.items():
                self.send_header(name, value)
            self.send_header("Content-Length", str(len(content)))
            self.end_headers()
            self.wfile.write(content)

        do_POST = do_GET

    server = LoopbackServer(Handler)
    if certificate:
        server.encrypt(certificate)
    with server:
        yield server.url
