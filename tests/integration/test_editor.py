"""The JSON Schema in an editor: what yaml-language-server offers and reports.

Run with `pytest -m slow tests/integration/test_editor.py`; npm installs the server into a temporary
folder."""

import json
import shutil
import subprocess
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from agentevals_action import evaluators

SCHEMA = Path(__file__).resolve().parents[2] / "schemas/eval.schema.json"
START = f"""\
# yaml-language-server: $schema={SCHEMA.as_uri()}
name: suite
tests:
  - id: a
    input: q
    assert:
"""

pytestmark = [pytest.mark.slow, pytest.mark.timeout(300)]


class LanguageServer:
    """A language server on standard input and output."""

    def __init__(self, command: list[str]) -> None:
        self._process = subprocess.Popen(command, stdin=subprocess.PIPE, stdout=subprocess.PIPE)
        self._number = 0
        self.request("initialize", {"processId": None, "rootUri": None, "capabilities": {}})
        self._send({"method": "initialized", "params": {}})

    def open(self, text: str) -> tuple[str, list[str]]:
        """The address of a new document, and the messages about it."""
        self._number += 1
        uri = f"file:///suites/{self._number}.yaml"
        document = {"uri": uri, "languageId": "yaml", "version": 1, "text": text}
        self._notify("textDocument/didOpen", {"textDocument": document})
        while True:
            message = self._read()
            if message.get("params", {}).get("uri") == uri:
                return uri, [found["message"] for found in message["params"]["diagnostics"]]

    def complete(self, text: str) -> list[str]:
        """What the server offers at the end of a text."""
        uri, _ = self.open(text)
        lines = text.split("\n")
        position = {"line": len(lines) - 1, "character": len(lines[-1])}
        where = {"textDocument": {"uri": uri}, "position": position}
        return [item["label"] for item in self.request("textDocument/completion", where)["items"]]

    def request(self, method: str, params: dict[str, Any]) -> Any:
        self._number += 1
        number = self._number
        self._send({"id": number, "method": method, "params": params})
        while (message := self._read()).get("id") != number or "method" in message:
            pass
        return message["result"]

    def stop(self) -> None:
        self._process.kill()
        self._process.communicate()

    def _notify(self, method: str, params: dict[str, Any]) -> None:
        self._send({"method": method, "params": params})

    def _send(self, message: dict[str, Any]) -> None:
        assert self._process.stdin is not None
        body = json.dumps({"jsonrpc": "2.0", **message}).encode()
        self._process.stdin.write(b"Content-Length: %d\r\n\r\n%b" % (len(body), body))
        self._process.stdin.flush()

    def _read(self) -> dict[str, Any]:
        assert self._process.stdout is not None
        length = 0
        while line := self._process.stdout.readline().strip():
            name, _, value = line.partition(b":")
            length = int(value) if name.lower() == b"content-length" else length
        message: dict[str, Any] = json.loads(self._process.stdout.read(length))
        if "id" in message and "method" in message:
            self._send({"id": message["id"], "result": None})
        return message


@pytest.fixture(scope="module")
def server(tmp_path_factory: pytest.TempPathFactory) -> Iterator[LanguageServer]:
    if shutil.which("npm") is None:
        pytest.skip("npm, which installs the server, is not on this machine")
    folder = tmp_path_factory.mktemp("editor")
    install = ["npm", "install", "--no-audit", "--no-fund", "--prefix", str(folder)]
    done = subprocess.run([*install, "yaml-language-server@2.0.0"], capture_output=True, text=True)
    if done.returncode:
        pytest.skip(f"npm cannot install the server: {done.stderr.strip()[-300:]}")
    program = folder / "node_modules/yaml-language-server/bin/yaml-language-server"
    server = LanguageServer(["node", str(program), "--stdio"])
    yield server
    server.stop()


def test_types__are_offered(server: LanguageServer) -> None:
    assert set(evaluators.EVALUATORS) <= set(server.complete(START + "      - type: "))


def test_fields__of_the_type_are_offered(server: LanguageServer) -> None:
    offered = server.complete(START + "      - type: contains\n        ")

    assert {"value", "required", "weight"} <= set(offered)
    assert "script" not in offered


@pytest.mark.parametrize(
    ("evaluator", "messages"),
    [
        ("{type: contians, value: x}", ["Value is not accepted. Valid values: "]),
        ("{type: contains, value: 3}", ['Incorrect type. Expected "string".']),
        ("{type: contains, value: x, valeu: x}", ["Property valeu is not allowed."]),
    ],
)
def test_mistake__has_its_own_message(
    server: LanguageServer, evaluator: str, messages: list[str]
) -> None:
    _, found = server.open(f"{START}      - {evaluator}\n")

    assert len(found) == len(messages)
    assert all(each.startswith(start) for each, start in zip(found, messages, strict=True))
