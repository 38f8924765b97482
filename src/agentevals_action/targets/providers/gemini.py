"""`gemini`: a model behind Google's Gemini API, or a compatible server."""

import re
from collections.abc import Mapping, Sequence
from typing import Any, ClassVar
from urllib.parse import quote

from pydantic import Field
from pydantic.alias_generators import to_snake

from agentevals_action.model.messages import Message
from agentevals_action.model.target import Provider, ProviderContext
from agentevals_action.targets.formats import gemini
from agentevals_action.targets.http.client import HttpClient
from agentevals_action.targets.http.model_api import ModelApi, ModelTarget

DEFAULT_VERSION = "v1beta"
_VERSIONED = re.compile(r"/v[0-9]+[a-z0-9]*$")
#: Fields at the top level of a request; all others belong to `generationConfig`.
#: https://ai.google.dev/api/generate-content#request-body
_NAMES = ("tools", "toolConfig", "safetySettings", "cachedContent", "serviceTier", "store")
_TOP_LEVEL = {spelling: name for name in _NAMES for spelling in (name, to_snake(name))}


class Gemini(ModelTarget):
    """A model behind Google's Gemini API, or a compatible server."""

    provider: ClassVar[str] = "gemini"
    key_variable: ClassVar[str] = "GEMINI_API_KEY"
    vendor_url: ClassVar[str] = "https://generativelanguage.googleapis.com"
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

    def connect(self, context: ProviderContext) -> Provider:
        """The model, with the given key or the usual variable's."""
        key = self.key(context)
        version = "" if _VERSIONED.search(self.url) else f"{DEFAULT_VERSION}/"
        headers = {"x-goog-api-key": key} if key else {}
        service = self.service(f"{self.url}/{version}", key, headers)
        name = self.model if "/" in self.model else f"models/{self.model}"
        path = f"{quote(name)}:generateContent"
        client = HttpClient(service)
        return ModelApi(client, path, self._body, gemini.read_reply, "generationConfig")

    def _body(self, messages: Sequence[Message]) -> dict[str, Any]:
        config = self.config.items()
        generation = {name: value for name, value in config if name not in _TOP_LEVEL}
        return {
            **{_TOP_LEVEL[name]: value for name, value in config if name in _TOP_LEVEL},
            **({"generationConfig": generation} if generation else {}),
            **gemini.to_wire(messages, self.model),
        }
