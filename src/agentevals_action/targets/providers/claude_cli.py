"""`claude-cli`: Claude Code without a person (`claude -p`); messages, tool calls, tokens and cost
from its event stream."""

from typing import Annotated, ClassVar

from pydantic import Field

from agentevals_action.targets.agents import claude_stream
from agentevals_action.targets.agents.headless import AgentCli, AgentOptions, Command, Product
from agentevals_action.targets.base import Provider, ProviderContext

_PRODUCT = Product(
    name="Claude Code",
    package="npm install -g @anthropic-ai/claude-code",
    key_hint="name ANTHROPIC_API_KEY (or CLAUDE_CODE_OAUTH_TOKEN) in the workflow's input `env`, "
    "and check `model`",
    read=claude_stream.read,
)


class ClaudeCli(AgentOptions):
    """Claude Code without a person."""

    provider: ClassVar[str] = "claude-cli"

    command: Annotated[
        Command, Field(description="The program, with words before its options if it needs any.")
    ] = "claude"
    system_prompt: Annotated[
        str | None, Field(description="Replaces the agent's own system prompt.")
    ] = None
    append_system_prompt: Annotated[
        str | None, Field(description="Appended to the agent's own system prompt.")
    ] = None
    max_turns: Annotated[
        Annotated[int, Field(ge=1)] | None,
        Field(description="Turns after which it stops, which is an error."),
    ] = None

    def connect(self, context: ProviderContext) -> Provider:
        """The agent with its environment; AttemptError if it names a variable that the workflow
        does not pass on."""
        # The stream is refused without --verbose.
        words = ["-p", "--output-format", "stream-json", "--verbose"]
        values = {
            "--model": self.model,
            "--max-turns": str(self.max_turns) if self.max_turns else None,
            "--system-prompt": self.system_prompt,
            "--append-system-prompt": self.append_system_prompt,
        }
        for option, value in values.items():
            words += [option, value] if value else []
        return AgentCli(_PRODUCT, self, words, context)
