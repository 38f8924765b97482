"""The registry of the formats of results: one file and one line each."""

from collections.abc import Mapping

from agentevals_action.runners.formats.agentevals import OwnResults
from agentevals_action.runners.formats.agentv import AgentvResults
from agentevals_action.runners.formats.base import Format
from agentevals_action.runners.formats.inspect_ai import InspectResults
from agentevals_action.runners.formats.junit import JunitResults
from agentevals_action.runners.formats.promptfoo import PromptfooResults

_FORMATS: tuple[Format, ...] = (
    PromptfooResults(),
    JunitResults(),
    InspectResults(),
    AgentvResults(),
    OwnResults(),
)

#: Every format by the name that `results` has, in the order of the documentation.
FORMATS: Mapping[str, Format] = {each.name: each for each in _FORMATS}
