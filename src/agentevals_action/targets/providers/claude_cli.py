"""`claude-cli`: Claude Code without a person (`claude -p`)."""

from collections.abc import Mapping, Sequence
from typing import Annotated, ClassVar

from pydantic import Field

from agentevals_action.model.validation.file_model import NonEmpty
from agentevals_action.targets.agents import claude_stream
from agentevals_action.targets.agents.headless import AgentOptions, Command, Product


class ClaudeCli(AgentOptions):
    """Claude Code without a person."""

    provider: ClassVar[str] = "claude-cli"
    aliases: ClassVar[tuple[str, ...]] = ("claude", "claude_code")
    product: ClassVar[Product] = Product(
        name="Claude Code",
        package="npm install -g @anthropic-ai/claude-code",
        key_hint="name ANTHROPIC_API_KEY (or CLAUDE_CODE_OAUTH_TOKEN) in the workflow's input "
        "`env`, and check `model`",
        read=claude_stream.read,
        words=("-p", "--output-format", "stream-json", "--verbose"),  # refused without --verbose
    )

    command: Command = "claude"
    system_prompt: NonEmpty | None = Field(
        None, description="Replaces the agent's own system prompt."
    )
    append_system_prompt: str | None = Field(
        None, description="Appended to the agent's own system prompt."
    )
    max_turns: Annotated[int, Field(ge=1)] | None = Field(
        None, description="Turns after which it stops, which is an error."
    )

    def flags(self) -> Mapping[str, str | None]:
        """The options of the program with their values, if they have one."""
        return {
            "--model": self.model,
            "--max-turns": str(self.max_turns) if self.max_turns else None,
            "--system-prompt": self.system_prompt,
            "--append-system-prompt": self.append_system_prompt,
        }

    def first_message(self) -> None:
        """None: `system_prompt` is an option of its own."""

    def system_words(self, text: str) -> Sequence[str]:
        """`--append-system-prompt`, of which the last one counts."""
        if any(word.startswith("--append-system-prompt") for word in self.args):
            return ()
        own = self.append_system_prompt
        return "--append-system-prompt", f"{own}\n\n{text}" if own else text
