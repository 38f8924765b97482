"""`claude-cli`: Claude Code without a person (`claude -p`), its stream read into messages, tool
calls, tokens and cost."""

from collections.abc import Mapping, Sequence
from typing import Annotated, ClassVar

from msgspec import Meta

from agentevals_action.system.paths import Folder
from agentevals_action.targets import base
from agentevals_action.targets.agents import claude_stream
from agentevals_action.targets.agents import headless as agent_cli

_PRODUCT = agent_cli.Product(
    name="Claude Code",
    package="npm install -g @anthropic-ai/claude-code",
    key_hint="name ANTHROPIC_API_KEY (or CLAUDE_CODE_OAUTH_TOKEN) in the workflow's input `env`, and check `model`",
    read=claude_stream.read,
)


class ClaudeCli(agent_cli.Fields, base.ProviderOptions):
    """Claude Code without a person."""

    provider: ClassVar[str] = "claude-cli"
    spellings: ClassVar[Mapping[str, tuple[str, ...]]] = {
        "command": ("executable", "binary"),
        "args": ("arguments",),
    }

    command: Annotated[
        agent_cli.Command,
        Meta(description="The program, with words before its options if it needs any."),
    ] = "claude"
    system_prompt: Annotated[
        str | None, Meta(description="In place of the agent's own system prompt.")
    ] = None
    append_system_prompt: Annotated[
        str | None, Meta(description="Behind the agent's own system prompt.")
    ] = None
    max_turns: Annotated[
        Annotated[int, Meta(ge=1)] | None,
        Meta(description="Turns after which it stops, which is an error."),
    ] = None

    def connect(self, surroundings: base.ProviderContext) -> base.Provider:
        """The agent with its environment; AttemptError when it names a variable that the workflow
        does not let through."""
        words = [
            "-p",
            "--output-format",
            "stream-json",
            "--verbose",
        ]  # the stream is refused without the last
        words += ["--model", self.model] if self.model else []
        words += ["--max-turns", str(self.max_turns)] if self.max_turns else []
        words += ["--system-prompt", self.system_prompt] if self.system_prompt else []
        words += (
            ["--append-system-prompt", self.append_system_prompt]
            if self.append_system_prompt
            else []
        )
        return agent_cli.AgentCli(_PRODUCT, self, words, surroundings)

    def variables(self) -> Sequence[str]:
        """The names of `env`: the agent was told to expect them."""
        return self.env or ()

    def files(self, folder: Folder) -> Sequence[str]:
        """Words of the command that are files of the repository."""
        return self.named_files(folder)
