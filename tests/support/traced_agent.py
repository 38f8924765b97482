"""An agent that exports spans: `python traced_agent.py MODE`, with the prompt on standard input.

It answers with the prompt. In its spans a model asks for the tool `refund`, which is called, and
answers; the tokens are 20 and 30 in, 7 and 7 out."""

import atexit
import gzip
import json
import os
import sys
import urllib.error
import urllib.request
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

HERE = Path(__file__).resolve()
_START = 1_700_000_000_000_000_000


def attributes(values: Mapping[str, Any]) -> list[dict[str, Any]]:
    """Attributes in OTLP's JSON."""
    return [{"key": name, "value": _value(value)} for name, value in values.items()]


def _value(value: Any) -> dict[str, Any]:
    if isinstance(value, list):
        return {"arrayValue": {"values": [_value(item) for item in value]}}
    if isinstance(value, dict):
        return {"kvlistValue": {"values": attributes(value)}}
    types = {str: "stringValue", bool: "boolValue", float: "doubleValue"}
    return {types.get(type(value), "intValue"): str(value) if type(value) is int else value}


def span(
    number: int,
    values: Mapping[str, Any],
    parent: int = 0,
    start: int = 0,
    end: int = 0,
    **fields: Any,
) -> dict[str, Any]:
    """A span in OTLP's JSON; `start` and `end` are milliseconds."""
    return {
        "traceId": "0af7651916cd43dd8448eb211c80319c",
        "spanId": f"{number:016x}",
        "parentSpanId": f"{parent:016x}" if parent else "",
        "name": f"span {number}",
        "startTimeUnixNano": str(_START + start * 1_000_000),
        "endTimeUnixNano": str(_START + end * 1_000_000),
        "attributes": attributes(values),
        **fields,
    }


def request(*spans: Mapping[str, Any], scope: str = "test") -> dict[str, Any]:
    """The request of an exporter."""
    return {"resourceSpans": [{"scopeSpans": [{"scope": {"name": scope}, "spans": list(spans)}]}]}


def refund_spans(order: str) -> list[dict[str, Any]]:
    """The spans of an agent that refunds an order."""
    call = {"type": "tool_call", "id": "c1", "name": "refund", "arguments": {"order": order}}
    output = [{"role": "assistant", "parts": [call], "finish_reason": "tool_call"}]
    answer = [{"role": "assistant", "parts": [{"type": "text", "content": order}]}]
    chat = {"gen_ai.operation.name": "chat", "gen_ai.usage.output_tokens": 7}
    return [
        span(1, {"gen_ai.operation.name": "invoke_agent"}, start=0, end=100),
        span(
            2,
            {**chat, "gen_ai.usage.input_tokens": 20, "gen_ai.output.messages": json.dumps(output)},
            parent=1,
            start=1,
            end=20,
        ),
        span(
            3,
            {
                "gen_ai.operation.name": "execute_tool",
                "gen_ai.tool.name": "refund",
                "gen_ai.tool.call.id": "c1",
                "gen_ai.tool.call.result": f"refunded {order}",
            },
            parent=1,
            start=21,
            end=26,
        ),
        span(
            4,
            {**chat, "gen_ai.usage.input_tokens": 30, "gen_ai.output.messages": json.dumps(answer)},
            parent=1,
            start=30,
            end=90,
        ),
    ]


def send(body: bytes, path: str = "/v1/traces", **headers: str) -> int:
    """Posts a body as an exporter does, and returns the status."""
    names = dict(pair.split("=", 1) for pair in os.environ["OTEL_EXPORTER_OTLP_HEADERS"].split(","))
    names = {"Content-Type": "application/json", **names}
    names |= {name.replace("_", "-"): value for name, value in headers.items()}
    url = os.environ["OTEL_EXPORTER_OTLP_ENDPOINT"] + path
    opener = urllib.request.build_opener(urllib.request.ProxyHandler({}))
    try:
        with opener.open(urllib.request.Request(url, body, names)) as reply:
            status: int = reply.status
            return status
    except urllib.error.HTTPError as error:
        return error.code
    except (ConnectionError, urllib.error.URLError):  # a body over the limit is not read
        return 413


def main(words: Sequence[str]) -> None:
    """Runs the agent."""
    mode, order = words[0], sys.stdin.read().strip()
    body = json.dumps(request(*refund_spans(order))).encode()
    if mode == "json":
        send(body)
    elif mode == "gzip":
        send(gzip.compress(body), Content_Encoding="gzip")
    elif mode == "twice":
        send(body)
        send(body)
    elif mode == "at-exit":
        atexit.register(send, body)
    elif mode == "no-answer-awaited":
        _send_and_leave(body)
    elif mode == "bomb":
        send(gzip.compress(b"[" * 64 * 1024**2), Content_Encoding="gzip")
    elif mode == "stranger":
        send(body, x_agentevals_token="guessed")
    elif mode == "fails":
        send(body)
        sys.exit("it failed")
    elif mode == "send":
        send(eval(words[1]), **json.loads(words[2]))
    print(order)


def _send_and_leave(body: bytes) -> None:
    """Sends a request, and ends without a look at the answer."""
    import http.client

    host = os.environ["OTEL_EXPORTER_OTLP_ENDPOINT"].removeprefix("http://")
    name, _, token = os.environ["OTEL_EXPORTER_OTLP_HEADERS"].partition("=")
    connection = http.client.HTTPConnection(host)
    connection.request(
        "POST", "/v1/traces", body, {name: token, "Content-Type": "application/json"}
    )
    print("left", flush=True)
    os._exit(0)


if __name__ == "__main__":
    main(sys.argv[1:])
