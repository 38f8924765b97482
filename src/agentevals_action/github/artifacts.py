"""GitHub's artifact service: the upload of one file as it is, so that it opens in the browser.

The requests are those of https://github.com/actions/toolkit/tree/main/packages/artifact (6.2, with
`skipArchive`): CreateArtifact, the content to the address in the reply, FinalizeArtifact."""

import asyncio
import base64
import hashlib
from collections.abc import Awaitable, Callable, Mapping
from dataclasses import dataclass, field
from typing import TypeVar

import httpx
from pydantic import AliasChoices, Field
from tenacity import AsyncRetrying, retry_if_exception_type, stop_after_attempt
from tenacity.wait import wait_exponential_jitter

from agentevals_action import __version__
from agentevals_action.errors import HostError
from agentevals_action.formatting import cut_line
from agentevals_action.github.client.replies import Reply
from agentevals_action.github.report_artifact import why_unsupported
from agentevals_action.github.runner.runner_environment import RunnerEnvironment
from agentevals_action.model.validation.json_values import parse_json

R = TypeVar("R", bound=Reply)
T = TypeVar("T")

_SERVICE = "/twirp/github.actions.results.api.v1.ArtifactService"
#: The first version of artifacts that need not be archives.
_VERSION = 7
_ATTEMPTS = 4
_REQUEST_SECONDS = 15.0
#: Time limit of an upload with all its repetitions, in seconds.
_SECONDS = 60.0
#: Replies that are repeated, as by the toolkit.
_UNAVAILABLE = frozenset({429, 500, 502, 503, 504})


class _Created(Reply):
    """A new artifact, and the address that takes its content."""

    ok: bool = False  # JSON of protobuf leaves `false` out
    address: str = Field(validation_alias=AliasChoices("signed_upload_url", "signedUploadUrl"))


class _Finalized(Reply):
    """A complete artifact; its id is a text in JSON of protobuf."""

    ok: bool = False
    id: int = Field(strict=False, validation_alias=AliasChoices("artifact_id", "artifactId"))


class _Unavailable(HostError):
    """A failure that may not happen again."""


@dataclass(frozen=True)
class ArtifactService:
    """The artifact service that takes files of this job; `seconds` limit an upload."""

    url: str
    token: str = field(repr=False)
    seconds: float = _SECONDS
    first_wait_seconds: float = 1.0

    async def upload(self, name: str, content: bytes, mime_type: str) -> int:
        """Uploads a file under a name that is new in the run; its id. HostError states what
        failed, without the token and without the signed address."""
        run, job = _backend_ids(self.token)
        artifact = {
            "workflow_run_backend_id": run,
            "workflow_job_run_backend_id": job,
            "name": name,
        }
        try:
            async with (
                asyncio.timeout(self.seconds),
                httpx.AsyncClient(
                    headers={"User-Agent": f"agentevals-action/{__version__}"},
                    timeout=_REQUEST_SECONDS,
                ) as client,
            ):
                created = await self._repeat(
                    lambda: self._call(
                        client,
                        "CreateArtifact",
                        {**artifact, "version": _VERSION, "mime_type": mime_type},
                        _Created,
                    )
                )
                await self._repeat(lambda: _put(client, created.address, content, mime_type))
                digest = f"sha256:{hashlib.sha256(content).hexdigest()}"
                finalized = await self._repeat(
                    lambda: self._call(
                        client,
                        "FinalizeArtifact",
                        {**artifact, "size": str(len(content)), "hash": digest},
                        _Finalized,
                    )
                )
        except TimeoutError:
            raise HostError(f"it took longer than {self.seconds:g} s") from None
        return finalized.id

    async def _call(
        self, client: httpx.AsyncClient, method: str, message: Mapping[str, object], model: type[R]
    ) -> R:
        # Only this request has the token: the storage behind the signed address does not need it.
        response = await _sent(
            method,
            lambda: client.post(
                httpx.URL(self.url).join(f"{_SERVICE}/{method}"),
                json=message,
                headers={"Authorization": f"Bearer {self.token}"},
            ),
        )
        if not response.is_success:
            raise _refusal(method, response)
        try:
            reply = model.model_validate(parse_json(response.content))
        except ValueError:  # its text would quote the signed address
            raise HostError(f"the reply to {method} has an unexpected structure") from None
        if not getattr(reply, "ok", False):
            raise HostError(f"the artifact service did not accept {method}")
        return reply

    async def _repeat(self, call: Callable[[], Awaitable[T]]) -> T:
        """Calls, again while the service is unavailable."""
        first = self.first_wait_seconds
        async for attempt in AsyncRetrying(
            retry=retry_if_exception_type(_Unavailable),
            stop=stop_after_attempt(_ATTEMPTS),
            wait=wait_exponential_jitter(initial=first, jitter=first / 4),
            reraise=True,
        ):
            with attempt:
                return await call()
        raise AssertionError("the last attempt returns or raises")


