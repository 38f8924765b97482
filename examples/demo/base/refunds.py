"""The shop's refund agent: reads a customer's message, and works with the tools of an MCP server.

A program of a few rules stands where your agent would. `call` is what a client of MCP does.
"""

import json
import os
import re
import sys
from urllib.request import Request, urlopen


def call(tool: str, **arguments: object) -> str:
    """The result of a tool."""
    params = {"name": tool, "arguments": arguments}
    body = {"jsonrpc": "2.0", "id": 1, "method": "tools/call", "params": params}
    headers = {"Authorization": f"Bearer {os.environ['AGENTEVALS_MCP_TOKEN']}"}
    with urlopen(
        Request(os.environ["AGENTEVALS_MCP_URL"], json.dumps(body).encode(), headers)
    ) as answer:
        return json.load(answer)["result"]["content"][0]["text"]


def answer(message: str) -> str:
    """The answer to one message, and what has to be done for it."""
    number = int(re.findall(r"\d+", message)[0])
    order = json.loads(call("find_order", id=number))
    if order["days"] > 30:
        return (
            f"I'm sorry: order {number} was delivered more than 30 days ago, so I can't refund it."
        )
    call("refund", id=number)
    return f"Order {number} is refunded: {order['amount']} euros."


print(answer(sys.stdin.read()))
