"""Placeholders in a target's command, filled in so that a prompt can never become code.

A command that is a string is a script of `sh`, as in the reference runner. In a script a prompt is
never pasted: it goes into an environment variable, whose expansion no shell reads as code, and the
placeholder becomes that variable in double quotes. `{FILES}` is several words, each quoted for
itself."""

import re
import shlex
from collections.abc import Callable, Collection, Iterator, Mapping, Sequence
from pathlib import PurePath

_PLACEHOLDER = re.compile(
    r"(?<![${])\{(PROMPT|PROMPT_FILE|OUTPUT_FILE|EVAL_ID|ATTEMPT|FILES|GUIDELINES)\}"
)
_SHELLS = r"(?:ba|da|z|k|mk|a|fi)?sh"
_INTERPRETER = (
    rf"(?:{_SHELLS}|python[\d.]*|pypy[\d.]*|node|deno|bun|ruby|perl|php|lua|Rscript|pwsh|osascript)"
)
_CODE_FLAG = r"(?:-[A-Za-z]*[ceEpr]|--(?:eval|print|command)|-Command)"
#: They hand their words on to another shell, whole words as well.
_HANDS_ON = frozenset({"ssh", "su", "eval", "watch"})
_BEFORE_CODE = re.compile(rf"(?:^|[\s;&|(/]){_INTERPRETER}(?:\s+-\S+)*\s+{_CODE_FLAG}[\s\"']+$")
_HANDED_ON = re.compile(rf"(?:^|[\s;&|(/])(?:{'|'.join(_HANDS_ON)})\s")
_HEREDOC = re.compile(r"(?<!<)<<(?!<)")
_OF_A_FILE = re.compile(r"\{(path|basename)\}")
_NAME = re.compile(r"[\w./@%+,:~-]+")
_WORD_START = " \t\n;&|("
_BEFORE_A_NAME, _AFTER_A_NAME = f"{_WORD_START}<=", " \t\n;&|)<>"
#: What `{FILES}` becomes where no file is known yet.
_SOME_FILE = ("a b",)


def words_of(command: str | Sequence[str]) -> tuple[str, ...]:
    """The words that are run: a list as it is, a string as a script of `sh`."""
    return ("sh", "-c", command) if isinstance(command, str) else tuple(command)


def uses(command: str | Sequence[str], name: str) -> bool:
    """Whether a command has the placeholder `name` (`PROMPT_FILE`)."""
    return any(
        match[1] == name for word in words_of(command) for match in _PLACEHOLDER.finditer(word)
    )


def check(command: str | Sequence[str]) -> None:
    """ValueError when a command is empty, has a placeholder that there is not, or could run a
    prompt or a file's name as code."""
    words = words_of(command)
    if not words or not words[0].strip() or (isinstance(command, str) and not command.strip()):
        raise ValueError("the command is empty; write the program and its arguments")
    if uses(command, "GUIDELINES"):
        raise ValueError(
            "`{GUIDELINES}` is not supported; guidelines are files of the message, which are part of the prompt and in {FILES}"
        )
    for place, word in enumerate(words):
        if place == _script_place(words):
            list(_replacements(word, {"PROMPT": "$(unsafe)"}, _SOME_FILE))
            continue
        for name in ("PROMPT", "FILES"):
            if f"{{{name}}}" in word and _is_code(words, place):
                raise _as_code(name)
        if "{FILES}" in word and word != "{FILES}":
            raise ValueError("`{FILES}` is one word for each file; give it as a word of its own")


def check_format(files_format: str) -> None:
    """ValueError when a `files_format` cannot say a file."""
    if not _OF_A_FILE.search(files_format):
        raise ValueError("it says no file; write {path} or {basename}, as in `--file {path}`")
    try:
        shlex.split(files_format)
    except ValueError as error:
        raise ValueError(f"its quotes are wrong ({error}); {{path}} needs none") from None


def file_words(files_format: str, paths: Sequence[str]) -> tuple[str, ...]:
    """The words that `{FILES}` stands for: each path in its turn, as the format says it."""
    words = shlex.split(files_format)
    named = ({"path": path, "basename": PurePath(path).name} for path in paths)
    return tuple(
        _OF_A_FILE.sub(lambda match: names[match[1]], word) for names in named for word in words
    )


def fill(
    command: str | Sequence[str], values: Mapping[str, str], files: Sequence[str] = ()
) -> tuple[tuple[str, ...], Mapping[str, str]]:
    """The words to run, and the environment variables that they need; `values` by placeholder,
    `files` the words of `{FILES}`.

    ValueError where a value cannot be put without a risk."""
    words = words_of(command)
    filled: list[str] = []
    environment: dict[str, str] = {}
    script = _script_place(words)
    for place, word in enumerate(words):
        if place == script:
            text, variables = _filled_script(word, values, files)
            filled.append(text)
            environment.update(variables)
        elif word == "{FILES}":
            filled += files
        else:
            filled.append(_filled_word(words, place, values))
    return tuple(filled), environment


def _filled_word(words: Sequence[str], place: int, values: Mapping[str, str]) -> str:
    if _is_code(words, place):
        for match in _PLACEHOLDER.finditer(words[place]):
            if not _plain(match[1], values[match[1]]):
                raise _as_code(match[1])
    return _PLACEHOLDER.sub(lambda match: values[match[1]], words[place])


def with_names(
    command: str | Sequence[str], renamed: Callable[[str], str]
) -> str | tuple[str, ...]:
    """The command with what may be names of files in it given through `renamed`: words of a list
    and what they say after `=`; of a script what stands outside of quotes. A program is one only
    when it is a path."""
    if isinstance(command, str):
        return _renamed_script(command, renamed)
    script = _script_place(command)
    return tuple(
        _renamed_script(word, renamed)
        if place == script
        else word
        if not place and "/" not in word
        else _renamed_word(word, renamed)
        for place, word in enumerate(command)
    )


