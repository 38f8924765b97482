"""The registry of providers: one file and one line each."""

from collections.abc import Iterator, Mapping
from importlib import import_module

from agentevals_action.model.target import Target

#: The class of every provider by its module in this folder, which has the provider's name with `_`
#: for `-`.
_CLASSES = {
    "anthropic": "Anthropic",
    "azure": "Azure",
    "claude_cli": "ClaudeCli",
    "cli": "Cli",
    "codex_cli": "CodexCli",
    "copilot_cli": "CopilotCli",
    "gemini": "Gemini",
    "gemini_cli": "GeminiCli",
    "http": "Http",
    "mock": "Mock",
    "openai": "OpenAI",
    "python": "Python",
    "replay": "Replay",
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
        class_name = _CLASSES[name]
        found: type[Target] = getattr(import_module(f"{__name__}.{name}"), class_name)
        return found

    def __iter__(self) -> Iterator[str]:
        return iter(_CLASSES)

    def __len__(self) -> int:
        return len(_CLASSES)


PROVIDERS: Mapping[str, type[Target]] = _Providers()
