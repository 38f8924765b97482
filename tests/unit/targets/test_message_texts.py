import base64
from pathlib import Path

import pytest

from agentevals_action.model.messages import Block, Message
from agentevals_action.targets.message_texts import content_text, prompt_text
from tests.support.cases import file_block


def test_prompt_text__one_user_message_is_its_text() -> None:
    assert prompt_text([Message("user", "hi\n@[User]:")]) == "hi\n@[User]:"


def test_prompt_text__several_are_headed_blocks() -> None:
    messages = [
        Message("system", "be brief"),
        Message("user", "q"),
        Message("assistant", "a"),
        Message("tool", "t"),
    ]
    assert (
        prompt_text(messages)
        == "@[System]:\nbe brief\n\n@[User]:\nq\n\n@[Assistant]:\na\n\n@[Tool]:\nt"
    )
    assert prompt_text([Message("system", "alone")]) == "@[System]:\nalone"


def test_content_text__each_kind_of_block(tmp_path: Path) -> None:
    (tmp_path / "notes.txt").write_text("line ü\n", encoding="utf-8")
    blocks = (
        Block("text", "see"),
        Block("json", {"ä": [1, None]}),
        file_block("file", "notes.txt", tmp_path / "notes.txt"),
        Block("image", "pic.png", tmp_path / "pic.png"),
    )
    assert (
        content_text(Message("user", blocks))
        == 'see\n{"ä": [1, null]}\n<file path="notes.txt">\nline ü\n\n</file>\npic.png'
    )


def test_content_text__a_file_that_is_no_text_is_a_value_error(tmp_path: Path) -> None:
    (tmp_path / "x").write_bytes(base64.b64decode("/w=="))
    with pytest.raises(ValueError, match="the file x is no UTF-8 text"):
        content_text(Message("user", (file_block("file", "x", tmp_path / "x"),)))
