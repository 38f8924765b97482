"""`http`: an agent behind an HTTP service, which runs already, or is started for each side. A test
goes in as JSON; the answer is at a path of the reply."""

import asyncio
import functools
import json
import re
from collections.abc import Callable, Mapping, Sequence
from dataclasses import replace
from pathlib import Path
from typing import Annotated, Any, ClassVar, Literal, Self
from urllib.parse import urlsplit

from pydantic import AfterValidator, BeforeValidator, Field, model_validator

from agentevals_action.errors import AttemptError
from agentevals_action.formatting import joined
from agentevals_action.model.diagnostic import NamedFile
from agentevals_action.model.messages import Message, wire_messages
from agentevals_action.model.target import Provider, ProviderContext, Request
from agentevals_action.model.trace import Trace
from agentevals_action.system import redaction
from agentevals_action.system.files.paths import Folder
from agentevals_action.system.services import PORT, StartedService
from agentevals_action.targets import variables
from agentevals_action.targets.dialects.envelope import read_reply
from agentevals_action.targets.message_texts import prompt_text
from agentevals_action.targets.models.errors import Service
from agentevals_action.targets.models.http_client import (
    HttpClient,
    HttpReply,
    check_url,
    encode,
    get_origin,
)
from agentevals_action.targets.programs import placeholders
from agentevals_action.targets.programs.command import CommandLauncher, CommandTarget
from agentevals_action.templating import render_value, unknown_variables
from agentevals_action.validation.json_values import (
    MISSING,
    describe_json,
    look_up,
    read_path,
)

#: The variables of a template; the expected answer is not one of them.
VARIABLES = ("prompt", "input", "id", "sample", "conversation_id", "metadata", "mcp")
#: The variables that differ from test to test: without one of them, every test asks the same.
_OF_TEST = frozenset({"prompt", "input", "id", "metadata"})
_HEADER = re.compile(r"[!#$%&'*+.^_`|~0-9A-Za-z-]+")
#: Headers that follow from the request itself.
_RESERVED_HEADERS = frozenset({"host", "content-length", "transfer-encoding", "connection"})
#: The beginning of the address of a service that is started.
_STARTED = re.compile(r"http://(127\.0\.0\.1|localhost):\{PORT\}(?=[/?]|$)")
#: Seconds for a request that asks whether a service is ready.
_READY_TIMEOUT = 5.0


def _map_texts(value: Any, convert: Callable[[str, str], Any], path: str = "") -> Any:
    """JSON data with every text in it converted; `convert` also gets its path."""
    if isinstance(value, Mapping):
        return {
            key: _map_texts(item, convert, f"{path}.{key}" if path else key)
            for key, item in value.items()
        }
    if isinstance(value, list | tuple):
        return [_map_texts(item, convert, f"{path}[{index}]") for index, item in enumerate(value)]
    return convert(value, path) if isinstance(value, str) else value


def _check_body(body: Any) -> Any:
    if body is None:
        return None
    if not isinstance(body, Mapping | list | tuple):
        raise ValueError("write an object or a list, whose strings are templates")
    try:
        json.dumps(body, allow_nan=False, default=dict)
    except (TypeError, ValueError):
        problem = "it is not valid JSON; write texts, numbers, lists and objects"
        raise ValueError(problem) from None
    used: set[str] = set()

    def add_variables(text: str, path: str) -> None:
        try:
            used.update(_find_variables(text))
        except ValueError as error:
            raise ValueError(f"in `{path}`, {error}") from None

    _map_texts(body, add_variables)
    if _OF_TEST.isdisjoint(used):
        raise ValueError("it has nothing of the test; write `{{ prompt }}` in it")
    return body


def _find_variables(text: str) -> Sequence[str]:
    """The variables in a text; ValueError if it is not a valid template once the values of `${{ }}`
    are in it, or a placeholder is misspelled."""
    filled = variables.resolve(text, dict.fromkeys(variables.names_in(text), "x"))
    used = unknown_variables(filled, frozenset(), "the text")
    choices = ", ".join(f"`{name}`" for name in VARIABLES)
    if unknown := [f"`{name}`" for name in used if name not in VARIABLES]:
        names = ", ".join(unknown)
        raise ValueError(f"it names {names}, which does not exist; write any of {choices}")
    for written, name in placeholders.in_braces(text):
        is_single = written == f"{{{name}}}"
        if is_single and (name.lower() in VARIABLES or name in placeholders.NAMES):
            advice = f"write `{{{{ }}}}` with any of {choices}"
            raise ValueError(f"`{written}` is not a placeholder; {advice}")
    return used


def _check_url(url: str) -> str:
    if "${{" not in url:  # else validated with its variables filled in
        check_url(PORT.sub("1", url))
    return url


def _check_path(path: str) -> str:
    read_path(path)
    return path


