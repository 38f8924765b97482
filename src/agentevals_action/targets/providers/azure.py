"""`azure`: a model deployed at Azure OpenAI."""

import re
from collections.abc import Mapping, Sequence
from typing import Annotated, Any, ClassVar
from urllib.parse import quote, urlsplit

from msgspec import Meta, field

from agentevals_action.entries.entry import Seen, checks
from agentevals_action.targets import base
from agentevals_action.targets.apis import model_api
from agentevals_action.targets.apis.http_errors import Service
from agentevals_action.targets.apis.openai_model import FORMATS, ApiFormat, OpenAIModel

KEY_VARIABLE = "AZURE_OPENAI_API_KEY"
#: Versions of the API without a date.
#: https://learn.microsoft.com/azure/ai-foundry/openai/api-version-lifecycle
_UNDATED = ("v1", "preview", "latest")
_RESOURCE = re.compile(r"[A-Za-z0-9][A-Za-z0-9-]*")
_API = re.compile(r"/openai(/v1)?$")
_VERSION = re.compile(r"[A-Za-z0-9.-]+")


class Azure(base.ProviderOptions):
    """A model deployed at Azure OpenAI."""

    provider: ClassVar[str] = "azure"
    is_model: ClassVar[bool] = True
    is_defined: ClassVar[bool] = True
    key_variable: ClassVar[str] = KEY_VARIABLE
    spellings: ClassVar[Mapping[str, tuple[str, ...]]] = {
        "deployment": ("model",),
        "api_version": ("version",),
    }

    endpoint: Annotated[
        str,
        Meta(
            description="The resource's URL, with or without /openai or /openai/v1 at its end, or the resource's name."
        ),
    ]
    deployment: Annotated[str, Meta(min_length=1, description="The deployment's name.")]
    api_key: Annotated[
        str | None,
        Meta(description=f"The key, as `${{{{ NAME }}}}`; the variable {KEY_VARIABLE} by default."),
    ] = None
    api_version: Annotated[
        str,
        Meta(
            description="`v1`, which has no date, or the date of an earlier API (2024-10-21), which is then asked by deployment."
        ),
    ] = "v1"
    api_format: Annotated[
        ApiFormat, Meta(description="`chat` (chat completions) or `responses` (the Responses API).")
    ] = "chat"
    config: Annotated[
        dict[str, Any],
        Meta(
            description="Fields of the request, passed on as they are: temperature, max_completion_tokens, tools, …"
        ),
    ] = field(default_factory=dict)

    @checks("endpoint")
    @classmethod
    def _is_a_resource(cls, endpoint: str, _seen: Seen) -> str:
        if "${{" in endpoint or _RESOURCE.fullmatch(endpoint):
            return endpoint
        parts = urlsplit(endpoint)
        if parts.scheme not in ("http", "https") or not parts.hostname:
            raise ValueError(
                "write a URL that begins with http:// or https://, or the name of a resource"
            )
        if parts.query or parts.fragment or "/deployments/" in parts.path:
            raise ValueError(
                "end the URL before /openai; `deployment` and `api_version` have fields of their own"
            )
        return endpoint

    @checks("api_version")
    @classmethod
    def _is_a_version(cls, version: str, _seen: Seen) -> str:
        if "${{" not in version and not _VERSION.fullmatch(version):
            raise ValueError("write `v1`, or a date as 2024-10-21")
        return version

    @checks("config")
    @classmethod
    def _leaves_our_fields(cls, config: dict[str, Any], seen: Seen) -> dict[str, Any]:
        own = FORMATS[seen.fields.get("api_format", "chat")].own
        return model_api.passed_on(config, {**own, "model": "use the field `deployment`"})

    def variables(self) -> Sequence[str]:
        """The usual key's variable, when no key is given."""
        return () if self.api_key is not None else (KEY_VARIABLE,)

    def connect(self, surroundings: base.ProviderContext) -> base.Provider:
        """The model, with the key given or the usual variable's."""
        key = model_api.key_of(self.api_key, surroundings.variables.get(KEY_VARIABLE))
        manner = Service(
            url=self.url,
            url_field="endpoint",
            key_hint=f"set `api_key`, or the variable {KEY_VARIABLE}, to a key of the resource",
            headers={"api-key": key} if key else {},
            dead_codes=frozenset({"DeploymentNotFound", "model_not_found"}),
            missing_hint=(
                f"check that the resource has a deployment named {self.deployment}, and that `endpoint` and `api_version` are right"
            ),
            secrets=(key,),
        )
        return OpenAIModel(
            manner, FORMATS[self.api_format], self._path(), self.deployment, self.config
        )

    @property
    def url(self) -> str:
        """Where the resource's API begins, whatever its version."""
        if _RESOURCE.fullmatch(self.endpoint):
            return f"https://{self.endpoint}.openai.azure.com/openai/"
        return _API.sub("", self.endpoint.rstrip("/")) + "/openai/"

    def _path(self) -> str:
        """Of the dated API chat completions alone are asked below the deployment; elsewhere the
        body names it."""
        path, query = FORMATS[self.api_format].path, f"?api-version={self.api_version}"
        if self.api_version in _UNDATED:
            return f"v1/{path}" + ("" if self.api_version == "v1" else query)
        below = (
            f"deployments/{quote(self.deployment, safe='')}/" if self.api_format == "chat" else ""
        )
        return f"{below}{path}{query}"