def _renamed_script(script: str, renamed: Callable[[str], str]) -> str:
    begins = script.lstrip().partition(" ")[0]
    names = {match.start(): match[0] for match in _NAME.finditer(script)}
    quoting = _quoting(script, names.keys())
    parts, end = [], 0
    for start, name in names.items():
        stop = start + len(name)
        if (
            script[start - 1 : start] not in _BEFORE_A_NAME
            or script[stop : stop + 1] not in _AFTER_A_NAME
        ):
            continue
        if (
            quoting.get(start, ("unknown", 0))[0]
            or (name == begins and "/" not in name)
            or (new := renamed(name)) == name
        ):
            continue
        parts += [script[end:start], shlex.quote(new)]
        end = stop
    return "".join([*parts, script[end:]])


def _renamed_word(word: str, renamed: Callable[[str], str]) -> str:
    option, sign, name = word.rpartition("=")
    new = renamed(word)
    return new if new != word or not sign else f"{option}={renamed(name)}"


def _plain(name: str, value: str) -> bool:
    """Whether a value means itself to every shell; a prompt is never taken for that."""
    return name != "PROMPT" and shlex.quote(value) == value


def _as_code(name: str) -> ValueError:
    return ValueError(
        f"`{{{name}}}` would be read as code here; give it as a word of its own, as {{PROMPT_FILE}} or on standard input"
    )


def _script_place(words: Sequence[str]) -> int | None:
    """Where the script stands in `sh -c SCRIPT`, options before `-c` allowed; None when the program
    is no shell or runs a file."""
    if not words or not re.fullmatch(_SHELLS, PurePath(words[0]).name):
        return None
    place = 1
    while place < len(words) and words[place][:1] in ("-", "+"):
        if re.fullmatch(r"-[A-Za-z]*c[A-Za-z]*", words[place]):
            return place + 1
        place += 2 if words[place] in ("-o", "+o", "-O", "+O") else 1
    return None


def _is_code(words: Sequence[str], place: int) -> bool:
    """Whether a word is handed to an interpreter as code (`python3 -c WORD`), or to a program that
    lets a shell read it."""
    names = [PurePath(word).name for word in words[:place]]
    if not _HANDS_ON.isdisjoint(names):
        return True
    owner = next(
        (
            name
            for word, name in zip(reversed(words[:place]), reversed(names), strict=True)
            if not word.startswith("-")
        ),
        "",
    )
    if not re.fullmatch(_INTERPRETER, owner):
        return False
    joined = re.match(rf"{_CODE_FLAG}=?.", words[place]) is not None
    return joined or re.fullmatch(_CODE_FLAG, words[place - 1]) is not None


def _filled_script(
    script: str, values: Mapping[str, str], files: Sequence[str]
) -> tuple[str, Mapping[str, str]]:
    parts, environment, end = [], {}, 0
    for start, stop, name, text in _replacements(script, values, files):
        parts += [script[end:start], text]
        end = stop
        if text.startswith('"$'):
            environment[_variable(name)] = values[name]
    return "".join([*parts, script[end:]]), environment


def _variable(name: str) -> str:
    return f"AGENTEVALS_{name}"


def _replacements(
    script: str, values: Mapping[str, str], files: Sequence[str]
) -> Iterator[tuple[int, int, str, str]]:
    """Start, end, name and replacement of `{FILES}` and of each placeholder that is in `values`, in
    order."""
    quoting = _quoting(script, {match.start() for match in _PLACEHOLDER.finditer(script)})
    for match in _PLACEHOLDER.finditer(script):
        start, stop, name = match.start(), match.end(), match[1]
        if start not in quoting or (
            name not in values and name != "FILES"
        ):  # in a comment, or behind a backslash
            continue
        if name != "FILES" and _plain(name, values[name]):
            yield start, stop, name, values[name]
            continue
        quote, opened = quoting[start]
        if quote and (
            name == "FILES" or not (opened == start - 1 and script[stop : stop + 1] == quote)
        ):
            where = "in quotes" if name == "FILES" else "among other text in quotes"
            raise ValueError(
                f"`{{{name}}}` stands {where}; write it outside of them, its text is quoted already"
            )
        if (
            _BEFORE_CODE.search(script[:start])
            or _HANDED_ON.search(script[:start])
            or _HEREDOC.search(script)
        ):
            raise _as_code(name)
        if name == "FILES":
            yield start, stop, name, shlex.join(files)
            continue
        tight = len(quote)
        yield start - tight, stop + tight, name, f'"${_variable(name)}"'


def _quoting(script: str, starts: Collection[int]) -> Mapping[int, tuple[str, int]]:
    """For each of these places the quote that it stands in (`'`, `"`, `$'` or none) and where that
    was opened; none for a place in a comment or behind a backslash."""
    found: dict[int, tuple[str, int]] = {}
    quote, opened, place = "", -1, 0
    while place < len(script):
        if place in starts:
            found[place] = quote, opened
        char = script[place]
        if char == "\\" and quote != "'":
            place += 1
        elif quote:
            quote = "" if char == quote[-1] else quote
        elif char in "'\"":
            quote, opened = (
                ("$'" if char == "'" and script[place - 1 : place] == "$" else char),
                place,
            )
        elif char == "#" and (place == 0 or script[place - 1] in _WORD_START):
            place = script.find("\n", place) if "\n" in script[place:] else len(script)
        place += 1
    return found
