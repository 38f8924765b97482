"""The registry of providers: one file and one line each."""

from collections.abc import Iterator, Mapping
from importlib import import_module

from agentevals_action import targets
from agentevals_action.model.target import Target

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

#: Other names of providers.
ALIASES = {
    "azure_openai": "azure",
    "claude": "claude_cli",
    "claude_code": "claude_cli",
    "codex": "codex_cli",
    "copilot": "copilot_cli",
    "google": "gemini",
    "google_gemini": "gemini",
}


class _Providers(Mapping[str, type[Target]]):
    """The classes by name, each imported when it is looked up: together they import the clients of
    HTTP and of OpenTelemetry, which take longer than the check of a suite."""

    def __getitem__(self, name: str) -> type[Target]:
        module, class_name = _CLASSES[name]
        found: type[Target] = getattr(import_module(f"{targets.__name__}.{module}"), class_name)
        return found

    def __iter__(self) -> Iterator[str]:
        return iter(_CLASSES)

    def __len__(self) -> int:
        return len(_CLASSES)


PROVIDERS: Mapping[str, type[Target]] = _Providers()