def _check_headers(headers: dict[str, str]) -> dict[str, str]:
    for name in headers:
        if not _HEADER.fullmatch(name) or name.lower() in _RESERVED_HEADERS:
            raise ValueError(f"{describe_json(name)} cannot be sent; leave it out")
    return headers


def _check_quotes(command: Any) -> Any:
    if isinstance(command, list) and {"PORT": None} in command:
        raise ValueError('in a list, write "{PORT}" in quotes; without them it is an object')
    return command


def _check_start(command: str | tuple[str, ...]) -> str | tuple[str, ...]:
    words = placeholders.split_command(command)
    if used := sorted(placeholders.used_in(command)):
        raise ValueError(f"`{{{used[0]}}}` has no meaning here; the question is in the request")
    if not any(map(PORT.search, words)):
        raise ValueError("it gets no port; write `{PORT}` where the service expects it")
    return command


def _check_ready(ready: str | float) -> str | float:
    if isinstance(ready, str) and not ready.startswith("/"):
        raise ValueError("write a path as `/health`, or a number of seconds")
    return ready


class Http(CommandTarget):
    """An agent behind an HTTP service."""

    provider: ClassVar[str] = "http"

    url: Annotated[str, AfterValidator(_check_url)] = Field(description="The service.")
    method: Literal["POST", "PUT", "PATCH"] = Field("POST", description="POST, PUT or PATCH.")
    headers: Annotated[dict[str, str], AfterValidator(_check_headers)] = Field(
        default_factory=dict, description="Headers of the request; keys as `${{ NAME }}`."
    )
    body: Annotated[Any, AfterValidator(_check_body)] = Field(
        None,
        description="An object or a list whose strings are Jinja templates, sent as JSON (`{{ "
        f"input }}}}` alone is the data itself). Variables: {', '.join(VARIABLES)}; one of "
        "prompt, input, id and metadata must be in it. Without it: "
        "{prompt, messages, id}, and the conversation_id and the mcp (url and headers of the "
        "suite's tools) of a test that has one.",
    )
    output_path: Annotated[str, AfterValidator(_check_path)] | None = Field(
        None,
        description="The path of the answer in a JSON reply, as choices.0.message.content; without "
        "it the reply is the answer.",
    )

    cwd: str | None = Field(
        None,
        description="Folder that the service runs in, relative to the suite's (the default); a "
        "leading / is the repository's root.",
    )
    start: Annotated[
        Annotated[placeholders.Command, AfterValidator(_check_start)] | None,
        BeforeValidator(_check_quotes),
    ] = Field(
        None,
        description="The command that starts the service, once for head and once for base, in the "
        "files of that side: a list of words, or a script of `sh`. {PORT} in it and in `url` "
        "(`http://127.0.0.1:{PORT}/…`) is a free port.",
    )
    ready: (
        Annotated[str | Annotated[float, Field(gt=0, le=600)], AfterValidator(_check_ready)] | None
    ) = Field(
        None,
        description="A path of the service, as /health, that answers with success when it is "
        "ready, or the seconds after its start; by default it is ready when it listens.",
    )

    @model_validator(mode="after")
    def _check_started(self) -> Self:
        if self.start is not None:
            if not _STARTED.match(self.url):
                raise ValueError("with `start`, begin `url` with http://127.0.0.1:{PORT}/")
            return self
        of_start = ("ready", "cwd", "env")
        unused = [f"`{name}`" for name in of_start if getattr(self, name) is not None]
        if PORT.search(self.url):
            unused.append("`{PORT}`")
        if unused:
            advice = "write the command that starts the service, or remove it"
            raise ValueError(f"{unused[0]} has no meaning without `start`; {advice}")
        return self

    @property
    def is_shared(self) -> bool:
        """Whether the service runs already: the target does not start it."""
        return self.start is None

    def destination(self) -> str:
        """The origin of the service."""
        return get_origin(self.url)

    def named_files(self, folder: Folder) -> Sequence[NamedFile]:
        """Words of the command that starts the service that are files of the repository."""
        return self.files_among(self.start or (), folder)

    def missing_script(self, folder: Folder) -> Path | None:
        """The file that its command runs, if there is no such file."""
        return self.script_missing_in(self.start or (), folder)

    def connect(self, context: ProviderContext) -> Provider:
        """The service; AttemptError if its `env` names a variable that the workflow does not pass
        on."""
        return _Started(self, context) if self.start else _Connected(self)


