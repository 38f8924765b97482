"""`azure`: a model deployed at Azure OpenAI."""

import re
from collections.abc import Mapping, Sequence
from dataclasses import replace
from typing import Any, ClassVar
from urllib.parse import quote, urlsplit

from pydantic import Field, field_validator

from agentevals_action.model.messages import Message
from agentevals_action.model.trace import Trace
from agentevals_action.targets.dialects import messages as chat
from agentevals_action.targets.models.errors import Service
from agentevals_action.targets.models.http_client import check_url
from agentevals_action.targets.models.model_api import ApiTarget
from agentevals_action.targets.models.openai import PATHS, RESERVED, read_completion
from agentevals_action.validation.file_model import NonEmpty, spelled

_API_PATH = re.compile(r"/openai(/v1)?$")
#: https://learn.microsoft.com/azure/ai-foundry/openai/api-version-lifecycle
_VERSION = re.compile(r"v1|[0-9]{4}-[0-9]{2}-[0-9]{2}(-preview)?")


class Azure(ApiTarget):
    """A model deployed at Azure OpenAI."""

    provider: ClassVar[str] = "azure"
    key_variable: ClassVar[str] = "AZURE_OPENAI_API_KEY"
    reserved: ClassVar[Mapping[str, str]] = {**RESERVED, "model": "use the field `deployment`"}
    dead_codes: ClassVar[frozenset[str]] = frozenset({"DeploymentNotFound", "model_not_found"})

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

    @property
    def address(self) -> str:
        """The URL of chat completions: a dated API names the deployment in it, elsewhere the body
        does."""
        resource, path = _API_PATH.sub("", self.endpoint.rstrip("/")), PATHS["chat"]
        if self.api_version == "v1":
            return f"{resource}/openai/v1/{path}"
        name = quote(self.deployment, safe="")
        return f"{resource}/openai/deployments/{name}/{path}?api-version={self.api_version}"

    def headers(self, key: str) -> Mapping[str, str]:
        """The key."""
        return {"api-key": key} if key else {}

    def service(self, key: str) -> Service:
        """The server, with advice about the deployment and the address."""
        missing = (
            f"check that the resource has a deployment named {self.deployment}, and that "
            "`endpoint` and `api_version` are right"
        )
        return replace(super().service(key), url_field="endpoint", missing_hint=missing)

    def to_wire(self, messages: Sequence[Message]) -> dict[str, Any]:
        """A request for a chat completion."""
        return {**self.config, "model": self.deployment, **chat.to_wire(messages)}

    def from_wire(self, data: Any) -> Trace:
        """The trace of a chat completion."""
        return read_completion(data)
