"""The receiver of one sample's spans: an HTTP server on the loopback, to which the exporter of the
child process sends them."""

import secrets
import zlib
from collections.abc import AsyncIterator, Mapping
from contextlib import asynccontextmanager
from dataclasses import dataclass, field
from http import HTTPStatus

from agentevals_action.system.loopback_server import (
    HttpAnswer,
    HttpRequest,
    LoopbackServer,
    RefusedRequest,
    is_token,
)
from agentevals_action.targets.otel.span_trace import incomplete
from agentevals_action.targets.otel.spans import Span, read_request

#: Bytes of a request's body, decompressed, and of all bodies of a sample. The Collector's limit of
#: a request is 20 MB.
MAX_BODY, MAX_TOTAL = 20 * 1024 * 1024, 64 * 1024 * 1024
#: Seconds to wait, after the end of the child, for the requests that it has sent.
_SETTLE = 1.0
_HEADER = "x-agentevals-token"
_TRACES = "/v1/traces"
_TYPES = {"application/x-protobuf": True, "application/json": False}
_MEGABYTE = 1024**2

#: Variables that the agent sees unless the workflow passes others on: the spans contain the
#: messages, and no attribute is left out (a message can be several, and the limit is 128).
CONTENT_VARIABLES: Mapping[str, str] = {
    "OTEL_SEMCONV_STABILITY_OPT_IN": "gen_ai_latest_experimental",
    "OTEL_INSTRUMENTATION_GENAI_CAPTURE_MESSAGE_CONTENT": "SPAN_ONLY",
    "OTEL_SPAN_ATTRIBUTE_COUNT_LIMIT": "100000",
}


@dataclass
class SpanReceiver:
    """The spans of one sample. `environment` are the variables that lead an exporter here."""

    token: str = field(default_factory=lambda: secrets.token_urlsafe(32))
    url: str = ""
    #: Why the trace is not complete; empty if it is.
    problem: str = ""
    #: Whether it is protobuf, and body of each request.
    _bodies: list[tuple[bool, bytes]] = field(default_factory=list)

    @property
    def environment(self) -> Mapping[str, str]:
        """The variables of the child process."""
        return {
            "OTEL_EXPORTER_OTLP_ENDPOINT": self.url,
            "OTEL_EXPORTER_OTLP_HEADERS": f"{_HEADER}={self.token}",
            "OTEL_EXPORTER_OTLP_PROTOCOL": "http/protobuf",
            "OTEL_TRACES_EXPORTER": "otlp",
            "OTEL_METRICS_EXPORTER": "none",
            "OTEL_LOGS_EXPORTER": "none",
        }

    def spans(self) -> list[Span]:
        """The spans that were received. Complete after `listen`. AttemptError of kind `target` if
        spans are missing or not valid."""
        if self.problem:
            raise incomplete(self.problem)
        try:
            requests = (read_request(body, is_protobuf=form) for form, body in self._bodies)
            return [span for spans in requests for span in spans]
        except ValueError as error:
            raise incomplete(str(error)) from None

    @asynccontextmanager
    async def listen(self) -> AsyncIterator[None]:
        """Listens on a free port of the loopback while the child process runs. At the end, the
        requests that the child sent before its own end are awaited for a second. OSError if no port
        can be opened."""
        server = LoopbackServer(self._check, self._answer, self._refuse, MAX_BODY)
        async with server.listen() as self.url:
            try:
                yield
            finally:
                await server.settle(_SETTLE)

    def _check(self, request: HttpRequest) -> None:
        if not is_token(request.headers.get(_HEADER, ""), self.token):
            raise RefusedRequest(HTTPStatus.UNAUTHORIZED, f"the header {_HEADER} is required")

    def _refuse(self, error: RefusedRequest) -> HttpAnswer:
        """The answer to a refused request. Spans that are refused are missing in the trace."""
        if error.status != HTTPStatus.UNAUTHORIZED:
            self.problem = self.problem or str(error)
        return HttpAnswer(str(error).encode("ascii", "replace"), "text/plain", error.status)

    async def _answer(self, request: HttpRequest) -> HttpAnswer:
        """Keeps the body of a request with spans; metrics and logs are not read. It is read after
        the end of the child: reading does not delay the exporter, for which the child may wait."""
        content_type = request.headers.get("content-type", "").partition(";")[0].strip().lower()
        is_protobuf = _TYPES.get(content_type)
        if request.path == _TRACES:
            if is_protobuf is None:
                message = f"a request has the content type {content_type[:100]!r}"
                raise RefusedRequest(HTTPStatus.UNSUPPORTED_MEDIA_TYPE, message)
            body = _decompressed(request)
            if sum(len(kept) for _, kept in self._bodies) + len(body) > MAX_TOTAL:
                message = f"there are more than {MAX_TOTAL // _MEGABYTE} MB of spans"
                raise RefusedRequest(HTTPStatus.REQUEST_ENTITY_TOO_LARGE, message)
            self._bodies.append((is_protobuf, body))
        return HttpAnswer(b"" if is_protobuf else b"{}", content_type or "application/json")


def _decompressed(request: HttpRequest) -> bytes:
    """The body; a bomb is read up to the limit alone."""
    encoding = request.headers.get("content-encoding", "identity").lower()
    if encoding == "identity":
        return request.body
    if encoding != "gzip":
        message = f"a request has the content encoding {encoding[:100]!r}"
        raise RefusedRequest(HTTPStatus.UNSUPPORTED_MEDIA_TYPE, message)
    decompressor = zlib.decompressobj(zlib.MAX_WBITS | 16)
    try:
        body = decompressor.decompress(request.body, MAX_BODY + 1)
    except zlib.error as error:
        raise RefusedRequest(HTTPStatus.BAD_REQUEST, f"a body is not gzip: {error}") from None
    if len(body) > MAX_BODY:
        message = f"a body is longer than {MAX_BODY} bytes when decompressed"
        raise RefusedRequest(HTTPStatus.REQUEST_ENTITY_TOO_LARGE, message)
    return body
