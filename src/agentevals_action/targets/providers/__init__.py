"""The registry of providers: one file and one line each."""

from collections.abc import Mapping

from agentevals_action.model.target import Target
from agentevals_action.targets.providers.anthropic import Anthropic
from agentevals_action.targets.providers.azure import Azure
from agentevals_action.targets.providers.claude_cli import ClaudeCli
from agentevals_action.targets.providers.cli import Cli
from agentevals_action.targets.providers.codex_cli import CodexCli
from agentevals_action.targets.providers.copilot_cli import CopilotCli
from agentevals_action.targets.providers.gemini import Gemini
from agentevals_action.targets.providers.gemini_cli import GeminiCli
from agentevals_action.targets.providers.http import Http
from agentevals_action.targets.providers.mock import Mock
from agentevals_action.targets.providers.openai import OpenAI
from agentevals_action.targets.providers.python import Python
from agentevals_action.targets.providers.replay import Replay

#: The class of the targets of every provider by its name, with `_` for `-`.
PROVIDERS: Mapping[str, type[Target]] = {
    "anthropic": Anthropic,
    "azure": Azure,
    "claude_cli": ClaudeCli,
    "cli": Cli,
    "codex_cli": CodexCli,
    "copilot_cli": CopilotCli,
    "gemini": Gemini,
    "gemini_cli": GeminiCli,
    "http": Http,
    "mock": Mock,
    "openai": OpenAI,
    "python": Python,
    "replay": Replay,
}

#: The same with the aliases of each provider.
PROVIDERS_BY_NAME: Mapping[str, type[Target]] = {
    name: model for key, model in PROVIDERS.items() for name in (key, *model.aliases)
}
