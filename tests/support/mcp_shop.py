"""A server of the Model Context Protocol on standard input and output, with a tool that reads and
one that writes."""

import json
import sys
from typing import Any

_ORDER = {"type": "object", "properties": {"order": {"type": "integer"}}}
TOOLS = [
    {
        "name": "find_order",
        "description": "Finds an order.",
        "inputSchema": _ORDER,
        "annotations": {"readOnlyHint": True},
    },
    {"name": "cancel_order", "description": "Cancels an order.", "inputSchema": _ORDER},
]


def answer(message: Any) -> Any:
    match message["method"]:
        case "initialize":
            return {
                "protocolVersion": message["params"]["protocolVersion"],
                "capabilities": {"tools": {}},
                "serverInfo": {"name": "shop", "version": "1"},
            }
        case "tools/list":
            return {"tools": TOOLS}
        case "tools/call":
            return {"content": [{"type": "text", "text": "order shipped"}]}
    return {}


if __name__ == "__main__":
    for line in sys.stdin:
        received = json.loads(line)
        if "id" in received:
            reply = {"jsonrpc": "2.0", "id": received["id"], "result": answer(received)}
            print(json.dumps(reply), flush=True)
