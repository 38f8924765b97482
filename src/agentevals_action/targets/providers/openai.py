"""`openai`: a model behind OpenAI's API, or a compatible server."""

from typing import Any, ClassVar

from pydantic import Field, ValidationInfo, field_validator

from agentevals_action.targets.apis import model_api
from agentevals_action.targets.apis.openai_model import FORMATS, ApiFormat, Config, OpenAIModel
from agentevals_action.targets.base import Provider, ProviderContext

DEFAULT_URL = "https://api.openai.com/v1"


class OpenAI(model_api.ModelOptions):
    """A model behind OpenAI's API, or a compatible server."""

    provider: ClassVar[str] = "openai"
    key_variable: ClassVar[str] = "OPENAI_API_KEY"
    vendor_url: ClassVar[str] = DEFAULT_URL

    api_format: ApiFormat = Field(
        "chat",
        description="`chat` (chat completions, which every compatible server offers) or "
        "`responses` (the Responses API).",
    )
    config: Config = Field(default_factory=dict)

    @field_validator("config")
    @classmethod
    def _check_config(cls, config: dict[str, Any], info: ValidationInfo) -> dict[str, Any]:
        # A variable has no value yet.
        api_format = FORMATS.get(info.data.get("api_format", "chat"), FORMATS["chat"])
        return model_api.check_config(config, api_format.reserved)

    def connect(self, context: ProviderContext) -> Provider:
        """The model, with the given key or the usual variable's."""
        key = model_api.choose_key(self, self.api_key, context)
        service = self.service(
            url=(self.base_url or self.vendor_url).rstrip("/") + "/",
            key=key,
            headers={"Authorization": f"Bearer {key}"} if key else {},
            dead_codes=frozenset({"model_not_found"}),
        )
        api_format = FORMATS[self.api_format]
        config = {**self.settings(api_format.limit), **self.config}
        return OpenAIModel(service, api_format, api_format.path, self.model, config)
