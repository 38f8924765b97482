"""`openai`: a model behind OpenAI's API, or any server that speaks it."""

from collections.abc import Mapping, Sequence
from typing import Annotated, Any, ClassVar

from msgspec import Meta, field

from agentevals_action.entries.entry import Seen, checks
from agentevals_action.targets import base
from agentevals_action.targets.apis import model_api
from agentevals_action.targets.apis.http_errors import Service
from agentevals_action.targets.apis.openai_model import FORMATS, ApiFormat, OpenAIModel

DEFAULT_URL = "https://api.openai.com/v1"
KEY_VARIABLE = "OPENAI_API_KEY"


class OpenAI(base.ProviderOptions):
    """A model behind OpenAI's API, or any server that speaks it."""

    provider: ClassVar[str] = "openai"
    is_model: ClassVar[bool] = True
    is_defined: ClassVar[bool] = True
    key_variable: ClassVar[str] = KEY_VARIABLE
    spellings: ClassVar[Mapping[str, tuple[str, ...]]] = {"base_url": ("endpoint",)}

    model: Annotated[
        str, Meta(min_length=1, description="The model's name, as the server knows it.")
    ]
    base_url: Annotated[
        model_api.Url | None,
        Meta(description=f"Where the API begins, /v1 included; {DEFAULT_URL} by default."),
    ] = None
    api_key: Annotated[
        str | None,
        Meta(description=f"The key, as `${{{{ NAME }}}}`; the variable {KEY_VARIABLE} by default."),
    ] = None
    api_format: Annotated[
        ApiFormat,
        Meta(
            description="`chat` (chat completions, which every compatible server speaks) or `responses` (the Responses API)."
        ),
    ] = "chat"
    config: Annotated[
        dict[str, Any],
        Meta(
            description="Fields of the request, passed on as they are: temperature, max_completion_tokens, tools, …"
        ),
    ] = field(default_factory=dict)

    @checks("config")
    @classmethod
    def _leaves_our_fields(cls, config: dict[str, Any], seen: Seen) -> dict[str, Any]:
        return model_api.passed_on(config, FORMATS[seen.fields.get("api_format", "chat")].own)

    def variables(self) -> Sequence[str]:
        """The usual key's variable, when neither a key nor a server is given."""
        # A server of one's own often wants no key; one that does answers 401, which says so.
        return () if self.api_key is not None or self.base_url is not None else (KEY_VARIABLE,)

    def connect(self, surroundings: base.ProviderContext) -> base.Provider:
        """The model, with the key given or the usual variable's."""
        key = model_api.key_of(self.api_key, surroundings.variables.get(KEY_VARIABLE))
        manner = Service(
            url=(self.base_url or DEFAULT_URL).rstrip("/") + "/",
            key_hint=f"set `api_key`, or the variable {KEY_VARIABLE}, to a key that may use {self.model}",
            headers={"Authorization": f"Bearer {key}"} if key else {},
            dead_codes=frozenset({"model_not_found"}),
            missing_hint=f"check that the server knows the model {self.model}, and that `base_url` is right",
            secrets=(key,),
        )
        form = FORMATS[self.api_format]
        return OpenAIModel(manner, form, form.path, self.model, self.config)
