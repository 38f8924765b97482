"""`gemini`: a model behind Google's Gemini API, or a compatible server.

https://ai.google.dev/api/generate-content
"""

import re
from collections.abc import Iterator, Mapping, Sequence
from typing import Any, ClassVar
from urllib.parse import quote

from pydantic import Field
from pydantic.alias_generators import to_snake

from agentevals_action.model.messages import Message, Picture
from agentevals_action.model.trace import Trace
from agentevals_action.targets.dialects import requests
from agentevals_action.targets.dialects.blocks import (
    objects,
    optional_text,
    read_gemini_parts,
    trace_of_call,
)
from agentevals_action.targets.dialects.usage import read_usage
from agentevals_action.targets.models.model_api import ModelTarget
from agentevals_action.validation.json_values import as_object, decode_json

DEFAULT_VERSION = "v1beta"
_VERSIONED = re.compile(r"/v[0-9]+[a-z0-9]*$")
#: Fields at the top level of a request; all others belong to `generationConfig`.
#: https://ai.google.dev/api/generate-content#request-body
_NAMES = ("tools", "toolConfig", "safetySettings", "cachedContent", "serviceTier", "store")
_TOP_LEVEL = {spelling: name for name in _NAMES for spelling in (name, to_snake(name))}
#: From Gemini 3 on, a function call without the model's signature is refused. This value replaces
#: it in a history that the model did not produce.
#: https://ai.google.dev/gemini-api/docs/thought-signatures#faqs
FOREIGN_CALL = "skip_thought_signature_validator"
_UNSIGNED = re.compile(r"(?:.*/)?gemini-[12]\b")
_STOPPED = frozenset({
    "SAFETY", "RECITATION", "LANGUAGE", "BLOCKLIST", "PROHIBITED_CONTENT", "SPII",
    "MALFORMED_FUNCTION_CALL", "UNEXPECTED_TOOL_CALL",
})  # fmt: skip


class Gemini(ModelTarget):
    """A model behind Google's Gemini API, or a compatible server."""

    provider: ClassVar[str] = "gemini"
    key_variable: ClassVar[str] = "GEMINI_API_KEY"
    vendor_url: ClassVar[str] = "https://generativelanguage.googleapis.com"
    around_temperature: ClassVar[str] = "generationConfig"
    reserved: ClassVar[Mapping[str, str]] = {
        "model": "use the field `model`",
        **dict.fromkeys(("systemInstruction", "system_instruction"), "write a system message"),
        **dict.fromkeys(("contents", "candidateCount", "candidate_count"), "leave it out"),
        **dict.fromkeys(
            ("generationConfig", "generation_config"), "write its fields into `config` itself"
        ),
    }

    config: dict[str, Any] = Field(
        default_factory=dict,
        description="Fields of the request, passed on unchanged: those of generationConfig "
        "(temperature, maxOutputTokens, …), and tools, toolConfig, safetySettings, "
        "cachedContent, serviceTier, store.",
    )

    @property
    def address(self) -> str:
        """The URL of content that the model generates."""
        version = "" if _VERSIONED.search(self.url) else f"/{DEFAULT_VERSION}"
        name = self.model if "/" in self.model else f"models/{self.model}"
        return f"{self.url}{version}/{quote(name)}:generateContent"

    def headers(self, key: str) -> Mapping[str, str]:
        """The key."""
        return {"x-goog-api-key": key} if key else {}

    def to_wire(self, messages: Sequence[Message]) -> dict[str, Any]:
        """A request; ValueError if something cannot be sent. The format has no field for names of
        participants."""
        config = self.config.items()
        generation = {name: value for name, value in config if name not in _TOP_LEVEL}
        return {
            **{_TOP_LEVEL[name]: value for name, value in config if name in _TOP_LEVEL},
            **({"generationConfig": generation} if generation else {}),
            **_conversation(messages, self.model),
        }

    def from_wire(self, data: Any) -> Trace:
        """The trace of generated content without its thoughts, with the code that the vendor ran as
        tool calls; ValueError if it is not that, was blocked or stopped, or has no content."""
        reply = as_object(data)
        candidates = objects(reply, "candidates")
        if not candidates:
            if reason := as_object(reply.get("promptFeedback")).get("blockReason"):
                raise ValueError(f"the vendor blocked the prompt ({reason})")
            raise ValueError("the reply is not generated content: `candidates[0]` is missing")
        reason = optional_text(candidates[0].get("finishReason"))
        details = optional_text(candidates[0].get("finishMessage"))
        # The vendor adds reasons: content with one that is not known is an answer.
        if reason in _STOPPED:
            stopped = f"the vendor stopped the reply ({reason})"
            raise ValueError(": ".join(filter(None, [stopped, details])))
        parts = objects(as_object(candidates[0].get("content")), "parts")
        read = read_gemini_parts(parts)
        if read.is_empty:
            advice = "; raise `maxOutputTokens` in `config`" if reason == "MAX_TOKENS" else ""
            problem = f"the reply is empty (finishReason {reason!r})"
            raise ValueError(f"{': '.join(filter(None, [problem, details]))}{advice}")
        usage = read_usage(reply.get("usageMetadata"))
        return trace_of_call([read], usage, reply.get("modelVersion"))


def _conversation(messages: Sequence[Message], model: str) -> dict[str, Any]:
    """The fields `systemInstruction` and `contents` of a request to a model."""
    linked = requests.link_calls(messages)
    system = requests.system_text(linked)
    contents = []
    for side, turn in requests.turns(linked):
        parts = [part for message in turn for part in _wire_parts(message)]
        first = next((part for part in parts if "functionCall" in part), None)
        if first is not None and not _UNSIGNED.match(model):
            first["thoughtSignature"] = FOREIGN_CALL
        contents.append({"role": "model" if side == "assistant" else "user", "parts": parts})
    if not system:
        return {"contents": contents}
    return {"systemInstruction": {"parts": [{"text": system}]}, "contents": contents}


def _wire_parts(message: Message) -> Iterator[dict[str, Any]]:
    parts = requests.parts(message, ("user",))
    if message.role == "tool":
        call_id, name = message.tool_call_id, message.name
        if name is None:
            raise ValueError(
                f"the tool message for {call_id} answers no tool call before it, and has no name"
            )
        text = "\n".join(str(part) for part in parts)
        data = decode_json(text)
        response = data if isinstance(data, dict) else {"output": text}
        yield {"functionResponse": {"id": call_id, "name": name, "response": response}}
        return
    for part in parts:
        if isinstance(part, Picture):
            yield {"inlineData": {"mimeType": part.media_type, "data": part.data}}
        else:
            yield {"text": part}
    for call in message.tool_calls:
        arguments = requests.arguments(call)
        yield {"functionCall": {"id": call.id, "name": call.name, "args": arguments}}
