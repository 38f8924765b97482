"""Pictures in messages, as models get them: a `data:` URI."""

import base64
import binascii

from agentevals_action.model.suite import Block

#: Bytes of a picture that are sent at most; vendors refuse larger ones.
SIZE_LIMIT = 20 * 1024 * 1024
_KNOWN = ((b"\x89PNG\r\n\x1a\n", "image/png"), (b"\xff\xd8\xff", "image/jpeg"), (b"GIF87a", "image/gif"), (b"GIF89a", "image/gif"))


def media_type(data: bytes) -> str | None:
    """The media type that the first bytes show: PNG, JPEG, GIF or WebP; None for anything else."""
    if data[:4] == b"RIFF" and data[8:12] == b"WEBP":
        return "image/webp"
    return next((name for magic, name in _KNOWN if data.startswith(magic)), None)


def data_uri(block: Block) -> str:
    """An image block's picture as a `data:` URI; ValueError when it is none, OSError when its file cannot be read."""
    if block.path is not None:
        if block.path.stat().st_size > SIZE_LIMIT:
            raise ValueError(f"the picture {block.value} is over 20 MB")
        data = block.path.read_bytes()
    else:
        text = "".join(str(block.value).split())  # base64 is often wrapped
        if text.lower().startswith("data:image/"):
            return text
        try:
            data = base64.b64decode(text, validate=True)
        except binascii.Error as error:
            raise ValueError(f"an image block's value is neither a file nor base64 ({error})") from None
    kind = media_type(data)
    if kind is None:
        raise ValueError(f"{block.value if block.path else 'an image block'} is no PNG, JPEG, GIF or WebP picture")
    return f"data:{kind};base64,{base64.b64encode(data).decode()}"
