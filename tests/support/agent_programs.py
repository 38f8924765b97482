"""Runs of command-line agents against a stand-in that prints recorded streams."""

import json
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import Any

import pytest

from agentevals_action.errors import AttemptError
from agentevals_action.model.messages import Message
from agentevals_action.model.trace import Trace
from tests.support import targets

#: What the real programs wrote; Gemini's are shortened.
STREAMS = Path(__file__).resolve().parents[1] / "data/streams"
_STAND_IN = Path(__file__).with_name("agent_stand_in.sh")
#: The recording of each agent in which its key is wrong.
_REFUSALS = {
    "claude": "raw-claude-E401",
    "codex": "raw-codex-H401",
    "copilot": "raw-copilot-E401",
    "gemini": "gemini-KEY",
}


def recorded(name: str) -> str:
    """A recorded stream."""
    return (STREAMS / f"{name}.jsonl").read_text()


def answer_stream(name: str, text: str) -> str:
    """A stream in which an agent (`claude`, `codex`, `copilot`, `gemini`) answers at once."""
    return recorded(f"{name}-PONG").replace('"pong"', json.dumps(text))


def lines(*events: Mapping[str, Any]) -> str:
    """A stream of these events."""
    return "".join(json.dumps(event, ensure_ascii=False) + "\n" for event in events)


def program(name: str) -> list[str]:
    """The words that start the stand-in of an agent."""
    streams = (STREAMS / f"{stem}.jsonl" for stem in (f"{name}-PONG", _REFUSALS[name]))
    return ["sh", str(_STAND_IN), *map(str, streams)]


@dataclass(frozen=True)
class AgentRun:
    """One agent in a folder; `allowed` are variables that the workflow lets through."""

    name: str
    root: Path
    allowed: Mapping[str, str] = field(default_factory=dict)
    withheld: tuple[str, ...] = ()

    def answer(
        self, *messages: Message | str, request: Mapping[str, Any] | None = None, **fields: Any
    ) -> Trace:
        """The trace of a run; without messages the prompt is `echo hello`."""
        definition = {"provider": f"{self.name}-cli", "command": program(self.name), **fields}
        around = targets.context(self.allowed, withheld=self.withheld)
        asked = messages or ("echo hello",)
        return targets.ask(definition, self.root, *asked, around=around, **(request or {}))

    def refused(
        self, *messages: Message | str, request: Mapping[str, Any] | None = None, **fields: Any
    ) -> AttemptError:
        """The error of a run."""
        with pytest.raises(AttemptError) as caught:
            self.answer(*messages, request=request, **fields)
        return caught.value

    def printing(self, stream: str, code: int = 0, says: str = "", events: str = "") -> "AgentRun":
        """The same agent, which prints this stream whatever it is asked; Copilot writes `events` to
        its file."""
        path, more = self.root / "stream.jsonl", self.root / "events.jsonl"
        path.write_text(stream)
        more.write_text(events)
        script = {"STAND_IN_STREAM": str(path), "STAND_IN_EXIT": str(code), "STAND_IN_SAYS": says}
        script |= {"STAND_IN_EVENTS": str(more)} if events else {}
        return self._with(script)

    def seen(
        self, *messages: Message | str, request: Mapping[str, Any] | None = None, **fields: Any
    ) -> "Seen":
        """What the program saw."""
        folder = self.root / "seen"
        folder.mkdir(exist_ok=True)
        self._with({"STAND_IN_SEEN": str(folder)}).answer(*messages, request=request, **fields)

        def read(name: str) -> str:
            return (folder / name).read_bytes().decode("utf-8", "surrogateescape")

        variables = (pair.partition("=") for pair in read("environment").split("\0") if pair)
        return Seen(
            read("words").split("\0")[:-1],
            read("prompt"),
            read("cwd").strip(),
            {name: value for name, _, value in variables},
        )

    def _with(self, variables: Mapping[str, str]) -> "AgentRun":
        return replace(self, allowed={**self.allowed, **variables})


@dataclass(frozen=True)
class Seen:
    """What a program saw."""

    words: Sequence[str]
    prompt: str
    cwd: str
    environment: Mapping[str, str]
