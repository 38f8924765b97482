"""Records what a real MCP server answers to an agent, as entries of a suite."""

import json
from collections.abc import Callable, Iterable, Mapping, Sequence
from functools import partial
from typing import Any

from agentevals_action.formatting import quoted
from agentevals_action.model.tools import (
    DEFAULT_SERVER,
    OTHERS,
    Tool,
    ToolEntry,
    ToolReply,
    ToolServer,
)
from agentevals_action.system.redaction import MASK, looks_secret
from agentevals_action.system.workers import WorkerEnded
from agentevals_action.tools.server_list import ServerError, StdioServer
from agentevals_action.validation.json_values import as_object, decode_json

#: The reply of the tools that were not called: an agent that calls one is scored.
_OTHERWISE = {"error": "this tool has no recorded reply"}
_NO_TEXT = "an error without a text"


class Recording:
    """What a server answers to agents that know it as `name`, and the list of its tools.
    `notices` are sentences about what the entries do not have; `ended` is the end of the server
    during a call."""

    def __init__(self, server: StdioServer, name: str, listed: Iterable[Tool]) -> None:
        self._server, self._name = server, name
        self._tools = [
            tool.model_copy(update={"server_name": name, "ask": partial(self._ask, tool)})
            for tool in sorted(listed, key=lambda tool: tool.name)
        ]
        #: The arguments and the answers, by the tool and the JSON of the arguments.
        self._calls: dict[tuple[str, str], tuple[Mapping[str, Any], list[Any]]] = {}
        self.notices: dict[str, None] = {}
        self.ended: WorkerEnded | None = None

    @property
    def has_answers(self) -> bool:
        """Whether the server answered a call."""
        return bool(self._calls)

    def replace_lists(self, entries: Iterable[ToolEntry]) -> tuple[ToolEntry, ...]:
        """The tools of a test, with the server's tools in place of saved lists. What the suite
        declares or replies itself stays."""
        return (*self._tools, *(entry for entry in entries if not self._is_replaced(entry)))

    def _is_replaced(self, entry: ToolEntry) -> bool:
        if isinstance(entry, Tool) and entry.name == OTHERS:
            return entry.server_name in (None, self._name)
        if isinstance(entry, Tool) and not entry.is_listed:
            return False
        return isinstance(entry, Tool | ToolServer) and entry.server == self._name

    def listing(self) -> str:
        """The file with the list of the tools."""
        tools = [tool.listing() for tool in self._tools]
        return json.dumps({"tools": tools}, indent=2, ensure_ascii=False) + "\n"

    def add_entries(self, existing: Sequence[Mapping[str, Any]]) -> list[Mapping[str, Any]]:
        """The entries of a file and of the calls, by the names of the tools. The file's entries
        stay. Different answers to one call are `in_turn`."""
        server = {} if self._name == DEFAULT_SERVER else {"in": self._name}
        entries: dict[str, dict[str, Any]] = {OTHERS: {**server, "replies": [_OTHERWISE]}}
        entries |= {str(entry.get("name")): dict(entry) for entry in existing}
        # A call with more arguments first: a reply with fewer conditions fits it, too.
        for name, key in sorted(self._calls, key=lambda call: (call[0], -len(call[1]), call[1])):
            when, answers = self._calls[name, key]
            entry = entries.setdefault(name, dict(server))
            replies = entry["replies"] = [*(entry.get("replies") or ())]
            if any(_key(reply.get("when")) == key for reply in replies):
                continue
            is_same = all(answer == answers[0] for answer in answers)
            result = answers[0] if is_same else {"in_turn": answers}
            otherwise = (
                index for index, reply in enumerate(replies) if not {"when", "matches"} & {*reply}
            )
            condition = {"when": when} if when else {}
            replies.insert(next(otherwise, len(replies)), {**condition, **result})
        return [{"name": name, **entries[name]} for name in sorted(entries)]

    async def _ask(
        self, tool: Tool, arguments: Mapping[str, Any], hide: Callable[[Any], Any]
    ) -> ToolReply:
        """The answer of the server, as the entry will give it."""
        call = {"name": tool.name, "arguments": dict(arguments)}
        try:
            answer = _masked(self._read(tool, await self._server.ask("tools/call", call)))
        except ServerError as error:
            answer = {"error": str(error) or _NO_TEXT}
        except WorkerEnded as error:
            self.ended = error
            return ToolReply(error=str(error))
        when = hide(_masked(arguments))
        _, answers = self._calls.setdefault((tool.name, _key(when)), (when, []))
        answers.append(hide(answer))
        return ToolReply.model_validate(answer)

    def _read(self, tool: Tool, result: Mapping[str, Any]) -> dict[str, Any]:
        blocks = [as_object(block) for block in result.get("content") or ()]
        texts = [block["text"] for block in blocks if isinstance(block.get("text"), str)]
        if len(texts) < len(blocks):
            what = f"what is no text in answers of {quoted(tool.name)} is left out"
            self.notices[what] = None
        text = "\n".join(texts)
        if result.get("isError"):
            return {"error": text or _NO_TEXT}
        structured = result.get("structuredContent")
        value = structured if isinstance(structured, Mapping) else decode_json(text)
        return {"reply": value if isinstance(value, Mapping | list) else text}


def _key(when: Any) -> str:
    return json.dumps(when or {}, sort_keys=True, ensure_ascii=False, default=str)


def _masked(value: Any, name: str = "") -> Any:
    """JSON data in which each text under a name that looks secret is masked."""
    if isinstance(value, Mapping):
        return {key: _masked(item, key) for key, item in value.items()}
    if isinstance(value, list):
        return [_masked(item, name) for item in value]
    return MASK if isinstance(value, str) and looks_secret(name) else value
