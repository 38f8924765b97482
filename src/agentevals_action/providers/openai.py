"""`openai`: a model behind OpenAI's chat completions, or any server that speaks them."""

from collections.abc import Mapping, Sequence
from typing import Any, ClassVar
from urllib.parse import urlsplit

from pydantic import Field, field_validator

from agentevals_action.chat import chat_messages, read_completion
from agentevals_action.endpoint import Endpoint, Manner
from agentevals_action.errors import AttemptError
from agentevals_action.model.trace import Trace
from agentevals_action.providers import base

DEFAULT_URL = "https://api.openai.com/v1"
KEY_VARIABLE = "OPENAI_API_KEY"
_OWN_FIELDS = ("model", "messages", "stream", "n")


class OpenAI(base.Options):
    """A model behind OpenAI's chat completions, or any server that speaks them."""

    provider: ClassVar[str] = "openai"
    is_model: ClassVar[bool] = True
    is_defined: ClassVar[bool] = True
    spellings: ClassVar[Mapping[str, tuple[str, ...]]] = {"base_url": ("endpoint",)}

    model: str = Field(description="The model's name, as the server knows it.", min_length=1)
    base_url: str | None = Field(default=None, description=f"Where the API begins, /v1 included; {DEFAULT_URL} by default.")
    api_key: str | None = Field(default=None, description=f"The key, as `${{{{ NAME }}}}`; the variable {KEY_VARIABLE} by default.")
    config: dict[str, Any] = Field(
        default_factory=dict, description="Fields of the request, passed on as they are: temperature, max_tokens, …"
    )
    api_format: str = Field(default="chat", description="`chat`.")

    @field_validator("base_url")
    @classmethod
    def _is_url(cls, url: str | None) -> str | None:
        if url is not None and "${{" not in url:
            parts = urlsplit(url)
            if parts.scheme not in ("http", "https") or not parts.hostname:
                raise ValueError("write a URL that begins with http:// or https://")
        return url

    @field_validator("config")
    @classmethod
    def _leaves_our_fields(cls, config: dict[str, Any]) -> dict[str, Any]:
        for name in _OWN_FIELDS:
            if name in config:
                raise ValueError(f"`{name}` cannot be set in `config`; {'use the field `model`' if name == 'model' else 'leave it out'}")
        return config

    @field_validator("api_format")
    @classmethod
    def _is_chat(cls, name: str) -> str:
        if name == "responses":
            raise ValueError("`api_format: responses` is not supported by this version yet; use `chat`")
        if name != "chat":
            raise ValueError("`api_format` is `chat`")
        return name

    def variables(self) -> Sequence[str]:
        """The usual key's variable, when neither a key nor a server is given."""
        # A server of one's own often wants no key; one that does answers 401, which says so.
        return () if self.api_key is not None or self.base_url is not None else (KEY_VARIABLE,)

    def connect(self, surroundings: base.Surroundings) -> base.Provider:
        """The model, with the key given or the usual variable's."""
        return _Connected(self, self.api_key or surroundings.variables.get(KEY_VARIABLE))


class _Connected:
    def __init__(self, options: OpenAI, key: str | None) -> None:
        self._options = options
        key = (key or "").strip()  # a secret is easily stored with the end of its line
        self._endpoint = Endpoint(
            Manner(
                url=(options.base_url or DEFAULT_URL).rstrip("/") + "/",
                key_hint=f"set `api_key`, or the variable {KEY_VARIABLE}, to a key that may use {options.model}",
                headers={"Authorization": f"Bearer {key}"} if key else {},
                dead_codes=frozenset({"model_not_found"}),
                missing_hint=f"check that the server knows the model {options.model}, and that `base_url` is right",
                secrets=(key,),
            )
        )

    async def complete(self, request: base.Request) -> Trace:
        try:
            body = {**self._options.config, "model": self._options.model, "messages": chat_messages(request.messages)}
        except (OSError, ValueError) as error:
            raise AttemptError("configuration", f"the prompt cannot be sent: {error}") from None
        reply = await self._endpoint.post("chat/completions", body, request.timeout)
        try:
            return read_completion(reply)
        except ValueError as error:
            raise self._endpoint.wrong(error) from None

    async def check(self, request: base.Request) -> None:
        """One token's worth."""
        body = {**self._options.config, "model": self._options.model, "messages": chat_messages(request.messages), "max_tokens": 1}
        await self._endpoint.post("chat/completions", body, request.timeout)

    async def close(self) -> None:
        """Closes the connections."""
        await self._endpoint.close()
