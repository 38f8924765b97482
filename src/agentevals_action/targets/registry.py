"""The registry of providers: one file and one line each."""

from agentevals_action import targets
from agentevals_action.model.target import Target
from agentevals_action.system.registry import Registry

#: The module in this package, and in it the class, of every provider by its name with `_` for `-`.
_CLASSES = {
    "anthropic": ("models.anthropic", "Anthropic"),
    "azure": ("models.azure", "Azure"),
    "claude_cli": ("agents.claude", "ClaudeCli"),
    "cli": ("programs.cli", "Cli"),
    "codex_cli": ("agents.codex", "CodexCli"),
    "copilot_cli": ("agents.copilot", "CopilotCli"),
    "gemini": ("models.gemini", "Gemini"),
    "gemini_cli": ("agents.gemini", "GeminiCli"),
    "http": ("programs.http", "Http"),
    "mock": ("mock", "Mock"),
    "openai": ("models.openai", "OpenAI"),
    "python": ("programs.python", "Python"),
    "replay": ("replay", "Replay"),
}

_ALIASES = {
    "azure_openai": "azure",
    "claude": "claude_cli",
    "claude_code": "claude_cli",
    "codex": "codex_cli",
    "copilot": "copilot_cli",
    "google": "gemini",
    "google_gemini": "gemini",
}

PROVIDERS: Registry[type[Target]] = Registry(targets.__name__, _CLASSES, _ALIASES)