class _Connected(Provider):
    def __init__(self, target: Http) -> None:
        self._target = target
        # Secrets often end with a newline.
        headers = {name: value.strip() for name, value in target.headers.items()}
        keys = [value for name, value in headers.items() if redaction.looks_secret(name)]
        words = [word for value in keys for word in (value, *value.split())]
        self._service = Service(
            url=target.url,
            key_hint="check the credentials in the target's `headers`",
            url_field="url",
            headers=headers,
            secrets=tuple(word for word in words if len(word) >= redaction.MIN_LENGTH),
            is_local=target.start is not None,
        )
        self._clients: dict[str, HttpClient] = {}

    async def complete(self, request: Request) -> Trace:
        return await self._ask(self._target.url, request)

    async def _ask(self, url: str, request: Request) -> Trace:
        """The answer of the service at a URL."""
        target, client = self._target, self._client(url)
        try:
            body = _make_body(target, request)
        except (OSError, ValueError) as error:
            raise AttemptError("configuration", f"the request cannot be made: {error}") from None
        read = functools.partial(_read, path=target.output_path, question=request.messages)
        return await client.ask(target.method, body, request.timeout, read)

    def _client(self, url: str) -> HttpClient:
        if url not in self._clients:
            self._clients[url] = HttpClient(replace(self._service, url=url))
        return self._clients[url]

    async def check(self, request: Request) -> str:
        """One call."""
        await self.complete(request)
        return ""

    async def close(self) -> None:
        """Closes the connections."""
        for client in self._clients.values():
            await client.close()


class _Started(_Connected):
    """A service that is started before its first call."""

    def __init__(self, target: Http, context: ProviderContext) -> None:
        super().__init__(target)
        self._runner, self._services = CommandLauncher(target, context), context.services

    async def wait_until_ready(self, request: Request) -> None:
        """Waits until the service is ready."""
        await self._find_service(request).wait()

    async def complete(self, request: Request) -> Trace:
        service = self._find_service(request)
        try:
            return await self._ask(PORT.sub(f"{service.port}", self._target.url), request)
        except AttemptError as error:
            raise await service.explained(error) from None

    async def close(self) -> None:
        """Closes the connections, and ends the services."""
        await super().close()
        await self._services.close()

    def _find_service(self, request: Request) -> StartedService:
        """The service of the side of a request, in its tree, or in that of the judges.

        Attack: a pull request starts a program that keeps the key that base sends to its own."""
        words = placeholders.split_command(self._target.start or ())
        program = self._runner.program(words, replace(request, workspace=None))
        named = variables.names_in(self._target.definition)
        if unseen := [name for name in named if name not in program.environment]:
            problem = f"the service that `start` runs does not see {joined(unseen)}"
            advice = "name it in the input `env` (and in the target's `env`, if it has one)"
            raise AttemptError("configuration", problem, advice)
        ready = self._target.ready
        delay = ready if isinstance(ready, float | int) else 0.0
        return self._services.of(self._target.name, program, self._ask_ready, delay)

    async def _ask_ready(self, port: int) -> None:
        """AttemptError if the service at a port does not answer at the path `ready`, or does not
        listen."""
        url, ready = PORT.sub(f"{port}", self._target.url), self._target.ready
        if isinstance(ready, str):
            client = self._client(get_origin(url).removesuffix("/") + ready)
            await client.send("GET", None, _READY_TIMEOUT)
            return
        try:
            _, writer = await asyncio.open_connection(urlsplit(url).hostname, port)
        except OSError:
            raise AttemptError("target", f"nothing listens on its port {port}") from None
        writer.close()


def _make_body(target: Http, request: Request) -> bytes:
    """The body of a request; ValueError or OSError if the test cannot be put into it."""
    values = {
        "prompt": prompt_text(request.messages),
        "input": wire_messages(request.messages),
        "id": request.eval_id,
        "sample": request.attempt,
        "conversation_id": request.conversation_id,
        "metadata": request.metadata,
        "mcp": request.access.clients if request.access else None,
    }
    body = {"prompt": values["prompt"], "messages": values["input"], "id": values["id"]}
    of_some = ("conversation_id", "mcp")
    body |= {name: values[name] for name in of_some if values[name] is not None}
    if target.body is not None:
        body = _map_texts(
            target.body, lambda text, path: render_value(text, values, f"`body.{path}`")
        )
    try:
        return encode(body)
    except TypeError as error:
        raise ValueError(f"`body` is not valid JSON with its values: {error}") from None


def _read(reply: HttpReply, path: str | None, question: Sequence[Message]) -> Trace:
    """The trace of a reply, or of the value at a path of it; ValueError if it has no answer, or not
    a valid one."""
    if not reply.body.strip():
        raise ValueError("the reply is empty")
    if path is None:
        return read_reply(reply.body.decode("utf-8-sig", "replace"), question)
    data = reply.json()
    value = look_up(data, read_path(path))
    if value in (MISSING, None, ""):
        raise ValueError(f"the reply has no answer at `{path}`: it is {describe_json(data)}")
    if isinstance(value, str):
        return Trace((Message("assistant", value),))
    return read_reply(json.dumps(value, ensure_ascii=False), question)
