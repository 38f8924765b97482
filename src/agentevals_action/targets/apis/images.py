"""Pictures in messages as models receive them: media type and base64, or a `data:` URI."""

import base64
import binascii
from dataclasses import dataclass

from agentevals_action.model.suite import Block

#: Maximum size of a picture in bytes; vendors refuse larger ones.
SIZE_LIMIT = 20 * 1024 * 1024
_KNOWN = (
    (b"\x89PNG\r\n\x1a\n", "image/png"),
    (b"\xff\xd8\xff", "image/jpeg"),
    (b"GIF87a", "image/gif"),
    (b"GIF89a", "image/gif"),
)


@dataclass(frozen=True)
class Picture:
    """A picture to send: `media_type` as `image/png`, `data` in base64 on one line."""

    media_type: str
    data: str

    @property
    def uri(self) -> str:
        """The picture as a `data:` URI."""
        return f"data:{self.media_type};base64,{self.data}"


def media_type(data: bytes) -> str | None:
    """The media type by the first bytes: PNG, JPEG, GIF or WebP; None for anything else."""
    if data[:4] == b"RIFF" and data[8:12] == b"WEBP":
        return "image/webp"
    return next((name for magic, name in _KNOWN if data.startswith(magic)), None)


def picture(block: Block) -> Picture:
    """An image block's picture; ValueError if it is not one or over 20 MB. Vendors refuse a type
    that is not that of the bytes, so the bytes decide."""
    name = f"the picture {block.value}" if block.path is not None else "an image block's picture"
    if block.path is not None:
        declared, data = None, block.data
    else:
        declared, data = _inline(str(block.value))
    if len(data) > SIZE_LIMIT:
        raise ValueError(f"{name} is over 20 MB")
    found = media_type(data) or declared
    if found is None:
        raise ValueError(f"{name} is not a PNG, JPEG, GIF or WebP")
    return Picture(found, base64.b64encode(data).decode())


def _inline(value: str) -> tuple[str | None, bytes]:
    text = "".join(value.split())  # base64 is often wrapped
    declared = None
    if text[:5].lower() == "data:":
        head, comma, text = text[5:].partition(",")
        declared, *parameters = head.lower().split(";")
        if (
            not comma
            or not declared.startswith("image/")
            or declared == "image/"
            or "base64" not in parameters
        ):
            raise ValueError("an image block's `data:` URI must be `data:image/…;base64,…`")
    try:
        return declared, base64.b64decode(text, validate=True)
    except (binascii.Error, ValueError) as error:  # ValueError: characters beyond ASCII
        raise ValueError(f"an image block's value is neither a file nor base64 ({error})") from None
