"""Placeholders in a target's command.

In a list, a placeholder is replaced by its value. A command that is a string is a script of `sh`,
as in the reference runner: there a text of the suite becomes an environment variable in double
quotes, which no shell reads as code, and `{FILES}` becomes several quoted words. Paths of the
action's own files and numbers need no quotes, and stand anywhere."""

import base64
import re
import shlex
from collections.abc import Iterator, Mapping, Sequence
from pathlib import Path, PurePath
from typing import Annotated

from pydantic import AfterValidator

from agentevals_action.errors import AttemptError
from agentevals_action.model.messages import Message, picture
from agentevals_action.system.program import all_words, shared_image
from agentevals_action.validation.field_errors import nearest
from agentevals_action.validation.file_model import ListOf

#: The files of a call by the placeholder that stands for their path.
FILES = {
    "PROMPT_FILE": "prompt.txt",
    "OUTPUT_FILE": "output.txt",
    "MCP_CONFIG": "mcp.json",
}
#: Placeholders for texts of the suite, which a script gets as variables or quoted words.
_TEXTS = ("PROMPT", "EVAL_ID", "FILES")
#: The placeholders that a command may contain.
NAMES = (*_TEXTS, *FILES, "ATTEMPT")
#: Names that are no placeholders here, and by which other programs call the prompt.
_OTHERS = ("GUIDELINES", "INPUT", "QUESTION")
#: `{NAME}` or `{{ NAME }}`; `${NAME}` belongs to a shell.
_IN_BRACES = re.compile(r"(?<![${])(?:\{(\w+)\}|\{\{\s*(\w+)\s*\}\})")
_PLACEHOLDER = re.compile(rf"(?<![${{])\{{({'|'.join(NAMES)})\}}")
#: A quoted text of a script, or a placeholder outside of quotes.
_QUOTED_OR_PLACEHOLDER = re.compile(
    rf"""\\.|'[^']*'?|"(?:\\.|[^"\\])*"?|{_PLACEHOLDER.pattern}""", re.DOTALL
)
_FILE_FIELD = re.compile(r"\{(path|basename)\}")


def split_command(command: str | Sequence[str]) -> tuple[str, ...]:
    """The words to run: a list unchanged, a string as a script of `sh`."""
    return ("sh", "-c", command) if isinstance(command, str) else tuple(command)


def used_in(command: str | Sequence[str]) -> frozenset[str]:
    """The names of the placeholders in a command."""
    return frozenset(name for word in split_command(command) for name in _PLACEHOLDER.findall(word))


def in_braces(text: str) -> Iterator[tuple[str, str]]:
    """What may be meant as a placeholder: each text in braces, with the name in it."""
    return ((match[0], match[1] or match[2]) for match in _IN_BRACES.finditer(text))


def check(command: str | tuple[str, ...]) -> str | tuple[str, ...]:
    """The command itself; ValueError if it is empty, or has an unknown placeholder or one that
    cannot be replaced where it stands."""
    words = split_command(command)
    if not words or not words[0].strip() or (isinstance(command, str) and not command.strip()):
        raise ValueError("the command is empty; write the program and its arguments")
    if image := shared_image(all_words(words)):
        raise ValueError(
            f"both sides would run the image `{image}`, whichever of them built it; write "
            '`--iidfile .image` in `prepare` and `"$(cat .image)"` as the image, mount the tree '
            "(`-v .:/app`), or name a digest (`@sha256:…`)"
        )
    for written, name in (pair for word in words for pair in in_braces(word)):
        is_near = name.isupper() and nearest(name, NAMES, 0.75) is not None
        is_meant = is_near or name.upper() in (*NAMES, *_OTHERS)
        if is_meant and not _PLACEHOLDER.fullmatch(written):
            names = ", ".join(f"{{{placeholder}}}" for placeholder in NAMES)
            raise ValueError(f"`{written}` is not a placeholder; write one of {names}")
    if isinstance(command, str):
        fill(command, dict.fromkeys(NAMES, "1"))
    elif any("{FILES}" in word and word != "{FILES}" for word in command):
        raise ValueError("`{FILES}` is one word for each file; give it as a word of its own")
    return command


