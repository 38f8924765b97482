"""`gemini-cli`: Gemini CLI without a person (`gemini`)."""

from typing import ClassVar

from agentevals_action.targets.agents import gemini_stream
from agentevals_action.targets.agents.headless import AgentOptions, Command, Product


class GeminiCli(AgentOptions):
    """Gemini CLI without a person."""

    provider: ClassVar[str] = "gemini-cli"
    product: ClassVar[Product] = Product(
        name="Gemini CLI",
        package="npm install -g @google/gemini-cli",
        key_hint="name GEMINI_API_KEY in the workflow's input `env`, and check `model`",
        read=gemini_stream.read,
        # Without a person it refuses a folder that nobody trusted before.
        words=("--output-format", "stream-json", "--skip-trust"),
    )

    command: Command = "gemini"
