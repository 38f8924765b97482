"""`codex-cli`: Codex without a person (`codex exec`)."""

import json
from collections.abc import Mapping, Sequence
from typing import ClassVar

from pydantic import Field

from agentevals_action.model.validation.file_model import NonEmpty
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
        refused=codex_stream.REFUSED,
    )

    command: Command = Field(
        "codex", description="The program, with words before `exec` if it needs any."
    )
    model_reasoning_effort: NonEmpty | None = Field(
        None, description="How long the model thinks, as `low`, `medium` or `high`."
    )

    def flags(self) -> Mapping[str, str | None]:
        """The model, and the effort as a setting of its configuration."""
        effort = self.model_reasoning_effort and json.dumps(self.model_reasoning_effort)
        return {**super().flags(), "-c": effort and f"model_reasoning_effort={effort}"}

    def system_words(self, text: str) -> Sequence[str]:
        """`developer_instructions` of its configuration, which it adds to its own instructions."""
        if any("developer_instructions" in word for word in self.args):
            return ()
        # A string of JSON is one of TOML, except for DEL.
        value = json.dumps(text, ensure_ascii=False).replace("\x7f", "\\u007f")
        return "-c", f"developer_instructions={value}"
