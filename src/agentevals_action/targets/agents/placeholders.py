"""Placeholders in a target's command, replaced so that a prompt can never become code.

A command that is a string is a script of `sh`, as in the reference runner. In a script a prompt is
not inserted as text: it becomes an environment variable, whose expansion no shell reads as code,
and the placeholder becomes that variable in double quotes. `{FILES}` becomes several words, each
quoted."""

import base64
import difflib
import re
import shlex
from collections.abc import Callable, Collection, Iterator, Mapping, Sequence
from pathlib import Path, PurePath
from typing import TypeVar

from agentevals_action.model.suite import Message
from agentevals_action.targets.apis.images import picture

Command = str | Sequence[str]
CommandType = TypeVar("CommandType", bound=Command)

#: The placeholders that a command may contain.
NAMES = (
    *("PROMPT", "PROMPT_FILE", "MESSAGES_FILE", "OUTPUT_FILE"),
    *("EVAL_ID", "ATTEMPT", "FILES"),
)
_ANY = re.compile(r"(?<![${])\{([A-Z][A-Z_]+)\}")
_PLACEHOLDER = re.compile(rf"(?<![${{])\{{({'|'.join(NAMES)}|GUIDELINES)\}}")
_SHELLS = r"(?:ba|da|z|k|mk|a|fi)?sh"
_INTERPRETER = (
    rf"(?:{_SHELLS}|python[\d.]*|pypy[\d.]*|node|deno|bun|ruby|perl|php|lua|Rscript|pwsh|osascript)"
)
_CODE_FLAG = r"(?:-[A-Za-z]*[ceEpr]|--(?:eval|print|command)|-Command)"
#: Programs that pass their words to another shell, complete words as well.
_FORWARDERS = frozenset({"ssh", "su", "eval", "watch"})
_BEFORE_CODE = re.compile(rf"(?:^|[\s;&|(/]){_INTERPRETER}(?:\s+-\S+)*\s+{_CODE_FLAG}[\s\"']+$")
_FORWARDED = re.compile(rf"(?:^|[\s;&|(/])(?:{'|'.join(_FORWARDERS)})\s")
_HEREDOC = re.compile(r"(?<!<)<<(?!<)")
_FILE_FIELD = re.compile(r"\{(path|basename)\}")
_NAME = re.compile(r"[\w./@%+,:~-]+")
_WORD_START = " \t\n;&|("
_BEFORE_A_NAME, _AFTER_A_NAME = f"{_WORD_START}<=", " \t\n;&|)<>"


def words_of(command: Command) -> tuple[str, ...]:
    """The words to run: a list unchanged, a string as a script of `sh`."""
    return ("sh", "-c", command) if isinstance(command, str) else tuple(command)


def uses(command: Command, name: str) -> bool:
    """Whether a command contains the placeholder `name` (`PROMPT_FILE`)."""
    return any(name in _PLACEHOLDER.findall(word) for word in words_of(command))


def check(command: CommandType) -> CommandType:
    """The command itself; ValueError if it is empty, contains an unknown placeholder, or could run
    a prompt or the name of a file as code."""
    words = words_of(command)
    if not words or not words[0].strip() or (isinstance(command, str) and not command.strip()):
        raise ValueError("the command is empty; write the program and its arguments")
    if uses(command, "GUIDELINES"):
        raise ValueError(
            "`{GUIDELINES}` is not supported; guidelines are files of the message, which are part "
            "of the prompt and in {FILES}"
        )
    for name in (name for word in words for name in _ANY.findall(word)):
        meant = difflib.get_close_matches(name, NAMES, 1, 0.75)
        if meant and name not in NAMES:
            raise ValueError(f"`{{{name}}}` is no placeholder; did you mean `{{{meant[0]}}}`?")
    for index, word in enumerate(words):
        if index == _script_index(words):
            list(_replacements(word, {"PROMPT": "$(unsafe)"}, ("a file",)))
            continue
        for name in ("PROMPT", "FILES"):
            if f"{{{name}}}" in word and _is_code(words, index):
                raise _as_code(name)
        if "{FILES}" in word and word != "{FILES}":
            raise ValueError("`{FILES}` is one word for each file; give it as a word of its own")
    return command


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
    blocks = [block for one in messages for block in one.blocks if block.type in ("file", "image")]
    paths = []
    for number, block in enumerate(blocks, 1):
        if block.path is not None:
            paths.append(str(block.path))
        elif block.type == "image":
            image = picture(block)
            path = scratch / f"image-{number}.{image.media_type.rpartition('/')[2]}"
            path.write_bytes(base64.b64decode(image.data))
            paths.append(str(path))
    return tuple(dict.fromkeys(paths))


def fill(
    command: Command, values: Mapping[str, str], files: Sequence[str] = ()
) -> tuple[tuple[str, ...], Mapping[str, str]]:
    """The words to run, and the environment variables that they need; `files` are the words for
    `{FILES}`. ValueError if a value cannot be inserted safely."""
    words = words_of(command)
    filled: list[str] = []
    environment: dict[str, str] = {}
    script = _script_index(words)
    for index, word in enumerate(words):
        if index == script:
            text, variables = _fill_script(word, values, files)
            filled.append(text)
            environment.update(variables)
        elif word == "{FILES}":
            filled += files
        else:
            names = _PLACEHOLDER.findall(word) if _is_code(words, index) else ()
            for name in names:
                if not _is_plain(name, values[name]):
                    raise _as_code(name)
            filled.append(_PLACEHOLDER.sub(lambda match: values[match[1]], word))
    return tuple(filled), environment


