"""The body of a reply as it was before it was packed for its way."""

import zlib

from agentevals_action.model.json_values import shown

#: What may be asked for, as `Accept-Encoding` names it.
ENCODINGS = "gzip, deflate"
_GZIP, _ZLIB, _BARE = 16 + zlib.MAX_WBITS, zlib.MAX_WBITS, -zlib.MAX_WBITS
#: `deflate` means zlib's format; some servers send it without zlib's head.
#: https://www.rfc-editor.org/rfc/rfc9110#section-8.4.1.2
_FORMATS = {"gzip": (_GZIP,), "x-gzip": (_GZIP,), "deflate": (_ZLIB, _BARE)}


def unpacked(body: bytes, encoding: str, limit: int) -> bytes:
    """The body unpacked as `Content-Encoding` says; ValueError when it is packed in any other way,
    is damaged, or would be over `limit` bytes, of which no more is unpacked."""
    name = encoding.strip().lower()
    if not body or name in ("", "identity"):
        return body
    if name not in _FORMATS:
        raise ValueError(f"the reply is packed in a way that was not asked for ({shown(encoding)})")
    for bits in _FORMATS[name]:
        stream = zlib.decompressobj(bits)
        try:
            data = stream.decompress(body, limit + 1)
        except zlib.error:
            continue
        if len(data) > limit:
            raise too_large(limit)
        if stream.eof and not stream.unused_data:
            return data
        break
    raise ValueError(
        f"the reply is damaged: it is not {name}, as it says, from its first byte to its last"
    )


def too_large(limit: int) -> ValueError:
    """The error of a reply that is over so many bytes."""
    return ValueError(f"the reply is over {limit // 1024**2} MB")
