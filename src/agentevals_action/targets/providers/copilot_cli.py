"""`copilot-cli`: GitHub Copilot without a person (`copilot`)."""

from dataclasses import replace
from typing import ClassVar

from agentevals_action.model.trace import Trace
from agentevals_action.targets.agents import copilot_stream
from agentevals_action.targets.agents.headless import AgentOptions, Command, Product, Telemetry
from agentevals_action.targets.otel.otlp.spans import SpanReader
from agentevals_action.targets.otel.span_trace import read_trace


def _add_tokens(trace: Trace, telemetry: bytes) -> Trace:
    """The trace with the tokens of the spans in the file that Copilot wrote, sub-agents' included,
    if its own are not complete. Unknown if a call that succeeded has none."""
    if trace.input_tokens is not None and trace.output_tokens is not None:
        return trace
    reader = SpanReader()
    try:
        reader.read_lines(telemetry)
    except ValueError:  # the agent can write anything: its figures stay unknown
        return trace
    found = read_trace(reader.spans)
    if found is None or found.input_tokens is None or found.output_tokens is None:
        return trace
    return replace(
        trace,
        input_tokens=found.input_tokens,
        output_tokens=found.output_tokens,
        cached_tokens=found.cached_tokens,
    )


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
