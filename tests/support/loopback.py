"""An HTTP server on the loopback, in a thread: the base of the stand-ins."""

import ssl
import subprocess
import threading
from collections.abc import Callable
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path
from typing import Any, Self


class LoopbackServer:
    """Use as a context manager. `url` is its address, which has it from the beginning."""

    def __init__(self, handler: Callable[..., BaseHTTPRequestHandler]) -> None:
        self._server = ThreadingHTTPServer(("127.0.0.1", 0), handler)
        self._thread = threading.Thread(
            target=self._server.serve_forever, args=(0.01,), daemon=True
        )
        self.url = f"http://127.0.0.1:{self._server.server_port}"

    def encrypt(self, folder: Path) -> Path:
        """Makes it a server of HTTPS, before it starts. Returns the file of the only authority that
        its certificate has."""
        certificate, key = folder / "certificate.pem", folder / "key.pem"
        options = ["-x509", "-newkey", "rsa:2048", "-nodes", "-days", "2", "-subj", "/CN=localhost"]
        options += ["-addext", "subjectAltName=DNS:localhost", "-keyout", str(key)]
        command = ["openssl", "req", *options, "-out", str(certificate)]
        subprocess.run(command, check=True, capture_output=True)
        context = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
        context.load_cert_chain(certificate, key)
        self._server.socket = context.wrap_socket(self._server.socket, server_side=True)
        self.url = f"https://localhost:{self._server.server_port}"
        return certificate

    def __enter__(self) -> Self:
        self._thread.start()
        return self

    def __exit__(self, *error: object) -> None:
        self._server.shutdown()
        self._thread.join()
        self._server.server_close()


class QuietHandler(BaseHTTPRequestHandler):
    """Writes no log."""

    def log_message(self, format: str, *arguments: Any) -> None:
        """Prints nothing."""
