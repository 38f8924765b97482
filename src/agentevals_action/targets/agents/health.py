"""The healthcheck of an agent behind a command: a command or a URL."""

from typing import Annotated, Any, Self
from urllib.parse import urlsplit

from pydantic import AfterValidator, Field, model_validator

from agentevals_action.errors import AttemptError, TargetDead
from agentevals_action.model.validation.file_model import FileModel, ListOf
from agentevals_action.targets.agents import placeholders
from agentevals_action.targets.apis.http_client import HttpClient, check_url
from agentevals_action.targets.apis.http_errors import Service

#: Words, or a script of `sh`, in which a prompt cannot become code.
Command = Annotated[str | ListOf[str], AfterValidator(placeholders.check)]


def _check_url(url: str) -> str:
    return url if "${{" in url else check_url(url)  # else validated with its variables filled in


class Healthcheck(FileModel):
    """A command that must succeed, or a URL that must answer, once before the target is used."""

    command: Command | None = Field(
        None, description="The command: a list of words, or a script of `sh`."
    )
    url: Annotated[str, AfterValidator(_check_url)] | None = Field(
        None, description="In place of a command: a URL whose GET must be answered with 2xx."
    )
    cwd: str | None = Field(None, description="The command's folder; the target's by default.")
    timeout_seconds: float = Field(60, gt=0, description="Seconds that it may take.")

    @model_validator(mode="before")
    @classmethod
    def _read_command(cls, value: Any) -> Any:
        return {"command": value} if isinstance(value, str | list | tuple) else value

    @model_validator(mode="after")
    def _check_choice(self) -> Self:
        if (self.command is None) == (self.url is None):
            raise ValueError("a healthcheck is a `command` or a `url`; give one of them")
        return self


async def check_url_answers(url: str, timeout: float) -> None:
    """Sends a GET to a URL; TargetDead unless it is answered with 2xx within `timeout` seconds."""
    parts = urlsplit(url)
    path = parts.path.lstrip("/") + (f"?{parts.query}" if parts.query else "")
    service = Service(
        f"{parts.scheme}://{parts.netloc}/",
        "let its URL be asked without a key, or use a command",
        "healthcheck.url",
    )
    client = HttpClient(service)
    try:
        await client.send("GET", path, None, timeout)
    except AttemptError as error:
        raise TargetDead(f"the healthcheck failed: {error}", error.hint) from None
    finally:
        await client.close()