def artifact_service(runner: RunnerEnvironment) -> ArtifactService | str:
    """The service that the runner names; the reason why there is none."""
    if reason := why_unsupported(runner.server_url):
        return reason
    if not runner.runtime_token or not runner.results_url:
        return "the runner gives this step no ACTIONS_RUNTIME_TOKEN and ACTIONS_RESULTS_URL"
    return ArtifactService(runner.results_url, runner.runtime_token)


def _backend_ids(token: str) -> tuple[str, str]:
    """The service's ids of the run and the job, from the token's claims; its signature is the
    service's to check."""
    try:
        payload = token.split(".")[1]
        claims = parse_json(base64.urlsafe_b64decode(payload + "=" * (-len(payload) % 4)))
        scopes = claims["scp"].split()
    except (AttributeError, LookupError, TypeError, ValueError):  # they may quote the token
        scopes = []
    for scope in scopes:
        match scope.split(":"):
            case ["Actions.Results", run, job]:
                return run, job
    raise HostError("ACTIONS_RUNTIME_TOKEN does not name the run and the job")


async def _put(client: httpx.AsyncClient, address: str, content: bytes, mime_type: str) -> None:
    """https://learn.microsoft.com/rest/api/storageservices/put-blob"""
    headers = {
        "Content-Type": mime_type,
        "x-ms-blob-type": "BlockBlob",
        "x-ms-blob-content-type": mime_type,
    }
    response = await _sent(
        "the upload", lambda: client.put(address, content=content, headers=headers)
    )
    if not response.is_success:
        raise _refusal("the upload", response)


async def _sent(what: str, send: Callable[[], Awaitable[httpx.Response]]) -> httpx.Response:
    try:
        return await send()
    except (httpx.TransportError, OSError) as error:
        raise _Unavailable(f"no reply to {what} ({type(error).__name__})") from None
    except (httpx.HTTPError, httpx.InvalidURL, ValueError) as error:
        # From None: texts of these errors quote signed addresses and headers.
        raise HostError(f"{what} could not be sent ({type(error).__name__})") from None


def _refusal(what: str, response: httpx.Response) -> HostError:
    status = response.status_code
    message = f"the reply to {what} is {status}"
    if reason := _reason(response):
        message = f"{message}, {reason}"
    if status in _UNAVAILABLE:
        return _Unavailable(message)
    if status == httpx.codes.CONFLICT:
        return HostError(message, "give each gate of a workflow its own `comment-id`")
    if "insufficient usage" in message:
        return HostError(message, "the storage for artifacts is full: delete old artifacts")
    return HostError(message)


def _reason(response: httpx.Response) -> str:
    """The message of a Twirp error, or the code of the storage: the storage's message would quote
    parts of the signed address."""
    if code := response.headers.get("x-ms-error-code"):
        return cut_line(code, 100)
    try:
        return cut_line(str(parse_json(response.content)["msg"]), 200)
    except (LookupError, TypeError, ValueError):
        return ""
