"""`anthropic`: a model behind Anthropic's Messages API, or a compatible server."""

from collections.abc import Mapping, Sequence
from typing import Any, ClassVar

from pydantic import Field

from agentevals_action.model.messages import Message
from agentevals_action.model.target import Provider, ProviderContext
from agentevals_action.targets.formats import anthropic
from agentevals_action.targets.http.client import HttpClient
from agentevals_action.targets.http.model_api import ModelApi, ModelTarget

#: Later versions refuse fields that suites set: 2026-10-21 refuses `temperature`.
#: https://platform.claude.com/docs/en/api/versioning
VERSION = "2023-06-01"
#: Tokens of an answer if `config` has no `max_tokens`, which the API requires. The budget for
#: thinking is added.
MAX_TOKENS = 8192


class Anthropic(ModelTarget):
    """A model behind Anthropic's Messages API, or a compatible server."""

    provider: ClassVar[str] = "anthropic"
    key_variable: ClassVar[str] = "ANTHROPIC_API_KEY"
    vendor_url: ClassVar[str] = "https://api.anthropic.com"
    reserved: ClassVar[Mapping[str, str]] = {
        "model": "use the field `model`",
        "system": "write a system message",
        **dict.fromkeys(("messages", "stream"), "leave it out"),
    }

    config: dict[str, Any] = Field(
        default_factory=dict,
        description=f"Fields of the request, passed on unchanged: max_tokens ({MAX_TOKENS} by "
        "default), temperature, thinking, tools, …",
    )

    def connect(self, context: ProviderContext) -> Provider:
        """The model, with the given key or the usual variable's."""
        key = self.key(context)
        headers = {"anthropic-version": VERSION, **({"x-api-key": key} if key else {})}
        service = self.service(self.url.removesuffix("/v1") + "/", key, headers)
        return ModelApi(HttpClient(service), "v1/messages", self._body, anthropic.read_reply)

    def _body(self, messages: Sequence[Message]) -> dict[str, Any]:
        thinking = self.config.get("thinking")
        budget = thinking.get("budget_tokens") if isinstance(thinking, dict) else None
        tokens = MAX_TOKENS + (budget if isinstance(budget, int) else 0)
        config = {"max_tokens": tokens, **self.config}
        return {**config, "model": self.model, **anthropic.to_wire(messages)}
