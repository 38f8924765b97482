"""Stands in for a model: it calls the tool whose description has most words of the question."""

import json
import os
import re
import sys
import urllib.request


def ask(method, **params):
    """The result of a request to the MCP server of the test."""
    url, token = os.environ["AGENTEVALS_MCP_URL"], os.environ["AGENTEVALS_MCP_TOKEN"]
    message = {"jsonrpc": "2.0", "id": 1, "method": method, "params": params}
    headers = {"Authorization": f"Bearer {token}", "Content-Type": "application/json"}
    request = urllib.request.Request(url, json.dumps(message).encode(), headers)
    with urllib.request.urlopen(request) as response:
        return json.load(response)["result"]


def words(text):
    """The words of a text."""
    return set(re.findall("[a-z]+", text.lower()))


question = sys.stdin.read()
tools = ask("tools/list")["tools"]
tool = max(tools, key=lambda each: len(words(question) & words(each["description"])))
arguments = {"order": int(re.search(r"\d+", question)[0])}
result = ask("tools/call", name=tool["name"], arguments=arguments)
print(result["content"][0]["text"])
