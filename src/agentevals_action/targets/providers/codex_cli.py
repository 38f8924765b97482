"""`codex-cli`: Codex without a person (`codex exec`); messages, tool calls and tokens from its
event stream."""

from typing import Annotated, ClassVar

from pydantic import Field

from agentevals_action.targets.agents import codex_stream
from agentevals_action.targets.agents.headless import AgentCli, AgentOptions, Command, Product
from agentevals_action.targets.base import Provider, ProviderContext

_PRODUCT = Product(
    name="Codex",
    package="npm install -g @openai/codex",
    key_hint="name CODEX_API_KEY in the workflow's input `env`, and check `model`",
    read=codex_stream.read,
)


class CodexCli(AgentOptions):
    """Codex without a person."""

    provider: ClassVar[str] = "codex-cli"

    command: Annotated[
        Command, Field(description="The program, with words before `exec` if it needs any.")
    ] = "codex"

    def connect(self, context: ProviderContext) -> Provider:
        """The agent with its environment; AttemptError if it names a variable that the workflow
        does not pass on."""
        # A workspace need not be a git repository. The sandbox is the agent's default, read-only,
        # unless `args` says otherwise.
        words = ["exec", "--json", "--color", "never", "--skip-git-repo-check"]
        words += ["--model", self.model] if self.model else []
        return AgentCli(_PRODUCT, self, words, context, last=("-",))
