import base64
from pathlib import Path

import pytest

from agentevals_action.model.suite import Block
from agentevals_action.targets.apis import images
from tests.support.cases import file_block

PNG = b"\x89PNG\r\n\x1a\n rest"
KINDS = {
    "image/png": PNG,
    "image/jpeg": b"\xff\xd8\xff\xe0",
    "image/gif": b"GIF89a..",
    "image/webp": b"RIFF\x00\x00\x00\x00WEBPVP8 ",
}


@pytest.mark.parametrize(("kind", "data"), KINDS.items())
def test_picture__a_file_and_its_base64(tmp_path: Path, kind: str, data: bytes) -> None:
    (tmp_path / "picture").write_bytes(data)
    encoded = base64.b64encode(data).decode()
    assert (
        images.picture(file_block("image", "picture", tmp_path / "picture")).uri
        == f"data:{kind};base64,{encoded}"
    )
    assert (
        images.picture(Block("image", f" {encoded[:8]}\n{encoded[8:]}\n")).uri
        == f"data:{kind};base64,{encoded}"
    )


def test_picture__one_that_is_given_goes_out_as_it_is() -> None:
    assert (
        images.picture(Block("image", "data:image/svg+xml;base64,PHN2Zz4=")).uri
        == "data:image/svg+xml;base64,PHN2Zz4="
    )


def test_picture__its_type_and_base64_apart(tmp_path: Path) -> None:
    (tmp_path / "picture").write_bytes(PNG)
    encoded = base64.b64encode(PNG).decode()
    assert images.picture(file_block("image", "picture", tmp_path / "picture")) == images.Picture(
        "image/png", encoded
    )
    assert (
        images.picture(Block("image", f"data:image/png;base64,{encoded}")).uri
        == f"data:image/png;base64,{encoded}"
    )


def test_picture__what_its_bytes_show_wins_over_what_is_said() -> None:
    encoded = base64.b64encode(PNG).decode()
    assert (
        images.picture(
            Block("image", f"DATA:image/jpeg;charset=x;base64,{encoded[:6]}\n{encoded[6:]}")
        ).media_type
        == "image/png"
    )


@pytest.mark.parametrize(
    ("value", "problem"),
    [
        ("data:text/plain;base64,aGk=", "must be `data:image/"),
        ("data:image/png,%89PNG", "must be `data:image/"),
        ("data:image/;base64,aGk=", "must be `data:image/"),
        ("data:image/png;base64", "must be `data:image/"),
        ("data:image/png;base64,aGk", "neither a file nor base64"),
        ("aGkü", "neither a file nor base64"),
        ("aGk=", "is not a PNG"),
        (
            f"data:image/png;base64,{base64.b64encode(bytes(images.SIZE_LIMIT + 1)).decode()}",
            "over 20 MB",
        ),
    ],
    ids=lambda value: value[:24],
)
def test_picture__an_inline_one_that_is_none_is_a_value_error(value: str, problem: str) -> None:
    with pytest.raises(ValueError, match=problem) as caught:
        images.picture(Block("image", value))
    assert len(str(caught.value)) < 200


def test_picture__what_is_no_picture_is_a_value_error(tmp_path: Path) -> None:
    (tmp_path / "text").write_text("hello")
    with pytest.raises(ValueError, match="text is not a PNG"):
        images.picture(file_block("image", "text", tmp_path / "text"))
    with pytest.raises(ValueError, match="neither a file nor base64"):
        images.picture(Block("image", "https://example.com/cat.png"))


def test_picture__one_over_the_limit_is_a_value_error(tmp_path: Path) -> None:
    with (tmp_path / "big").open("wb") as file:
        file.truncate(images.SIZE_LIMIT + 1)
    with pytest.raises(ValueError, match="the picture big is over 20 MB"):
        images.picture(file_block("image", "big", tmp_path / "big"))
