"""`anthropic`: a model behind Anthropic's Messages API, or any server that speaks it."""

import re
from collections.abc import Mapping, Sequence
from typing import Annotated, Any, ClassVar

from msgspec import Meta, field

from agentevals_action.entries.entry import Seen, checks
from agentevals_action.model.suite import Message
from agentevals_action.targets import base
from agentevals_action.targets.apis import model_api
from agentevals_action.targets.apis.anthropic_messages import conversation, read_message
from agentevals_action.targets.apis.http_errors import Service

DEFAULT_URL = "https://api.anthropic.com"
KEY_VARIABLE = "ANTHROPIC_API_KEY"
#: Later versions refuse fields that suites set: 2026-10-21 does `temperature`.
#: https://platform.claude.com/docs/en/api/versioning
VERSION = "2023-06-01"
#: Tokens of an answer where `config` sets no `max_tokens`, which the API demands; what thinking may
#: take comes on top.
MAX_TOKENS = 8192
_VERSION = re.compile(r"[0-9]{4}-[0-9]{2}-[0-9]{2}")
_OWN_FIELDS = {
    "model": "use the field `model`",
    "messages": "leave it out",
    "system": "write a system message",
    "stream": "leave it out",
}


class Anthropic(base.ProviderOptions):
    """A model behind Anthropic's Messages API, or any server that speaks it."""

    provider: ClassVar[str] = "anthropic"
    is_model: ClassVar[bool] = True
    is_defined: ClassVar[bool] = True
    key_variable: ClassVar[str] = KEY_VARIABLE
    spellings: ClassVar[Mapping[str, tuple[str, ...]]] = {"base_url": ("endpoint",)}

    model: Annotated[
        str, Meta(min_length=1, description="The model's name, as the server knows it.")
    ]
    base_url: Annotated[
        model_api.Url | None,
        Meta(description=f"Where the API begins, /v1 or not; {DEFAULT_URL} by default."),
    ] = None
    api_key: Annotated[
        str | None,
        Meta(description=f"The key, as `${{{{ NAME }}}}`; the variable {KEY_VARIABLE} by default."),
    ] = None
    api_version: Annotated[str, Meta(description="The version of the API, as a date.")] = VERSION
    config: Annotated[
        dict[str, Any],
        Meta(
            description=f"Fields of the request, passed on as they are: max_tokens ({MAX_TOKENS} by default), temperature, thinking, "
            f"tools, …"
        ),
    ] = field(default_factory=dict)

    @checks("api_version")
    @classmethod
    def _is_a_version(cls, version: str, _seen: Seen) -> str:
        if "${{" not in version and not _VERSION.fullmatch(version):
            raise ValueError("write a date as 2023-06-01")
        return version

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
        manner = Service(
            url=(self.base_url or DEFAULT_URL).rstrip("/").removesuffix("/v1") + "/",
            key_hint=f"set `api_key`, or the variable {KEY_VARIABLE}, to a key that may use {self.model}",
            headers={"anthropic-version": self.api_version, **({"x-api-key": key} if key else {})},
            missing_hint=f"check that the server knows the model {self.model}, and that `base_url` is right",
            secrets=(key,),
        )
        return model_api.ModelApi(
            manner, model_api.Wire("v1/messages", self._body, self._least, read_message)
        )

    def _body(self, messages: Sequence[Message]) -> dict[str, Any]:
        thinking = self.config.get("thinking")
        budget = thinking.get("budget_tokens") if isinstance(thinking, dict) else None
        most = MAX_TOKENS + (budget if isinstance(budget, int) else 0)
        return {"max_tokens": most, **self.config, "model": self.model, **conversation(messages)}

    def _least(self, messages: Sequence[Message]) -> dict[str, Any]:
        # Thinking wants more tokens than the one that is asked for here.
        config = {name: value for name, value in self.config.items() if name != "thinking"}
        return {**config, "max_tokens": 1, "model": self.model, **conversation(messages)}
