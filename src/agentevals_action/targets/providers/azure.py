"""`azure`: a model deployed at Azure OpenAI."""

import re
from collections.abc import Mapping
from typing import Any, ClassVar
from urllib.parse import quote, urlsplit

from pydantic import Field, field_validator

from agentevals_action.model.validation.file_model import NonEmpty, spelled
from agentevals_action.targets.base import Provider, ProviderContext
from agentevals_action.targets.http.client import check_url, origin_of
from agentevals_action.targets.http.errors import Service
from agentevals_action.targets.http.model_api import ApiOptions
from agentevals_action.targets.providers.openai import (
    FORMATS,
    ApiFormat,
    Config,
    openai_model,
    reserved_fields,
)

#: Versions of the API without a date.
#: https://learn.microsoft.com/azure/ai-foundry/openai/api-version-lifecycle
_UNDATED = ("v1", "preview", "latest")
_RESOURCE = re.compile(r"[A-Za-z0-9][A-Za-z0-9-]*")
_API_PATH = re.compile(r"/openai(/v1)?$")
_VERSION = re.compile(r"[A-Za-z0-9.-]+")


class Azure(ApiOptions):
    """A model deployed at Azure OpenAI."""

    provider: ClassVar[str] = "azure"
    aliases: ClassVar[tuple[str, ...]] = ("azure_openai",)
    key_variable: ClassVar[str] = "AZURE_OPENAI_API_KEY"

    endpoint: str = Field(
        description="The resource's URL, with or without /openai or /openai/v1 at its end, or the "
        "resource's name."
    )
    deployment: NonEmpty = spelled("deployment", "model", description="The deployment's name.")
    api_version: str = spelled(
        "api_version",
        "version",
        default="v1",
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

    @classmethod
    def reserved(cls, fields: Mapping[str, Any]) -> Mapping[str, str]:
        """Those of the format; the deployment is the model."""
        return {**reserved_fields(fields), "model": "use the field `deployment`"}

    def priced_model(self) -> str:
        """The deployment, which often has the name of its model."""
        return self.deployment

    def destination(self) -> str:
        """The origin of the resource's API."""
        return origin_of(self.url)

    def connect(self, context: ProviderContext) -> Provider:
        """The model, with the given key or the usual variable's."""
        key = self.key(context)
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
        return openai_model(service, self.api_format, self._path(), self.deployment, self.config)

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
