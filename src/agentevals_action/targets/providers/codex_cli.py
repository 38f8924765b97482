"""`codex-cli`: Codex without a person (`codex exec`)."""

from typing import ClassVar

from pydantic import Field

from agentevals_action.targets.agents import codex_stream
from agentevals_action.targets.agents.headless import AgentOptions, Command, Product


class CodexCli(AgentOptions):
    """Codex without a person."""

    provider: ClassVar[str] = "codex-cli"
    aliases: ClassVar[tuple[str, ...]] = ("codex",)
    product: ClassVar[Product] = Product(
        name="Codex",
        package="npm install -g @openai/codex",
        key_hint="name CODEX_API_KEY in the workflow's input `env`, and check `model`",
        read=codex_stream.read,
        # A workspace need not be a git repository. The sandbox is the agent's default, read-only,
        # unless `args` says otherwise.
        words=("exec", "--json", "--color", "never", "--skip-git-repo-check"),
        last=("-",),
        fatal=codex_stream.fatal,
    )

    command: Command = Field(
        "codex", description="The program, with words before `exec` if it needs any."
    )
