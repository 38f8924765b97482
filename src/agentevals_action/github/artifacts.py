"""GitHub's artifact service: the upload of one file as it is, so that it opens in the browser.

The requests are those of https://github.com/actions/toolkit/tree/main/packages/artifact (6.2, with
`skipArchive`): CreateArtifact, the content to the address in the reply, FinalizeArtifact."""

import asyncio
import base64
import hashlib
from collections.abc import Mapping
from dataclasses import dataclass, field

import httpx
from pydantic import AliasChoices, BaseModel, Field
from tenacity import AsyncRetrying, retry_if_exception_type, stop_after_attempt
from tenacity.wait import wait_exponential_jitter

from agentevals_action import __version__
from agentevals_action.errors import HostError
from agentevals_action.formatting import cut_line
from agentevals_action.github.report_artifact import why_unsupported
from agentevals_action.github.runner.runner_environment import RunnerEnvironment
from agentevals_action.validation.json_values import parse_json

_SERVICE = "/twirp/github.actions.results.api.v1.ArtifactService"
#: The first version of artifacts that need not be archives.
_VERSION = 7
_ATTEMPTS = 4
_REQUEST_SECONDS = 15.0
#: Time limit of an upload with all its repetitions, in seconds.
_SECONDS = 60.0
#: Replies that are repeated, as by the toolkit.
_UNAVAILABLE = frozenset({429, 500, 502, 503, 504})


class _Reply(BaseModel):
    """A reply of the service in JSON of protobuf: it leaves `false` out, and an id is a text.

    `address` takes the content of a new artifact, `id` names a complete artifact."""

    ok: bool = False
    address: str = Field("", validation_alias=AliasChoices("signed_upload_url", "signedUploadUrl"))
    id: int = Field(0, validation_alias=AliasChoices("artifact_id", "artifactId"))


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
        # https://learn.microsoft.com/rest/api/storageservices/put-blob
        headers = {
            "Content-Type": mime_type,
            "x-ms-blob-type": "BlockBlob",
            "x-ms-blob-content-type": mime_type,
        }
        digest = f"sha256:{hashlib.sha256(content).hexdigest()}"
        agent = {"User-Agent": f"agentevals-action/{__version__}"}
        try:
            async with (
                asyncio.timeout(self.seconds),
                httpx.AsyncClient(headers=agent, timeout=_REQUEST_SECONDS) as client,
            ):
                new = {**artifact, "version": _VERSION, "mime_type": mime_type}
                created = await self._call(client, "CreateArtifact", new)
                # The storage behind the signed address does not need the token.
                put = client.build_request("PUT", created.address, content=content, headers=headers)
                await self._send(client, "the upload", put)
                complete = {**artifact, "size": str(len(content)), "hash": digest}
                return (await self._call(client, "FinalizeArtifact", complete)).id
        except TimeoutError:
            raise HostError(f"it took longer than {self.seconds:g} s") from None
        except (httpx.InvalidURL, ValueError) as error:
            # From None: texts of these errors quote signed addresses and headers.
            raise HostError(f"no valid address or token ({type(error).__name__})") from None

    async def _call(
        self, client: httpx.AsyncClient, method: str, message: Mapping[str, object]
    ) -> _Reply:
        url = httpx.URL(self.url).join(f"{_SERVICE}/{method}")
        headers = {"Authorization": f"Bearer {self.token}"}
        request = client.build_request("POST", url, json=message, headers=headers)
        response = await self._send(client, method, request)
        try:
            reply = _Reply.model_validate(parse_json(response.content))
        except ValueError:  # its text would quote the signed address
            raise HostError(f"the reply to {method} has an unexpected structure") from None
        if not reply.ok or not (reply.address or reply.id):
            raise HostError(f"the artifact service did not accept {method}")
        return reply

    async def _send(
        self, client: httpx.AsyncClient, what: str, request: httpx.Request
    ) -> httpx.Response:
        """Sends a request, again while the service is unavailable."""
        first = self.first_wait_seconds
        async for attempt in AsyncRetrying(
            retry=retry_if_exception_type(_Unavailable),
            stop=stop_after_attempt(_ATTEMPTS),
            wait=wait_exponential_jitter(initial=first, jitter=first / 4),
            reraise=True,
        ):
            with attempt:
                try:
                    response = await client.send(request)
                except (httpx.HTTPError, OSError) as error:  # their texts quote the address
                    raise _Unavailable(f"no reply to {what} ({type(error).__name__})") from None
                if not response.is_success:
                    raise _refusal(what, response)
        return response


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
