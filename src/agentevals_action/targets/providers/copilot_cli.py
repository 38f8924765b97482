"""`copilot-cli`: GitHub Copilot without a person (`copilot`)."""

from dataclasses import replace
from typing import ClassVar

from agentevals_action.model.trace import Trace
from agentevals_action.model.usage import Usage
from agentevals_action.model.validation.json_values import count, members, parse_json
from agentevals_action.targets.agents import copilot_stream
from agentevals_action.targets.agents.headless import AgentOptions, Command, Product, Telemetry

_FAILED = 2  # the status of a span


def _add_tokens(trace: Trace, telemetry: bytes) -> Trace:
    """The trace with the tokens of the model calls in the file that Copilot wrote (a span a line),
    sub-agents' included, if its own are not complete. Unknown if a call that succeeded has none."""
    if trace.usage.total_tokens is not None:
        return trace
    try:
        spans = [members(parse_json(line)) for line in telemetry.splitlines() if line.strip()]
    except ValueError:  # the agent can write anything: its figures stay unknown
        return trace
    calls = [
        attributes
        for span in spans
        if (attributes := members(span.get("attributes"))).get("gen_ai.operation.name") == "chat"
        and members(span.get("status")).get("code") != _FAILED
    ]

    def tokens(name: str) -> list[int]:
        counts = (count(call.get(f"gen_ai.usage.{name}")) for call in calls)
        return [number for number in counts if number is not None]

    sent, received = tokens("input_tokens"), tokens("output_tokens")
    cached = tokens("cache_read.input_tokens")
    if not calls or not len(sent) == len(received) == len(calls):
        return trace
    usage = Usage(sum(sent), sum(received), sum(cached) if cached else None)
    return replace(trace, usage=usage)


class CopilotCli(AgentOptions):
    """GitHub Copilot without a person."""

    provider: ClassVar[str] = "copilot-cli"
    aliases: ClassVar[tuple[str, ...]] = ("copilot",)
    product: ClassVar[Product] = Product(
        name="Copilot",
        package="npm install -g @github/copilot",
        key_hint="name COPILOT_GITHUB_TOKEN in the workflow's input `env` (GITHUB_TOKEN is never "
        "passed on), and check `model`",
        read=copilot_stream.read,
        # With a prompt on standard input, and not as `-p`, it runs without a person.
        words=("--output-format", "json", "--no-color", "--no-ask-user"),
        telemetry=Telemetry("COPILOT_OTEL_FILE_EXPORTER_PATH", _add_tokens),
    )

    command: Command = "copilot"

    def priced_model(self) -> None:
        """None: Copilot is paid for in requests, not in tokens."""
