"""`azure`: a model deployed at Azure OpenAI."""

import re
from collections.abc import Mapping, Sequence
from typing import Any, ClassVar
from urllib.parse import quote, urlsplit

from pydantic import Field, ValidationInfo, field_validator

from agentevals_action.model.validation.file_model import NonEmpty
from agentevals_action.targets.apis import model_api
from agentevals_action.targets.apis.http_client import check_url, origin_of
from agentevals_action.targets.apis.http_errors import Service
from agentevals_action.targets.apis.openai_model import FORMATS, ApiFormat, Config, OpenAIModel
from agentevals_action.targets.base import Provider, ProviderContext, ProviderOptions

#: Versions of the API without a date.
#: https://learn.microsoft.com/azure/ai-foundry/openai/api-version-lifecycle
_UNDATED = ("v1", "preview", "latest")
_RESOURCE = re.compile(r"[A-Za-z0-9][A-Za-z0-9-]*")
_API_PATH = re.compile(r"/openai(/v1)?$")
_VERSION = re.compile(r"[A-Za-z0-9.-]+")


class Azure(ProviderOptions):
    """A model deployed at Azure OpenAI."""

    provider: ClassVar[str] = "azure"
    aliases: ClassVar[tuple[str, ...]] = ("azure_openai",)
    is_model: ClassVar[bool] = True
    is_defined: ClassVar[bool] = True
    key_variable: ClassVar[str] = "AZURE_OPENAI_API_KEY"
    spellings: ClassVar[Mapping[str, tuple[str, ...]]] = {
        "deployment": ("model",),
        "api_version": ("version",),
    }

    endpoint: str = Field(
        description="The resource's URL, with or without /openai or /openai/v1 at its end, or the "
        "resource's name."
    )
    deployment: NonEmpty = Field(description="The deployment's name.")
    api_key: str | None = Field(
        None, description="The key, as `${{ NAME }}`; AZURE_OPENAI_API_KEY by default."
    )
    api_version: str = Field(
        "v1",
        description="`v1`, which has no date, or the date of an earlier API (2024-10-21), which is "
        "called by deployment.",
    )
    api_format: ApiFormat = Field(
        "chat", description="`chat` (chat completions) or `responses` (Responses API)."
    )
    config: Config = Field(default_factory=dict)

    @field_validator("endpoint")
    @classmethod
    def _check_endpoint(cls, endpoint: str) -> str:
        if "${{" in endpoint or _RESOURCE.fullmatch(endpoint):
            return endpoint
        try:
            parts = urlsplit(check_url(endpoint))
        except ValueError as error:
            raise ValueError(f"{error}, or the name of a resource") from None
        if parts.query or parts.fragment or "/deployments/" in parts.path:
            raise ValueError(
                "end the URL before /openai; `deployment` and `api_version` are separate fields"
            )
        return endpoint

    @field_validator("api_version")
    @classmethod
    def _check_version(cls, version: str) -> str:
        if "${{" not in version and not _VERSION.fullmatch(version):
            raise ValueError("write `v1`, or a date as 2024-10-21")
        return version

    @field_validator("config")
    @classmethod
    def _check_config(cls, config: dict[str, Any], info: ValidationInfo) -> dict[str, Any]:
        # A variable has no value yet.
        api_format = FORMATS.get(info.data.get("api_format", "chat"), FORMATS["chat"])
        reserved = {**api_format.reserved, "model": "use the field `deployment`"}
        return model_api.check_config(config, reserved)

    def variables(self) -> Sequence[str]:
        """The usual variable for the key, if no key is given."""
        return () if self.api_key is not None else (self.key_variable,)

    def default_keys(self) -> Sequence[str]:
        """The usual variable for the key, if no key is given."""
        return () if self.api_key else (self.key_variable,)

    def priced_model(self) -> str:
        """The deployment, which often has the name of its model."""
        return self.deployment

    def destination(self) -> str:
        """The origin of the resource's API."""
        return origin_of(self.url)

    def connect(self, context: ProviderContext) -> Provider:
        """The model, with the given key or the usual variable's."""
        key = model_api.choose_key(self, self.api_key, context)
        service = Service(
            url=self.url,
            url_field="endpoint",
            key_hint=f"set `api_key`, or the variable {self.key_variable}, to a key of the "
            "resource",
            headers={"api-key": key} if key else {},
            dead_codes=frozenset({"DeploymentNotFound", "model_not_found"}),
            missing_hint=f"check that the resource has a deployment named {self.deployment}, and "
            "that `endpoint` and `api_version` are right",
            secrets=(key,),
        )
        api_format = FORMATS[self.api_format]
        return OpenAIModel(service, api_format, self._path(), self.deployment, self.config)

    @property
    def url(self) -> str:
        """The base URL of the resource's API in any version."""
        if _RESOURCE.fullmatch(self.endpoint):
            return f"https://{self.endpoint}.openai.azure.com/openai/"
        return _API_PATH.sub("", self.endpoint.rstrip("/")) + "/openai/"

    def _path(self) -> str:
        """The path of a call. Only chat completions of a dated API name the deployment in the path;
        elsewhere the body names it."""
        path, query = FORMATS[self.api_format].path, f"?api-version={self.api_version}"
        if self.api_version in _UNDATED:
            return f"v1/{path}" + ("" if self.api_version == "v1" else query)
        if self.api_format == "chat":
            path = f"deployments/{quote(self.deployment, safe='')}/{path}"
        return path + query
