"""Pure: a reply as the bytes that the cache stores, and the seal that tells whether they are what
was stored."""

import hmac
import json
import zlib
from dataclasses import replace

from pydantic import TypeAdapter

from agentevals_action.model.trace import Trace
from agentevals_action.targets.cache.keys import Key

_TRACE = TypeAdapter(Trace)

#: Characters of a reply that are stored at most, and that stored bytes may unfold to.
LIMIT = 16 * 1024 * 1024
_WORTH_PACKING = 512
_PLAIN, _PACKED = b"j", b"z"


def text_of(trace: Trace) -> str | None:
    """A reply as JSON, in ASCII; None when it is too large or too deep to be stored, or holds what
    JSON cannot."""
    try:
        text = json.dumps(
            _TRACE.dump_python(replace(trace, cached=False), mode="json"), separators=(",", ":")
        )
    except (TypeError, ValueError, RecursionError):
        return None
    return text if len(text) <= LIMIT else None


def packed(text: str) -> bytes:
    """The JSON as it is stored: compressed where that pays."""
    data = text.encode("ascii")
    small = zlib.compress(data) if len(data) > _WORTH_PACKING else data
    return _PACKED + small if len(small) < len(data) else _PLAIN + data


def unpacked(value: bytes) -> Trace | None:
    """The reply, marked as one out of the cache; None when the bytes hold none. Never unfolds more
    than the limit."""
    try:
        data = value[1:]
        if value[:1] == _PACKED:
            unfolding = zlib.decompressobj()
            data = unfolding.decompress(data, LIMIT)
            if not unfolding.eof:
                return None
        elif value[:1] != _PLAIN:
            return None
        trace = _TRACE.validate_json(data, strict=True)
    except (zlib.error, ValueError, RecursionError):
        return None
    return replace(trace, cached=True)


def seal(key: Key, value: bytes) -> bytes:
    """The HMAC-SHA256 of a row: of the request that it answers, and of its bytes."""
    return hmac.digest(key.seal, b"reply\0" + bytes.fromhex(key.digest) + value, "sha256")


def is_sealed(key: Key, value: bytes, mark: bytes) -> bool:
    """Whether a row is what was stored for this key by somebody who knows its target's secrets."""
    return hmac.compare_digest(seal(key, value), mark)