#: Words, or a script of `sh`.
Command = Annotated[str | ListOf[str], AfterValidator(check)]


def check_format(files_format: str) -> str:
    """The `files_format` itself; ValueError if it does not name the file, or has an unclosed
    quote."""
    if not _FILE_FIELD.search(files_format):
        raise ValueError("it does not name a file; write {path} or {basename}: `--file {path}`")
    try:
        shlex.split(files_format)
    except ValueError as error:
        raise ValueError(f"its quotes are wrong ({error}); {{path}} needs none") from None
    return files_format


def file_words(files_format: str, paths: Sequence[str]) -> tuple[str, ...]:
    """The words for `{FILES}`: each path in the format."""

    def format_word(word: str, path: str) -> str:
        fields = {"path": path, "basename": PurePath(path).name}
        return _FILE_FIELD.sub(lambda match: fields[match[1]], word)

    words = shlex.split(files_format)
    return tuple(format_word(word, path) for path in paths for word in words)


def attached_files(messages: Sequence[Message], scratch: Path) -> tuple[str, ...]:
    """The absolute paths of the files and pictures in messages, each once. A picture whose data is
    in the suite is written to `scratch`; ValueError or OSError if it cannot be."""
    paths = []
    for number, block in enumerate((block for message in messages for block in message.blocks), 1):
        if block.type in ("file", "image") and block.path is not None:
            paths.append(str(block.path))
        elif block.type == "image":
            image = picture(block)
            path = scratch / f"image-{number}.{image.media_type.rpartition('/')[2]}"
            path.write_bytes(base64.b64decode(image.data))
            paths.append(str(path))
    return tuple(dict.fromkeys(paths))


def fill(
    command: str | Sequence[str], values: Mapping[str, str], files: Sequence[str] = ()
) -> tuple[tuple[str, ...], Mapping[str, str]]:
    """The words to run, and the environment variables that they need; `files` are the words for
    `{FILES}`. ValueError for a text among other text in the quotes of a script, AttemptError for a
    path that needs quotes there."""
    if isinstance(command, str):
        texts = used_in(command) & {"PROMPT", "EVAL_ID"}
        script = _PLACEHOLDER.sub(
            lambda match: match[0] if match[1] in _TEXTS else _unquoted(values[match[1]]), command
        )
        script = _QUOTED_OR_PLACEHOLDER.sub(lambda match: _fill_text(match, files), script)
        return split_command(script), {f"AGENTEVALS_{name}": values[name] for name in texts}
    filled: list[str] = []
    for word in command:
        if word == "{FILES}":
            filled += files
        else:
            filled.append(_PLACEHOLDER.sub(lambda match: values[match[1]], word))
    return tuple(filled), {}


def _unquoted(value: str) -> str:
    if shlex.quote(value) == value:
        return value
    problem = f"the temporary file {value!r} needs quotes in a script"
    advice = "set TMPDIR to a folder whose path needs none, or write the command as a list"
    raise AttemptError("configuration", problem, advice)


def _fill_text(match: re.Match[str], files: Sequence[str]) -> str:
    """A quoted text of a script, or a placeholder, with the value in it."""
    text = match[0]
    inner = _PLACEHOLDER.search(text)
    if inner is None:
        return text
    name, is_alone = inner[1], text in (inner[0], f"'{inner[0]}'", f'"{inner[0]}"')
    if not is_alone or (name == "FILES" and text != inner[0]):
        raise ValueError(
            f"`{{{name}}}` stands among other text in quotes; give it as a word of its own outside "
            "of quotes, or write the command as a list; a script can read a prompt from "
            "{PROMPT_FILE} or standard input"
        )
    return shlex.join(files) if name == "FILES" else f'"$AGENTEVALS_{name}"'
