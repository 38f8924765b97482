"""An agent that is a function: it answers `echo X` with X."""

from collections.abc import Mapping, Sequence
from typing import Any


def answer(messages: Sequence[Mapping[str, Any]]) -> str:
    return str(messages[-1]["content"]).removeprefix("echo ")
