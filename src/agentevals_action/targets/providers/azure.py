"""`azure`: a model deployed at Azure OpenAI."""

import re
from collections.abc import Mapping
from typing import ClassVar
from urllib.parse import quote, urlsplit

from pydantic import Field, field_validator

from agentevals_action.model.target import Provider, ProviderContext
from agentevals_action.model.validation.file_model import NonEmpty, spelled
from agentevals_action.targets.http.client import check_url, origin_of
from agentevals_action.targets.http.errors import Service
from agentevals_action.targets.http.model_api import ApiTarget
from agentevals_action.targets.providers.openai import PATHS, RESERVED, openai_model

_API_PATH = re.compile(r"/openai(/v1)?$")
#: https://learn.microsoft.com/azure/ai-foundry/openai/api-version-lifecycle
_VERSION = re.compile(r"v1|[0-9]{4}-[0-9]{2}-[0-9]{2}(-preview)?")


class Azure(ApiTarget):
    """A model deployed at Azure OpenAI."""

    provider: ClassVar[str] = "azure"
    key_variable: ClassVar[str] = "AZURE_OPENAI_API_KEY"
    reserved: ClassVar[Mapping[str, str]] = {**RESERVED, "model": "use the field `deployment`"}

    endpoint: str = Field(
        description="The resource's URL, with or without /openai or /openai/v1 at its end."
    )
    deployment: NonEmpty = spelled("deployment", "model", description="The deployment's name.")
    api_version: str = spelled(
        "api_version",
        "version",
        default="v1",
        description="`v1`, which has no date, or the date of an earlier API (2024-10-21), which is "
        "called by deployment.",
    )

    @field_validator("endpoint")
    @classmethod
    def _check_endpoint(cls, endpoint: str) -> str:
        if "${{" in endpoint:
            return endpoint
        parts = urlsplit(check_url(endpoint))
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
        return openai_model(service, "chat", self._path(), self.deployment, self.config)

    @property
    def url(self) -> str:
        """The base URL of the resource's API in any version."""
        return _API_PATH.sub("", self.endpoint.rstrip("/")) + "/openai/"

    def _path(self) -> str:
        """The path of a call: a dated API names the deployment in it, elsewhere the body does."""
        path = PATHS["chat"]
        if self.api_version == "v1":
            return f"v1/{path}"
        name = quote(self.deployment, safe="")
        return f"deployments/{name}/{path}?api-version={self.api_version}"
