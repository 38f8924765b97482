"""Models behind an HTTP API: the common options of their targets, and the provider that calls
them."""

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Annotated, Any, ClassVar

from pydantic import AfterValidator, Field

from agentevals_action.errors import AttemptError
from agentevals_action.model.suite import Message
from agentevals_action.model.trace import Trace
from agentevals_action.model.usage import Usage
from agentevals_action.model.validation.file_model import NonEmpty
from agentevals_action.targets.apis.http_client import HttpClient, check_url, origin_of
from agentevals_action.targets.apis.http_errors import Service
from agentevals_action.targets.base import Provider, ProviderContext, ProviderOptions, Request

#: Makes the body of a request; ValueError or OSError if the messages cannot be sent.
MakeBody = Callable[[Sequence[Message]], dict[str, Any]]


def _check_base_url(url: str) -> str:
    if "${{" not in url:  # otherwise it is validated with its variables filled in
        check_url(url)
        if "?" in url or "#" in url:
            raise ValueError("end the URL before its ? or #; paths are added to it")
    return url


def check_config(config: dict[str, Any], reserved: Mapping[str, str]) -> dict[str, Any]:
    """The `config` itself; ValueError with the advice if it sets a reserved field of the
    request."""
    for name, advice in reserved.items():
        if name in config:
            raise ValueError(f"`{name}` cannot be set in `config`; {advice}")
    return config


def choose_key(options: ProviderOptions, given: str | None, context: ProviderContext) -> str:
    """The given key, else the vendor's usual variable; secrets often end with a newline."""
    return (given or context.variables.get(options.key_variable) or "").strip()


class ModelOptions(ProviderOptions):
    """The common fields of models that have a name and a base URL."""

    is_model: ClassVar[bool] = True
    is_defined: ClassVar[bool] = True
    spellings: ClassVar[Mapping[str, tuple[str, ...]]] = {"base_url": ("endpoint",)}

    model: NonEmpty = Field(description="The model's name on the server.")
    base_url: Annotated[str, AfterValidator(_check_base_url)] | None = Field(
        None, description="The address of the API; the vendor's by default."
    )
    api_key: str | None = Field(
        None, description="The key, as `${{ NAME }}`; the vendor's usual variable by default."
    )

    temperature: Annotated[float, Field(ge=0)] | None = Field(
        None, description="AgentV: the same as the temperature in `config`."
    )
    max_output_tokens: Annotated[int, Field(ge=1)] | None = Field(
        None, description="AgentV: the same as the limit of an answer in `config`."
    )

    def settings(self, limit: str) -> Mapping[str, Any]:
        """The fields of a request that are set outside of `config`; the API calls the limit of
        tokens `limit`."""
        given = {"temperature": self.temperature, limit: self.max_output_tokens}
        return {name: value for name, value in given.items() if value is not None}

    def variables(self) -> Sequence[str]:
        """The usual variable for the key, if neither a key nor a server is given: a private server
        often needs none."""
        return () if self.api_key is not None or self.base_url is not None else (self.key_variable,)

    def default_keys(self) -> Sequence[str]:
        """The usual variable for the key, if no key is given."""
        return () if self.api_key else (self.key_variable,)

    def priced_model(self) -> str:
        """The model itself."""
        return self.model

    def destination(self) -> str:
        """The origin of the server."""
        return origin_of(self.base_url or self.vendor_url)

    def service(
        self,
        url: str,
        key: str,
        headers: Mapping[str, str],
        dead_codes: frozenset[str] = frozenset(),
    ) -> Service:
        """The server with advice about the model, the address and the key."""
        return Service(
            url=url,
            key_hint=f"set `api_key`, or the variable {self.key_variable}, to a key that may use "
            f"{self.model}",
            headers=headers,
            dead_codes=dead_codes,
            missing_hint=f"check that the server knows the model {self.model}, and that `base_url` "
            "is right",
            secrets=(key,),
        )


@dataclass(frozen=True)
class WireFormat:
    """A vendor's requests and replies: `read` raises ValueError for a reply with an unexpected
    structure. `around_temperature` is the object of a request that holds the temperature, if it is
    not the request itself."""

    path: str
    body: MakeBody
    read: Callable[[Any], Trace]
    around_temperature: str = ""


class ModelApi(Provider):
    """A connected model."""

    def __init__(self, service: Service, wire_format: WireFormat) -> None:
        self._client = HttpClient(service)
        self._format = wire_format

    async def complete(self, request: Request) -> Trace:
        """One call."""
        reply, cost = await self._post(request)
        try:
            trace = self._format.read(reply)
        except ValueError as error:
            raise self._client.reply_error(error) from None
        return replace(trace, usage=Usage(cost_usd=cost).or_else(trace.usage))

    async def check(self, request: Request) -> str:
        """One call."""
        await self.complete(request)
        return ""

    async def close(self) -> None:
        """Closes the connections."""
        await self._client.close()

    async def _post(self, request: Request) -> tuple[Any, float | None]:
        try:
            body = self._format.body(request.messages)
        except (OSError, ValueError) as error:
            raise AttemptError("configuration", f"the prompt cannot be sent: {error}") from None
        if request.temperature is not None:
            around = self._format.around_temperature
            inside = body.setdefault(around, {}) if around else body
            inside["temperature"] = request.temperature
        return await self._client.post(self._format.path, body, request.timeout)
