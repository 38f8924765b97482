"""The providers of this version: one file each, one line each."""

from collections.abc import Mapping

from agentevals_action.registry import Registry
from agentevals_action.targets.base import Options

#: Every provider's name with `_` for `-`, which is the name of its file, and its class.
_PROVIDERS: Mapping[str, str] = {
    "anthropic": "Anthropic",
    "azure": "Azure",
    "claude_cli": "ClaudeCli",
    "cli": "Cli",
    "codex_cli": "CodexCli",
    "copilot_cli": "CopilotCli",
    "gemini": "Gemini",
    "http": "Http",
    "mock": "Mock",
    "openai": "OpenAI",
    "replay": "Replay",
}


def catalog() -> Mapping[str, type[Options]]:
    """The options of every provider by its name with `_` for `-`, as a target's `provider` says it
    in either spelling."""
    return Registry[Options](
        __name__, {name: (name, plugin) for name, plugin in _PROVIDERS.items()}
    )
