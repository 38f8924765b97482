"""`copilot-cli`: GitHub Copilot without a person (`copilot`); messages, tool calls and tokens from
its event stream."""

from typing import Annotated, ClassVar

from pydantic import Field

from agentevals_action.targets.agents import copilot_stream
from agentevals_action.targets.agents.headless import AgentCli, AgentOptions, Command, Product
from agentevals_action.targets.base import Provider, ProviderContext

_PRODUCT = Product(
    name="Copilot",
    package="npm install -g @github/copilot",
    key_hint="name COPILOT_GITHUB_TOKEN in the workflow's input `env` (GITHUB_TOKEN is never "
    "passed on), and check `model`",
    read=copilot_stream.read,
)


class CopilotCli(AgentOptions):
    """GitHub Copilot without a person."""

    provider: ClassVar[str] = "copilot-cli"

    command: Annotated[
        Command, Field(description="The program, with words before its options if it needs any.")
    ] = "copilot"

    def connect(self, context: ProviderContext) -> Provider:
        """The agent with its environment; AttemptError if it names a variable that the workflow
        does not pass on."""
        # With a prompt on standard input, and not as `-p`, it runs without a person.
        words = ["--output-format", "json", "--no-color", "--no-ask-user"]
        words += ["--model", self.model] if self.model else []
        return AgentCli(_PRODUCT, self, words, context)
