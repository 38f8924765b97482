"""An agent that calls tools over MCP as a plan says: `python tool_agent.py PLAN.json`.

The plan is a list of `[tool, arguments]`, or of commands as lists of words, with variables as
`$NAME`. The answer is the last
result. Without a plan that calls a tool it does not connect."""

import json
import os
import subprocess
import sys
import urllib.request
from pathlib import Path
from typing import Any

HEADERS = {"Content-Type": "application/json", "Accept": "application/json, text/event-stream"}


def main(plan: str) -> None:
    text = "nothing"
    for step in json.loads(os.path.expandvars(Path(plan).read_text("utf-8"))):
        if len(step) == 2 and isinstance(step[1], dict):
            text = call(*step)
        else:
            done = subprocess.run(step, capture_output=True, text=True, check=False)
            text = f"{done.stdout}{done.stderr}"
    print(text)


def call(tool: str, arguments: dict[str, Any]) -> str:
    answer = ask("tools/call", {"name": tool, "arguments": arguments})
    if "error" in answer:
        return str(answer["error"]["message"])
    return str(answer["result"]["content"][0]["text"])


def ask(method: str, params: dict[str, Any]) -> Any:
    url, token = os.environ["AGENTEVALS_MCP_URL"], os.environ["AGENTEVALS_MCP_TOKEN"]
    body = json.dumps({"jsonrpc": "2.0", "id": 1, "method": method, "params": params})
    headers = {**HEADERS, "Authorization": f"Bearer {token}"}
    request = urllib.request.Request(url, body.encode(), headers)
    with urllib.request.urlopen(request) as response:
        return json.loads(response.read())


if __name__ == "__main__":
    main(*sys.argv[1:])
