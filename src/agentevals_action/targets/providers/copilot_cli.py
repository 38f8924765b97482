"""`copilot-cli`: GitHub Copilot without a person (`copilot`)."""

from typing import ClassVar

from agentevals_action.targets.agents import copilot_stream, copilot_telemetry
from agentevals_action.targets.agents.headless import AgentOptions, Command, Product, Telemetry


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
        telemetry=Telemetry(copilot_telemetry.VARIABLE, copilot_telemetry.add_tokens),
    )

    command: Command = "copilot"

    def priced_model(self) -> None:
        """None: Copilot is paid for in requests, not in tokens."""
