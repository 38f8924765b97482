"""The program behind the stub of a command: prints what the suite answers. It imports little, as
an agent waits for each start."""

import json
import os
import socket
import sys

#: The exit code of a command without an answer.
NO_ANSWER = 64


def _ask() -> tuple[str, str, int]:
    """Standard output, standard error and exit code."""
    name, host, port, token, reads_stdin = os.environ["AGENTEVALS_COMMAND"].split()
    words = [os.fsencode(word).decode("utf-8", "surrogateescape") for word in sys.argv[1:]]
    stdin = None
    if reads_stdin == "1":  # else nobody may ever close it
        with open(0, "rb", closefd=False) as stream:
            stdin = stream.read().decode("utf-8", "surrogateescape")
    body = json.dumps({"arguments": words, "stdin": stdin}).encode("ascii")
    head = f"POST /commands/{name} HTTP/1.1\r\nHost: {host}\r\nAuthorization: Bearer {token}\r\n"
    with socket.create_connection((host, int(port))) as server:
        server.sendall(f"{head}Content-Length: {len(body)}\r\n\r\n".encode("ascii") + body)
        received = b"".join(iter(lambda: server.recv(65_536), b""))
    status, _, content = received.partition(b"\r\n\r\n")
    if status.split()[1:2] != [b"200"]:
        raise ValueError(content.decode() or "the connection ended")
    return json.loads(content)  # type: ignore[no-any-return]  # of our own server


def _write(number: int, text: str) -> None:
    try:
        with open(number, "wb", closefd=False) as stream:
            stream.write(text.encode("utf-8", "replace"))
    except OSError:  # nobody reads it
        return


def main() -> None:
    """Asks, prints and exits."""
    try:
        output, errors, exit_code = _ask()
    except (OSError, ValueError) as error:
        output, errors = "", f"the test does not answer this command: {error}\n"
        exit_code = NO_ANSWER
    _write(1, output)
    _write(2, errors)
    sys.exit(exit_code)


if __name__ == "__main__":
    main()