def rename_files(command: Command, rename: Callable[[str], str]) -> str | tuple[str, ...]:
    """The command with `rename` applied to every word that may be a file: words of a list and their
    parts after `=`; in a script, words outside of quotes. The program itself only if it contains a
    slash."""
    if isinstance(command, str):
        return _rename_in_script(command, rename)
    script = _script_index(command)
    renamed = []
    for index, word in enumerate(command):
        if index == script:
            word = _rename_in_script(word, rename)
        elif index or "/" in word:
            option, sign, name = word.rpartition("=")
            new = rename(word)
            word = new if new != word or not sign else f"{option}={rename(name)}"
        renamed.append(word)
    return tuple(renamed)


def _rename_in_script(script: str, rename: Callable[[str], str]) -> str:
    program = script.lstrip().partition(" ")[0]
    names = {match.start(): match[0] for match in _NAME.finditer(script)}
    quotes = _quotes(script, names.keys())
    parts, end = [], 0
    for start, name in names.items():
        stop = start + len(name)
        is_word = (
            script[start - 1 : start] in _BEFORE_A_NAME
            and script[stop : stop + 1] in _AFTER_A_NAME
            and quotes.get(start, ("unknown", 0))[0] == ""
        )
        if is_word and (name != program or "/" in name) and (new := rename(name)) != name:
            parts += [script[end:start], shlex.quote(new)]
            end = stop
    return "".join([*parts, script[end:]])


def _is_plain(name: str, value: str) -> bool:
    """Whether no shell interprets a value; never assumed of a prompt."""
    return name != "PROMPT" and shlex.quote(value) == value


def _as_code(name: str) -> ValueError:
    return ValueError(
        f"`{{{name}}}` would be read as code here; give it as a word of its own, as {{PROMPT_FILE}}"
        " or on standard input"
    )


def _script_index(words: Sequence[str]) -> int | None:
    """The index of the script in `sh -c SCRIPT`, with options before `-c`; None if the program is
    not a shell or runs a file."""
    if not words or not re.fullmatch(_SHELLS, PurePath(words[0]).name):
        return None
    index = 1
    while index < len(words) and words[index][:1] in ("-", "+"):
        if re.fullmatch(r"-[A-Za-z]*c[A-Za-z]*", words[index]):
            return index + 1
        index += 2 if words[index] in ("-o", "+o", "-O", "+O") else 1
    return None


def _is_code(words: Sequence[str], index: int) -> bool:
    """Whether an interpreter reads a word as code (`python3 -c WORD`), or a program forwards it to
    a shell."""
    before = words[:index]
    if not _FORWARDERS.isdisjoint(PurePath(word).name for word in before):
        return True
    owner = next((PurePath(word).name for word in reversed(before) if word[:1] != "-"), "")
    if not re.fullmatch(_INTERPRETER, owner):
        return False
    joined = re.match(rf"{_CODE_FLAG}=?.", words[index]) is not None
    return joined or re.fullmatch(_CODE_FLAG, words[index - 1]) is not None


def _fill_script(
    script: str, values: Mapping[str, str], files: Sequence[str]
) -> tuple[str, Mapping[str, str]]:
    parts, environment, end = [], {}, 0
    for start, stop, name, text in _replacements(script, values, files):
        parts += [script[end:start], text]
        end = stop
        if text.startswith('"$'):
            environment[f"AGENTEVALS_{name}"] = values[name]
    return "".join([*parts, script[end:]]), environment


def _replacements(
    script: str, values: Mapping[str, str], files: Sequence[str]
) -> Iterator[tuple[int, int, str, str]]:
    """Start, end, name and replacement of `{FILES}` and of each placeholder in `values`, in
    order."""
    quotes = _quotes(script, {match.start() for match in _PLACEHOLDER.finditer(script)})
    for match in _PLACEHOLDER.finditer(script):
        start, stop, name = match.start(), match.end(), match[1]
        if start not in quotes or (name not in values and name != "FILES"):
            continue  # a comment, after a backslash, or not to be replaced
        if name != "FILES" and _is_plain(name, values[name]):
            yield start, stop, name, values[name]
            continue
        quote, opened = quotes[start]
        alone = opened == start - 1 and script[stop : stop + 1] == quote
        if quote and (name == "FILES" or not alone):
            where = "in quotes" if name == "FILES" else "among other text in quotes"
            raise ValueError(
                f"`{{{name}}}` stands {where}; write it outside of them, its text is quoted already"
            )
        before = script[:start]
        if _BEFORE_CODE.search(before) or _FORWARDED.search(before) or _HEREDOC.search(script):
            raise _as_code(name)
        if name == "FILES":
            yield start, stop, name, shlex.join(files)
        else:
            yield start - len(quote), stop + len(quote), name, f'"$AGENTEVALS_{name}"'


def _quotes(script: str, starts: Collection[int]) -> Mapping[int, tuple[str, int]]:
    """For each of these positions the quote around it (`'`, `"`, `$'` or none) and the position
    where the quote opens; no entry for a position in a comment or after a backslash."""
    found: dict[int, tuple[str, int]] = {}
    quote, opened, index = "", -1, 0
    while index < len(script):
        if index in starts:
            found[index] = quote, opened
        char = script[index]
        if char == "\\" and quote != "'":
            index += 1
        elif quote:
            quote = "" if char == quote[-1] else quote
        elif char in "'\"":
            dollar = char == "'" and script[index - 1 : index] == "$"
            quote, opened = "$'" if dollar else char, index
        elif char == "#" and (index == 0 or script[index - 1] in _WORD_START):
            line_end = script.find("\n", index)
            index = len(script) if line_end < 0 else line_end
        index += 1
    return found
