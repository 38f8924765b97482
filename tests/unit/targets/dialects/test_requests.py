"""Requests: one conversation in each wire format, as the vendors' own libraries send it."""

import base64
import json
from pathlib import Path
from typing import Any

import pytest

from agentevals_action.model.messages import (
    MAX_PICTURE,
    Block,
    Message,
    Picture,
    ToolCall,
    picture,
    read_message,
)
from agentevals_action.targets.dialects.requests import link_calls
from agentevals_action.targets.models.gemini import FOREIGN_CALL
from tests.support.cases import file_block
from tests.support.model_targets import FORMATS, api_target

DATA = json.loads(Path("tests/data/formats/requests.json").read_text(encoding="utf-8"))
CONVERSATION = [read_message(data) for data in DATA.pop("messages")]
GIF = base64.b64encode(b"GIF89a").decode()
PICTURE = Block("image", GIF)
#: Roles whose messages may have a picture.
WITH_PICTURES = {"anthropic": {"user", "tool"}, "openai_responses": {"user", "tool"}}


@pytest.mark.parametrize("name", FORMATS)
def test_to_wire__a_conversation_with_tools_and_pictures(name: str) -> None:
    request = FORMATS[name].to_wire(CONVERSATION)
    assert {field: request[field] for field in DATA[name]} == DATA[name]


@pytest.mark.parametrize("name", FORMATS)
def test_to_wire__files_are_text(name: str, tmp_path: Path) -> None:
    (tmp_path / "n.txt").write_text("notes")
    block = file_block("file", "n.txt", tmp_path / "n.txt")
    wire = json.dumps(FORMATS[name].to_wire([Message("user", (block,))]))
    assert json.dumps('<file path="n.txt">\nnotes\n</file>') in wire
    (tmp_path / "n.txt").write_bytes(b"a\xff")
    block = file_block("file", "n.txt", tmp_path / "n.txt")
    with pytest.raises(ValueError, match=r"n\.txt is no UTF-8 text \(.* at byte 1\)"):
        FORMATS[name].to_wire([Message("user", (block,))])


@pytest.mark.parametrize("role", ["system", "user", "assistant", "tool"])
@pytest.mark.parametrize("name", FORMATS)
def test_to_wire__pictures_where_models_take_none_are_an_error(name: str, role: Any) -> None:
    call = Message("assistant", "", tool_calls=(ToolCall("shot", id="1"),))
    messages = [call, Message(role, (PICTURE,))]
    if role in WITH_PICTURES.get(name, {"user"}):
        assert GIF in json.dumps(FORMATS[name].to_wire(messages))
        return
    with pytest.raises(ValueError, match=f"a picture in an? {role} message cannot be sent"):
        FORMATS[name].to_wire(messages)


@pytest.mark.parametrize("name", ["anthropic", "gemini"])
def test_to_wire__arguments_that_are_no_object_are_an_error(name: str) -> None:
    message = Message("assistant", "", tool_calls=(ToolCall("a", "{broken"),))
    with pytest.raises(ValueError, match="the arguments of the tool call `a` are not an object"):
        FORMATS[name].to_wire([message])


@pytest.mark.parametrize(
    ("model", "is_signed"),
    [
        ("gemini-3-flash", True),
        ("gemini-flash-latest", True),
        ("gemini-2.5-pro", False),
        ("models/gemini-2.0-flash", False),
        ("gemini-20-pro", True),
    ],
)
def test_to_wire__the_first_call_of_a_turn_has_a_signature_for_gemini_3(
    model: str, is_signed: bool
) -> None:
    calls = (ToolCall("a", output="1"), ToolCall("b", output="2"))
    asked = Message("assistant", "", tool_calls=calls)
    parts = api_target("gemini", model=model).to_wire([asked])["contents"][0]["parts"]
    signature = FOREIGN_CALL if is_signed else None
    assert [part.get("thoughtSignature") for part in parts] == [signature, None]


def test_to_wire__a_tool_message_for_gemini_needs_the_name_of_its_call() -> None:
    with pytest.raises(ValueError, match="answers no tool call before it, and has no name"):
        FORMATS["gemini"].to_wire([Message("tool", "text", tool_call_id="gone")])


def test_link_calls__calls_without_ids_are_answered_by_name_or_in_order() -> None:
    calls = (ToolCall("a"), ToolCall("b", id="x"), ToolCall("a"), ToolCall("c"))
    answers = [Message("tool", "1"), Message("tool", "2"), Message("tool", "3", name="c")]
    asked, *linked = link_calls([Message("assistant", "", tool_calls=calls), *answers])
    assert [call.id for call in asked.tool_calls] == ["call_0_0", "x", "call_0_2", "call_0_3"]
    assert [(answer.tool_call_id, answer.name, answer.content) for answer in linked] == [
        ("call_0_0", "a", "1"),
        ("x", "b", "2"),
        ("call_0_3", "c", "3"),
    ]


def test_link_calls__the_output_of_a_call_answers_it_unless_a_message_does() -> None:
    calls = (ToolCall("a", output="one"), ToolCall("b", output={"n": 2}), ToolCall("c"))
    linked = link_calls(
        [
            Message("assistant", "", tool_calls=calls),
            Message("tool", "seen", tool_call_id="call_0_0"),
            Message("user", "and?"),
        ]
    )
    assert linked[1:] == [
        Message("tool", "seen", name="a", tool_call_id="call_0_0"),
        Message("tool", '{"n": 2}', name="b", tool_call_id="call_0_1"),
        Message("user", "and?"),
    ]


def test_link_calls__an_answer_without_a_call_is_an_error() -> None:
    with pytest.raises(ValueError, match="answers no tool call before it"):
        link_calls([Message("user", "q"), Message("tool", "seen")])


PNG = b"\x89PNG\r\n\x1a\n"
WEBP = b"RIFF\x00\x00\x00\x00WEBP"


@pytest.mark.parametrize(
    ("data", "media_type"),
    [(PNG, "png"), (b"\xff\xd8\xff\xe0", "jpeg"), (b"GIF87a", "gif"), (WEBP, "webp")],
)
def test_picture__the_bytes_decide_about_the_type(
    data: bytes, media_type: str, tmp_path: Path
) -> None:
    (tmp_path / "picture.bmp").write_bytes(data)
    text = base64.b64encode(data).decode()
    wanted = Picture(f"image/{media_type}", text)
    assert picture(file_block("image", "picture.bmp", tmp_path / "picture.bmp")) == wanted
    assert picture(Block("image", f"{text[:4]}\n {text[4:]}\n")) == wanted
    assert picture(Block("image", f"data:image/bmp;base64,{text}")) == wanted
    assert wanted.uri == f"data:image/{media_type};base64,{text}"


@pytest.mark.parametrize(
    ("value", "problem"),
    [
        ("picture.png", "neither a file nor base64"),
        ("ü", "neither a file nor base64"),
        ("aGk=", "is not a PNG, JPEG, GIF or WebP"),
        ("data:text/plain;base64,aGk=", "is not a PNG, JPEG, GIF or WebP"),
        ("data:image/png;base64", "neither a file nor base64"),
        (base64.b64encode(PNG + bytes(MAX_PICTURE)).decode(), "is over 20 MB"),
    ],
    ids=lambda text: text[:40],
)
def test_picture__anything_else_is_an_error(value: str, problem: str) -> None:
    with pytest.raises(ValueError, match=problem):
        picture(Block("image", value))
