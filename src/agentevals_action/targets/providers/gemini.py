"""`gemini`: a model behind Google's Gemini API, or a compatible server."""

import re
from collections.abc import Sequence
from typing import Any, ClassVar
from urllib.parse import quote

from pydantic import Field, field_validator
from pydantic.alias_generators import to_snake

from agentevals_action.model.suite import Message
from agentevals_action.targets.apis import model_api
from agentevals_action.targets.apis.gemini_contents import conversation, read_content
from agentevals_action.targets.base import Provider, ProviderContext

DEFAULT_URL = "https://generativelanguage.googleapis.com"
DEFAULT_VERSION = "v1beta"
_VERSIONED = re.compile(r"/v[0-9]+[a-z0-9]*$")
#: Fields at the top level of a request; all others belong to `generationConfig`.
#: https://ai.google.dev/api/generate-content#request-body
_NAMES = ("tools", "toolConfig", "safetySettings", "cachedContent", "serviceTier", "store")
_TOP_LEVEL = {spelling: name for name in _NAMES for spelling in (name, to_snake(name))}
_RESERVED = {
    "model": "use the field `model`",
    "contents": "leave it out",
    **dict.fromkeys(("systemInstruction", "system_instruction"), "write a system message"),
    **dict.fromkeys(("candidateCount", "candidate_count"), "leave it out"),
    **dict.fromkeys(
        ("generationConfig", "generation_config"), "write its fields into `config` itself"
    ),
}


class Gemini(model_api.ModelOptions):
    """A model behind Google's Gemini API, or a compatible server."""

    provider: ClassVar[str] = "gemini"
    aliases: ClassVar[tuple[str, ...]] = ("google", "google_gemini")
    key_variable: ClassVar[str] = "GEMINI_API_KEY"
    vendor_url: ClassVar[str] = DEFAULT_URL

    config: dict[str, Any] = Field(
        default_factory=dict,
        description="Fields of the request, passed on unchanged: those of generationConfig "
        "(temperature, maxOutputTokens, …), and tools, toolConfig, safetySettings, "
        "cachedContent, serviceTier, store.",
    )

    @field_validator("config")
    @classmethod
    def _check_config(cls, config: dict[str, Any]) -> dict[str, Any]:
        return model_api.check_config(config, _RESERVED)

    def connect(self, context: ProviderContext) -> Provider:
        """The model, with the given key or the usual variable's."""
        key = model_api.choose_key(self, self.api_key, context)
        url = (self.base_url or self.vendor_url).rstrip("/")
        url += "/" if _VERSIONED.search(url) else f"/{DEFAULT_VERSION}/"
        service = self.service(url, key, {"x-goog-api-key": key} if key else {})
        name = self.model if "/" in self.model else f"models/{self.model}"
        path = f"{quote(name)}:generateContent"
        return model_api.ModelApi(
            service,
            model_api.WireFormat(path, self._body, read_content, "generationConfig"),
        )

    def _body(self, messages: Sequence[Message]) -> dict[str, Any]:
        config = {**self.settings("maxOutputTokens"), **self.config}.items()
        generation = {name: value for name, value in config if name not in _TOP_LEVEL}
        return {
            **{_TOP_LEVEL[name]: value for name, value in config if name in _TOP_LEVEL},
            **({"generationConfig": generation} if generation else {}),
            **conversation(messages, self.model),
        }
