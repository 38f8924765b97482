"""The registry of the formats of results: one file and one line each."""

from collections.abc import Mapping

from agentevals_action.runners.formats.agentevals import OwnResults
from agentevals_action.runners.formats.base import Format

_FORMATS: tuple[Format, ...] = (OwnResults(),)

#: Every format by the name that `results` has, in the order of the documentation.
FORMATS: Mapping[str, Format] = {each.name: each for each in _FORMATS}
