"""The registry of the formats of results: one file and one line each."""

from collections.abc import Mapping

from agentevals_action.runners.formats.base import Format
from agentevals_action.system.registry import Registry

#: Every format by the name that `results` has, in the order of the documentation.
FORMATS: Mapping[str, type[Format]] = Registry(
    __name__,
    {
        "promptfoo": ("promptfoo", "PromptfooResults"),
        "junit": ("junit", "JunitResults"),
        "inspect": ("inspect_ai", "InspectResults"),
        "agentv": ("agentv", "AgentvResults"),
        "claude": ("claude", "ClaudeResults"),
        "agentevals": ("agentevals", "OwnResults"),
    },
)
