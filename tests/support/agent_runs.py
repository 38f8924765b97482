"""Runs of agents' command lines against their stand-ins: a target, a stream to print, what comes of
it."""

import asyncio
import json
import os
from collections.abc import Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import pytest

from agentevals_action.errors import AttemptError
from agentevals_action.model.suite import Message
from agentevals_action.model.trace import Trace
from tests.support import agent_programs, targets


@dataclass(frozen=True)
class AgentRun:
    """One agent (`claude`, `codex`, `copilot`, `gemini`) in a folder; `allowed` are variables that the
    workflow lets through."""

    name: str
    root: Path
    allowed: Mapping[str, str] = field(default_factory=dict)
    withheld: tuple[str, ...] = ()

    def answer(
        self, *messages: Message | str, request: Mapping[str, Any] | None = None, **fields: Any
    ) -> Trace:
        """The trace of a run; without messages the prompt is `echo hello`."""
        definition = {
            "provider": f"{self.name}-cli",
            "command": agent_programs.program(self.name),
            **fields,
        }
        around = targets.context({"PATH": os.environ["PATH"]}, self.allowed, withheld=self.withheld)

        async def run() -> Trace:
            provider = targets.options(definition).connect(around)
            return await provider.complete(
                targets.request(self.root, *(messages or ("echo hello",)), **(request or {}))
            )

        return asyncio.run(run())

    def refused(
        self, *messages: Message | str, request: Mapping[str, Any] | None = None, **fields: Any
    ) -> AttemptError:
        """The error of a run."""
        with pytest.raises(AttemptError) as caught:
            self.answer(*messages, request=request, **fields)
        return caught.value

    def printing(self, stream: str, code: int = 0, says: str = "") -> "AgentRun":
        """The same agent, which prints this stream whatever it is asked."""
        path = self.root / "stream.jsonl"
        path.write_text(stream)
        script = {"STAND_IN_STREAM": str(path), "STAND_IN_EXIT": str(code), "STAND_IN_SAYS": says}
        return AgentRun(self.name, self.root, {**self.allowed, **script}, self.withheld)

    def holding(self) -> "AgentRun":
        """The same agent, which does not end after its stream."""
        script = {"STAND_IN_HOLDS": "1"}
        return AgentRun(self.name, self.root, {**self.allowed, **script}, self.withheld)

    def reporting(self, telemetry: str) -> "AgentRun":
        """The same agent, which also writes this telemetry where it is asked to."""
        path = self.root / "telemetry.jsonl"
        path.write_text(telemetry)
        script = {"STAND_IN_TELEMETRY": str(path)}
        return AgentRun(self.name, self.root, {**self.allowed, **script}, self.withheld)

    def seen(
        self, *messages: Message | str, request: Mapping[str, Any] | None = None, **fields: Any
    ) -> dict[str, Any]:
        """What the program saw: its `words`, `prompt`, `cwd` and `environment`."""
        path = self.root / "seen.json"
        AgentRun(
            self.name, self.root, {**self.allowed, "STAND_IN_SEEN": str(path)}, self.withheld
        ).answer(*messages, request=request, **fields)
        seen: dict[str, Any] = json.loads(path.read_text())
        return seen
