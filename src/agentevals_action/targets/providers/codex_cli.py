"""`codex-cli`: Codex without a person (`codex exec`), its stream read into messages, tool calls and
tokens."""

from collections.abc import Mapping, Sequence
from typing import Annotated, ClassVar

from msgspec import Meta

from agentevals_action.system.paths import Folder
from agentevals_action.targets import base
from agentevals_action.targets.agents import codex_stream
from agentevals_action.targets.agents import headless as agent_cli

_PRODUCT = agent_cli.Product(
    name="Codex",
    package="npm install -g @openai/codex",
    key_hint="name CODEX_API_KEY in the workflow's input `env`, and check `model`",
    read=codex_stream.read,
)


class CodexCli(agent_cli.Fields, base.ProviderOptions):
    """Codex without a person."""

    provider: ClassVar[str] = "codex-cli"
    spellings: ClassVar[Mapping[str, tuple[str, ...]]] = {
        "command": ("executable", "binary"),
        "args": ("arguments",),
    }

    command: Annotated[
        agent_cli.Command,
        Meta(description="The program, with words before `exec` if it needs any."),
    ] = "codex"

    def connect(self, surroundings: base.ProviderContext) -> base.Provider:
        """The agent with its environment; AttemptError when it names a variable that the workflow
        does not let through."""
        # A workspace need not be a git repository. The sandbox is the agent's own default,
        # read-only, unless `args` says more.
        words = ["exec", "--json", "--color", "never", "--skip-git-repo-check"]
        words += ["--model", self.model] if self.model else []
        return agent_cli.AgentCli(_PRODUCT, self, words, surroundings, last=("-",))

    def variables(self) -> Sequence[str]:
        """The names of `env`: the agent was told to expect them."""
        return self.env or ()

    def files(self, folder: Folder) -> Sequence[str]:
        """Words of the command that are files of the repository."""
        return self.named_files(folder)
