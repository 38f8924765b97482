"""Models behind an HTTP API: the common fields of their targets, and the provider that calls
them."""

from abc import abstractmethod
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Annotated, Any, ClassVar

from pydantic import AfterValidator, Field, field_validator

from agentevals_action.errors import AttemptError
from agentevals_action.model.messages import Message
from agentevals_action.model.target import Provider, ProviderContext, Request, Target
from agentevals_action.model.trace import Trace
from agentevals_action.targets.models.errors import Service
from agentevals_action.targets.models.http_client import HttpClient, check_url, encode, get_origin
from agentevals_action.validation.file_model import NonEmpty, spelled


def _check_base_url(url: str) -> str:
    if "${{" not in url:  # otherwise it is validated with its variables filled in
        check_url(url)
        if "?" in url or "#" in url:
            raise ValueError("end the URL before its ? or #; paths are added to it")
    return url


class ApiTarget(Target):
    """The common fields of models with a key. `reserved` are the fields of a request that `config`
    cannot set, with advice. `around_temperature` is the object of a request that holds the
    temperature, if it is not the request itself. `dead_codes` are the vendor's error codes that end
    all calls."""

    is_model: ClassVar[bool] = True
    is_defined: ClassVar[bool] = True
    reserved: ClassVar[Mapping[str, str]]
    around_temperature: ClassVar[str] = ""
    dead_codes: ClassVar[frozenset[str]] = frozenset()

    api_key: str | None = Field(
        None, description="The key, as `${{ NAME }}`; the vendor's usual variable by default."
    )
    config: dict[str, Any] = Field(
        default_factory=dict,
        description="Fields of the request, passed on unchanged: temperature, tools, …",
    )

    @field_validator("config")
    @classmethod
    def _check_config(cls, config: dict[str, Any]) -> dict[str, Any]:
        for name, advice in cls.reserved.items():
            if name in config:
                raise ValueError(f"`{name}` cannot be set in `config`; {advice}")
        return config

    def key(self, context: ProviderContext) -> str:
        """The given key, else the vendor's usual variable; secrets often end with a newline."""
        return (self.api_key or context.variables.get(self.key_variable) or "").strip()

    def other_variables(self) -> Sequence[str]:
        """The usual variable for the key, if no key is given."""
        return () if self.api_key is not None else (self.key_variable,)

    def default_keys(self) -> Sequence[str]:
        """The usual variable for the key, if no key is given."""
        return () if self.api_key else (self.key_variable,)

    def destination(self) -> str:
        """The origin of the server."""
        return get_origin(self.address)

    def connect(self, context: ProviderContext) -> Provider:
        """The model, with the given key or the usual variable's."""
        return _Connected(self, HttpClient(self.service(self.key(context))))

    def service(self, key: str) -> Service:
        """The server, with advice about the model, the address and the key."""
        model = self.priced_model()
        return Service(
            url=self.address,
            key_hint=f"set `api_key`, or the variable {self.key_variable}, to a key that may use "
            f"{model}",
            headers=self.headers(key),
            dead_codes=self.dead_codes,
            missing_hint=f"check that the server knows the model {model}, and that `base_url` is "
            "right",
            secrets=(key,),
        )

    @property
    @abstractmethod
    def address(self) -> str:
        """The URL of each call."""

    @abstractmethod
    def headers(self, key: str) -> Mapping[str, str]:
        """The headers of a call; the key may be empty."""

    @abstractmethod
    def to_wire(self, messages: Sequence[Message]) -> dict[str, Any]:
        """A request; ValueError if something cannot be sent."""

    @abstractmethod
    def from_wire(self, data: Any) -> Trace:
        """The trace of a reply; ValueError if it has no answer."""


class ModelTarget(ApiTarget):
    """The common fields of models that have a name and a base URL. `vendor_url` is the vendor's own
    address."""

    vendor_url: ClassVar[str]

    model: NonEmpty = Field(description="The model's name on the server.")
    base_url: Annotated[str, AfterValidator(_check_base_url)] | None = spelled(
        "base_url",
        "endpoint",
        default=None,
        description="The address of the API; the vendor's by default.",
    )

    def other_variables(self) -> Sequence[str]:
        """The usual variable for the key, if neither a key nor a server is given: a private server
        often needs none."""
        return () if self.base_url is not None else super().other_variables()

    @property
    def asks_vendor(self) -> bool:
        """Whether the server is the vendor's own."""
        return self.destination() == get_origin(self.vendor_url)

    def priced_model(self) -> str:
        """The model itself."""
        return self.model

    @property
    def url(self) -> str:
        """The address of the API, without a slash at its end."""
        return (self.base_url or self.vendor_url).rstrip("/")


@dataclass(frozen=True)
class _Connected(Provider):
    """A connected model."""

    target: ApiTarget
    client: HttpClient

    async def complete(self, request: Request) -> Trace:
        """One call."""
        target = self.target
        try:
            data = target.to_wire(request.messages)
            if request.temperature is not None:
                around = target.around_temperature
                inside = data.setdefault(around, {}) if around else data
                inside["temperature"] = request.temperature
            body = encode(data)
        except (OSError, ValueError) as error:
            raise AttemptError("configuration", f"the prompt cannot be sent: {error}") from None
        return await self.client.ask(
            "POST", body, request.timeout, lambda reply: target.from_wire(reply.json())
        )

    async def check(self, request: Request) -> str:
        """One call."""
        await self.complete(request)
        return ""

    async def close(self) -> None:
        """Closes the connections."""
        await self.client.close()
