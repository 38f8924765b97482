"""Pictures of messages."""

import base64
from dataclasses import dataclass

from agentevals_action.model.messages import Block, image_type

#: Maximum size of a picture in bytes; vendors refuse larger ones.
SIZE_LIMIT = 20 * 1024 * 1024


@dataclass(frozen=True)
class Picture:
    """A picture: `media_type` as `image/png`, `data` in base64 on one line."""

    media_type: str
    data: str

    @property
    def uri(self) -> str:
        """The picture as a `data:` URI."""
        return f"data:{self.media_type};base64,{self.data}"


def picture(block: Block) -> Picture:
    """An image block's picture; ValueError if it is not one or over 20 MB. Vendors refuse a type
    that is not that of the bytes, so the bytes decide, not the `data:` URI."""
    name, data = f"the picture {block.value}", block.data
    if block.path is None:
        name = "an image block's picture"
        encoded = "".join(str(block.value).split()).rpartition(",")[2]  # base64 is often wrapped
        try:
            data = base64.b64decode(encoded, validate=True)
        except ValueError as error:
            raise ValueError(f"{name} is neither a file nor base64 ({error})") from None
    if len(data) > SIZE_LIMIT:
        raise ValueError(f"{name} is over 20 MB")
    if (found := image_type(data)) is None:
        raise ValueError(f"{name} is not a PNG, JPEG, GIF or WebP")
    return Picture(found, base64.b64encode(data).decode())
