"""Runs of agents' command lines against their stand-ins: a target, a stream to print, what comes of
it."""

import asyncio
import json
import os
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import Any

import pytest

from agentevals_action.errors import AttemptError
from agentevals_action.model.suite import Message
from agentevals_action.model.trace import Trace
from tests.support import agent_programs, targets

#: A program that prints a stream whatever it is asked: a shell starts faster than the stand-ins. With
#: HOLDS it then goes on without a word; TELEMETRY names a file with what Copilot writes.
_PRINTING = """\
cat > /dev/null
[ -z "$STAND_IN_TELEMETRY" ] || cp "$STAND_IN_TELEMETRY" "$COPILOT_OTEL_FILE_EXPORTER_PATH"
cat "$STAND_IN_STREAM"
printf %s "$STAND_IN_SAYS" >&2
[ -z "$STAND_IN_HOLDS" ] || exec sleep 600
exit "$STAND_IN_EXIT"
"""


@dataclass(frozen=True)
class AgentRun:
    """One agent (`claude`, `codex`, `copilot`, `gemini`) in a folder; `allowed` are variables that the
    workflow lets through, `command` are the words of another program than its stand-in."""

    name: str
    root: Path
    allowed: Mapping[str, str] = field(default_factory=dict)
    withheld: tuple[str, ...] = ()
    command: Sequence[str] = ()

    def answer(
        self, *messages: Message | str, request: Mapping[str, Any] | None = None, **fields: Any
    ) -> Trace:
        """The trace of a run; without messages the prompt is `echo hello`."""
        definition = {
            "provider": f"{self.name}-cli",
            "command": self.command or agent_programs.program(self.name),
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
        return replace(self._with(script), command=("sh", "-c", _PRINTING, self.name))

    def holding(self) -> "AgentRun":
        """The same agent, which does not end after its stream."""
        return self._with({"STAND_IN_HOLDS": "1"})

    def reporting(self, telemetry: str) -> "AgentRun":
        """The same agent, which also writes this telemetry where it is asked to."""
        path = self.root / "telemetry.jsonl"
        path.write_text(telemetry)
        return self._with({"STAND_IN_TELEMETRY": str(path)})

    def seen(
        self, *messages: Message | str, request: Mapping[str, Any] | None = None, **fields: Any
    ) -> dict[str, Any]:
        """What the program saw: its `words`, `prompt`, `cwd` and `environment`."""
        path = self.root / "seen.json"
        stand_in = replace(self._with({"STAND_IN_SEEN": str(path)}), command=())
        stand_in.answer(*messages, request=request, **fields)
        seen: dict[str, Any] = json.loads(path.read_text())
        return seen

    def _with(self, variables: Mapping[str, str]) -> "AgentRun":
        return replace(self, allowed={**self.allowed, **variables})
