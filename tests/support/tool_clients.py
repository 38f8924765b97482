"""Agents of each kind that call the tool `find_order` of the suite: `python tool_clients.py KIND`, and
`answer` as a function. The answer is the result."""

import json
import os
import sys
import urllib.request
from http.server import BaseHTTPRequestHandler, HTTPServer
from pathlib import Path
from typing import Any


def call(client: dict[str, Any]) -> str:
    params = {"name": "find_order", "arguments": {"order": 2077}}
    body = {"jsonrpc": "2.0", "id": 1, "method": "tools/call", "params": params}
    request = urllib.request.Request(client["url"], json.dumps(body).encode(), client["headers"])
    with urllib.request.urlopen(request) as response:
        return str(json.loads(response.read())["result"]["content"][0]["text"])


def answer(messages: list[Any], mcp: dict[str, Any]) -> str:
    assert mcp["servers"]["suite"]["url"] == mcp["url"]
    return call(mcp)


def serve() -> None:
    for line in sys.stdin:
        question = json.loads(line)
        reply = answer(question["messages"], question["mcp"])
        print(json.dumps({"call": question["call"], "reply": reply}), flush=True)


def listen(port: int) -> None:
    class Handler(BaseHTTPRequestHandler):
        def do_POST(self) -> None:
            question = json.loads(self.rfile.read(int(self.headers["Content-Length"])))
            text = call(question["mcp"]).encode()
            self.send_response(200)
            self.send_header("Content-Length", str(len(text)))
            self.end_headers()
            self.wfile.write(text)

    HTTPServer(("127.0.0.1", port), Handler).serve_forever()


def main(kind: str, value: str = "") -> None:
    if kind == "serve":
        serve()
    elif kind == "listen":
        listen(int(value))
    elif kind == "config":
        print(call(json.loads(Path(value).read_text("utf-8"))["mcpServers"]["suite"]))
    else:
        token = os.environ["AGENTEVALS_MCP_TOKEN"]
        headers = {"Authorization": f"Bearer {token}"}
        print(call({"url": os.environ["AGENTEVALS_MCP_URL"], "headers": headers}))


if __name__ == "__main__":
    main(*sys.argv[1:])
