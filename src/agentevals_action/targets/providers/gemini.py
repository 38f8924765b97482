"""`gemini`: a model behind Google's Gemini API, or any server that speaks it."""

import re
from collections.abc import Mapping, Sequence
from typing import Annotated, Any, ClassVar
from urllib.parse import quote

from msgspec import Meta, field

from agentevals_action.entries.entry import Seen, checks
from agentevals_action.model.suite import Message
from agentevals_action.targets import base
from agentevals_action.targets.apis import model_api
from agentevals_action.targets.apis.gemini_contents import conversation, read_content
from agentevals_action.targets.apis.http_errors import Service

DEFAULT_URL = "https://generativelanguage.googleapis.com"
DEFAULT_VERSION = "v1beta"
KEY_VARIABLE = "GEMINI_API_KEY"
_VERSIONED = re.compile(r"/v[0-9]+[a-z0-9]*$")
#: Fields of a request that stand beside `generationConfig`, not in it.
#: https://ai.google.dev/api/generate-content#request-body
_BESIDE = {
    "tools": "tools",
    "toolConfig": "toolConfig",
    "tool_config": "toolConfig",
    "safetySettings": "safetySettings",
    "safety_settings": "safetySettings",
    "cachedContent": "cachedContent",
    "cached_content": "cachedContent",
    "serviceTier": "serviceTier",
    "service_tier": "serviceTier",
    "store": "store",
}
_MOST_TOKENS = ("maxOutputTokens", "max_output_tokens")
_OWN_FIELDS = {
    "model": "use the field `model`",
    "contents": "leave it out",
    **dict.fromkeys(("systemInstruction", "system_instruction"), "write a system message"),
    **dict.fromkeys(("candidateCount", "candidate_count"), "leave it out"),
    **dict.fromkeys(
        ("generationConfig", "generation_config"), "write its fields into `config` itself"
    ),
}


class Gemini(base.ProviderOptions):
    """A model behind Google's Gemini API, or any server that speaks it."""

    provider: ClassVar[str] = "gemini"
    is_model: ClassVar[bool] = True
    is_defined: ClassVar[bool] = True
    key_variable: ClassVar[str] = KEY_VARIABLE
    spellings: ClassVar[Mapping[str, tuple[str, ...]]] = {"base_url": ("endpoint",)}

    model: Annotated[
        str,
        Meta(
            min_length=1,
            description="The model's name, as the server knows it, with or without `models/`.",
        ),
    ]
    base_url: Annotated[
        model_api.Url | None,
        Meta(
            description=f"Where the API begins, /{DEFAULT_VERSION} unless it ends in a version; {DEFAULT_URL} by default."
        ),
    ] = None
    api_key: Annotated[
        str | None,
        Meta(description=f"The key, as `${{{{ NAME }}}}`; the variable {KEY_VARIABLE} by default."),
    ] = None
    config: Annotated[
        dict[str, Any],
        Meta(
            description="Fields of the request, passed on as they are: those of generationConfig (temperature, maxOutputTokens, …), and "
            "tools, toolConfig, safetySettings, cachedContent, serviceTier, store."
        ),
    ] = field(default_factory=dict)

    @checks("config")
    @classmethod
    def _leaves_our_fields(cls, config: dict[str, Any], _seen: Seen) -> dict[str, Any]:
        return model_api.passed_on(config, _OWN_FIELDS)

    def variables(self) -> Sequence[str]:
        """The usual key's variable, when neither a key nor a server is given."""
        return () if self.api_key is not None or self.base_url is not None else (KEY_VARIABLE,)

    def connect(self, surroundings: base.ProviderContext) -> base.Provider:
        """The model, with the key given or the usual variable's."""
        key = model_api.key_of(self.api_key, surroundings.variables.get(KEY_VARIABLE))
        url = (self.base_url or DEFAULT_URL).rstrip("/")
        manner = Service(
            url=url + ("/" if _VERSIONED.search(url) else f"/{DEFAULT_VERSION}/"),
            key_hint=f"set `api_key`, or the variable {KEY_VARIABLE}, to a key that may use {self.model}",
            headers={"x-goog-api-key": key} if key else {},
            missing_hint=f"check that the server knows the model {self.model}, and that `base_url` is right",
            secrets=(key,),
        )
        name = self.model if "/" in self.model else f"models/{self.model}"
        path = f"{quote(name)}:generateContent"
        return model_api.ModelApi(
            manner, model_api.Wire(path, self._body, self._least, read_content)
        )

    def _body(self, messages: Sequence[Message]) -> dict[str, Any]:
        beside = {_BESIDE[name]: value for name, value in self.config.items() if name in _BESIDE}
        generation = {name: value for name, value in self.config.items() if name not in _BESIDE}
        return {
            **beside,
            **({"generationConfig": generation} if generation else {}),
            **conversation(messages, self.model),
        }

    def _least(self, messages: Sequence[Message]) -> dict[str, Any]:
        whole = self._body(messages)
        generation = {
            name: value
            for name, value in whole.get("generationConfig", {}).items()
            if name not in _MOST_TOKENS
        }
        return {**whole, "generationConfig": {**generation, "maxOutputTokens": 1}}
