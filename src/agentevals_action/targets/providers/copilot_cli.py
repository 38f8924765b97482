"""`copilot-cli`: GitHub Copilot without a person (`copilot`), its stream read into messages, tool
calls and tokens."""

from collections.abc import Mapping, Sequence
from typing import Annotated, ClassVar

from msgspec import Meta

from agentevals_action.system.paths import Folder
from agentevals_action.targets import base
from agentevals_action.targets.agents import copilot_stream
from agentevals_action.targets.agents import headless as agent_cli

_PRODUCT = agent_cli.Product(
    name="Copilot",
    package="npm install -g @github/copilot",
    key_hint="name COPILOT_GITHUB_TOKEN in the workflow's input `env` (GITHUB_TOKEN is never let through), and check `model`",
    read=copilot_stream.read,
)


class CopilotCli(agent_cli.Fields, base.ProviderOptions):
    """GitHub Copilot without a person."""

    provider: ClassVar[str] = "copilot-cli"
    spellings: ClassVar[Mapping[str, tuple[str, ...]]] = {
        "command": ("executable", "binary"),
        "args": ("arguments",),
    }

    command: Annotated[
        agent_cli.Command,
        Meta(description="The program, with words before its options if it needs any."),
    ] = "copilot"

    def connect(self, surroundings: base.ProviderContext) -> base.Provider:
        """The agent with its environment; AttemptError when it names a variable that the workflow
        does not let through."""
        # With a prompt on standard input, and none as `-p`, it runs without a person.
        words = ["--output-format", "json", "--no-color", "--no-ask-user"]
        words += ["--model", self.model] if self.model else []
        return agent_cli.AgentCli(_PRODUCT, self, words, surroundings)

    def variables(self) -> Sequence[str]:
        """The names of `env`: the agent was told to expect them."""
        return self.env or ()

    def files(self, folder: Folder) -> Sequence[str]:
        """Words of the command that are files of the repository."""
        return self.named_files(folder)
