"""The providers of this version: one file each, one line each."""

from agentevals_action.providers.base import Options
from agentevals_action.providers.cli import Cli
from agentevals_action.providers.mock import Mock
from agentevals_action.providers.openai import OpenAI

_PROVIDERS: tuple[type[Options], ...] = (
    Cli,
    Mock,
    OpenAI,
)


def catalog() -> dict[str, type[Options]]:
    """The options of every provider by its name with `_` for `-`, as a target's `provider` says it in either spelling."""
    return {options.provider.replace("-", "_"): options for options in _PROVIDERS}
