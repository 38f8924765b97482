"""Whether an agent behind a command is there: the healthcheck of a target, by command or by URL."""

from typing import Annotated, Any, Self
from urllib.parse import urlsplit

from msgspec import Meta

from agentevals_action.entries.entry import Checked, Entry, Written
from agentevals_action.errors import AttemptError, TargetDead
from agentevals_action.targets.agents import placeholders
from agentevals_action.targets.apis.http_client import HttpClient
from agentevals_action.targets.apis.http_errors import Service


def _checked(command: str | tuple[str, ...]) -> str | tuple[str, ...]:
    placeholders.check(command)
    return command


#: Words, or a script of `sh`, in which no prompt can become code.
Command = Annotated[str | tuple[str, ...], Checked(_checked)]


def _is_url(url: str) -> str:
    if "${{" not in url:  # else it is looked at again once its variables are known
        parts = urlsplit(url)
        if parts.scheme not in ("http", "https") or not parts.hostname:
            raise ValueError("write a URL that begins with http:// or https://")
    return url


class Healthcheck(Entry):
    """A command that must succeed, or a URL that must answer, once before the target is used."""

    command: Annotated[
        Command | None, Meta(description="The command: a list of words, or a script of `sh`.")
    ] = None
    url: Annotated[
        Annotated[str, Checked(_is_url)] | None,
        Meta(description="In place of a command: a URL whose GET must be answered with 2xx."),
    ] = None
    cwd: Annotated[
        str | None, Meta(description="The command's folder; the target's by default.")
    ] = None
    timeout_seconds: Annotated[float, Meta(gt=0, description="Seconds that it may take.")] = 60

    @classmethod
    def long_form(cls, value: Any) -> Any:
        """A command alone is the healthcheck too."""
        return {"command": value} if isinstance(value, str | list | tuple) else value

    def completed(self, _written: Written) -> Self:
        """Itself; ValueError when it is not one of the two."""
        if (self.command is None) == (self.url is None):
            raise ValueError("a healthcheck is a `command` or a `url`; give one of them")
        return self


async def ask(url: str, timeout: float) -> None:
    """Puts a GET to a URL; TargetDead when it is not answered with 2xx within `timeout` seconds."""
    parts = urlsplit(url)
    path = parts.path.lstrip("/") + (f"?{parts.query}" if parts.query else "")
    manner = Service(
        f"{parts.scheme}://{parts.netloc}/",
        "let its URL be asked without a key, or use a command",
        "healthcheck.url",
    )
    endpoint = HttpClient(manner)
    try:
        await endpoint.send("GET", path, None, timeout)
    except AttemptError as error:
        raise TargetDead(f"the healthcheck failed: {error}", error.hint) from None
    finally:
        await endpoint.close()
