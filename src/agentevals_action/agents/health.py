"""Whether an agent behind a command is there: the healthcheck of a target, by command or by URL."""

from typing import Annotated, Any, Self
from urllib.parse import urlsplit

from pydantic import AfterValidator, BaseModel, ConfigDict, Field, Strict, model_validator

from agentevals_action.agents import placeholders
from agentevals_action.apis.endpoint import Endpoint, Manner
from agentevals_action.errors import AttemptError, TargetDead


def _checked(command: str | tuple[str, ...]) -> str | tuple[str, ...]:
    placeholders.check(command)
    return command


#: Words, or a script of `sh`, in which no prompt can become code.
Command = Annotated[str | Annotated[tuple[str, ...], Strict(False)], AfterValidator(_checked)]


def _is_url(url: str) -> str:
    if "${{" not in url:  # else it is looked at again once its variables are known
        parts = urlsplit(url)
        if parts.scheme not in ("http", "https") or not parts.hostname:
            raise ValueError("write a URL that begins with http:// or https://")
    return url


class Healthcheck(BaseModel):
    """A command that must succeed, or a URL that must answer, once before the target is used."""

    model_config = ConfigDict(frozen=True, strict=True, extra="ignore", defer_build=True)

    command: Command | None = Field(default=None, description="The command: a list of words, or a script of `sh`.")
    url: Annotated[str, AfterValidator(_is_url)] | None = Field(
        default=None, description="In place of a command: a URL whose GET must be answered with 2xx."
    )
    cwd: str | None = Field(default=None, description="The command's folder; the target's by default.")
    timeout_seconds: Annotated[float, Field(gt=0)] = Field(default=60, description="Seconds that it may take.")

    @model_validator(mode="before")
    @classmethod
    def _short_form(cls, data: Any) -> Any:
        return {"command": data} if isinstance(data, str | list | tuple) else data

    @model_validator(mode="after")
    def _is_one(self) -> Self:
        if (self.command is None) == (self.url is None):
            raise ValueError("a healthcheck is a `command` or a `url`; give one of them")
        return self


async def ask(url: str, timeout: float) -> None:
    """Puts a GET to a URL; TargetDead when it is not answered with 2xx within `timeout` seconds."""
    parts = urlsplit(url)
    path = parts.path.lstrip("/") + (f"?{parts.query}" if parts.query else "")
    manner = Manner(f"{parts.scheme}://{parts.netloc}/", "let its URL be asked without a key, or use a command", "healthcheck.url")
    endpoint = Endpoint(manner)
    try:
        await endpoint.send("GET", path, None, timeout)
    except AttemptError as error:
        raise TargetDead(f"the healthcheck failed: {error}", error.hint) from None
    finally:
        await endpoint.close()
