"""Inputs and expected outputs: texts, objects, messages, and the files in them."""

import base64
from pathlib import Path

import pytest

from agentevals_action.model.diagnostic import NamedFile
from agentevals_action.model.messages import Block, Message
from tests.support import suites
from tests.support.cases import file_block

PNG = base64.b64encode(b"\x89PNG\r\n\x1a\n" + bytes(60)).decode()


@pytest.fixture
def root(tmp_path: Path) -> Path:
    return suites.write(
        tmp_path / "repository",
        {"evals/notes.txt": "n", "shared/picture.png": b"\x89PNG\r\n\x1a\n"},
    )


def read(root: Path, fields: str) -> tuple[tuple[Message, ...], tuple[Message, ...]]:
    suites.write(
        root,
        {"evals/EVAL.yaml": f"name: suite\ntests:\n  - id: a\n    criteria: c\n    {fields}\n"},
    )
    test = suites.only_test(root, "evals/EVAL.yaml")
    return test.input, test.expected_output


def test_file_block__from_the_folder_of_the_file_or_from_the_root(root: Path) -> None:
    blocks = "[{type: file, value: ./notes.txt}, {type: image, value: /shared/picture.png}]"
    ((message,), _) = read(root, f"input: [{{role: user, content: {blocks}}}]")

    assert message.content == (
        file_block("file", "./notes.txt", root / "evals/notes.txt"),
        file_block("image", "/shared/picture.png", root / "shared/picture.png"),
    )
    test = suites.only_test(root, "evals/EVAL.yaml")
    assert test.files == (
        NamedFile("evals/notes.txt", "file"),
        NamedFile("shared/picture.png", "image"),
    )


@pytest.mark.parametrize("value", [PNG, f"data:image/png;base64,{PNG}"])
def test_image__inline(root: Path, value: str) -> None:
    ((message,), _) = read(
        root, f"input: [{{role: user, content: [{{type: image, value: '{value}'}}]}}]"
    )

    assert message.content == (Block("image", value),)


def test_image__inline_of_a_format_that_no_model_accepts_is_refused_when_it_is_read(
    root: Path,
) -> None:
    """A bitmap was loaded, and then refused at each call."""
    bitmap = base64.b64encode(b"BM" + bytes(60)).decode()
    block = f"{{type: image, value: '{bitmap}'}}"
    text = f"name: s1\ntests: [{{id: a, criteria: c, input: [{{role: user, content: [{block}]}}]}}]"
    suites.write(root, {"evals/EVAL.yaml": text})
    (error, *_) = suites.errors(root, "evals/EVAL.yaml")
    assert "write a path, or base64 data of an image" in error


@pytest.mark.parametrize(
    "path",
    [
        "../../outside.txt",
        "/../../outside.txt",
        "file://../../outside.txt",
        "link.txt",
        "folder/outside.txt",
    ],
)
def test_path__out_of_the_repository_is_refused(root: Path, path: str) -> None:
    (root.parent / "outside.txt").write_text("secret")
    (root / "evals/link.txt").symlink_to(root.parent / "outside.txt")
    (root / "evals/folder").symlink_to(root.parent)
    block = f"{{type: file, value: '{path}'}}"
    suites.write(
        root,
        {
            "evals/EVAL.yaml": f"name: s1\ntests: [{{id: a, criteria: c, input: [{{role: user, content: [{block}]}}]}}]"
        },
    )

    (error,) = suites.errors(root, "evals/EVAL.yaml")

    assert error.endswith(
        f"{path.removeprefix('file://')!r} leaves the repository; write the path of a file, from the folder of this one"
    )


def test_path__of_a_link_within_the_repository_is_fine(root: Path) -> None:
    (root / "evals/link.txt").symlink_to(root / "evals/notes.txt")
    ((message,), _) = read(root, "input: [{role: user, content: [{type: file, value: link.txt}]}]")

    assert message.content == (file_block("file", "link.txt", root / "evals/notes.txt"),)


def test_path__of_a_file_that_git_lfs_did_not_fetch_is_refused(root: Path) -> None:
    """Its pointer was sent in its place, and a change of the file was no other question."""
    pointer = f"version https://git-lfs.github.com/spec/v1\noid sha256:{'a' * 64}\nsize 12345\n"
    block = "{type: file, value: large.md}"
    text = f"name: s1\ntests: [{{id: a, criteria: c, input: [{{role: user, content: [{block}]}}]}}]"
    suites.write(root, {"evals/EVAL.yaml": text, "evals/large.md": pointer})
    (error,) = suites.errors(root, "evals/EVAL.yaml")
    assert "the file 'large.md' is a pointer of Git LFS (set `lfs: true` in actions/" in error
