"""Placeholders in a target's command, filled in so that a prompt can never become code.

A command that is a string is a script of `sh`, as in the reference runner. In a script a prompt is never pasted: it goes into an
environment variable, whose expansion no shell reads as code, and the placeholder becomes that variable in double quotes.
"""

import re
import shlex
from collections.abc import Iterator, Mapping, Sequence
from pathlib import PurePath

_PLACEHOLDER = re.compile(r"(?<![${])\{(PROMPT|PROMPT_FILE|OUTPUT_FILE|EVAL_ID|ATTEMPT|FILES|GUIDELINES)\}")
_LATER = ("FILES", "GUIDELINES")
_SHELLS = r"(?:ba|da|z|k|mk|a|fi)?sh"
_INTERPRETER = rf"(?:{_SHELLS}|python[\d.]*|pypy[\d.]*|node|deno|bun|ruby|perl|php|lua|Rscript|pwsh|osascript)"
_CODE_FLAG = r"(?:-[A-Za-z]*[ceEpr]|--(?:eval|print|command)|-Command)"
#: They hand their words on to another shell, whole words as well.
_HANDS_ON = frozenset({"ssh", "su", "eval", "watch"})
_BEFORE_CODE = re.compile(rf"(?:^|[\s;&|(/]){_INTERPRETER}(?:\s+-\S+)*\s+{_CODE_FLAG}[\s\"']+$")
_HANDED_ON = re.compile(rf"(?:^|[\s;&|(/])(?:{'|'.join(_HANDS_ON)})\s")
_HEREDOC = re.compile(r"(?<!<)<<(?!<)")
_WORD_START = " \t\n;&|("


def words_of(command: str | Sequence[str]) -> tuple[str, ...]:
    """The words that are run: a list as it is, a string as a script of `sh`."""
    return ("sh", "-c", command) if isinstance(command, str) else tuple(command)


def uses(command: str | Sequence[str], name: str) -> bool:
    """Whether a command has the placeholder `name` (`PROMPT_FILE`)."""
    return any(match[1] == name for word in words_of(command) for match in _PLACEHOLDER.finditer(word))


def check(command: str | Sequence[str]) -> None:
    """ValueError when a command is empty, has a placeholder of a later version, or could run a prompt as code."""
    words = words_of(command)
    if not words or not words[0].strip() or (isinstance(command, str) and not command.strip()):
        raise ValueError("the command is empty; write the program and its arguments")
    for name in _LATER:
        if uses(command, name):
            raise ValueError(f"`{{{name}}}` is not supported by this version yet; files of a message are part of the prompt")
    for place, word in enumerate(words):
        if "{PROMPT}" not in word:
            continue
        if place == _script_place(words):
            list(_replacements(word, {"PROMPT": "$(unsafe)"}))
        elif _is_code(words, place):
            raise _as_code("PROMPT")


def fill(command: str | Sequence[str], values: Mapping[str, str]) -> tuple[tuple[str, ...], Mapping[str, str]]:
    """The words to run, and the environment variables that they need; `values` by placeholder.

    ValueError where a value cannot be put without a risk.
    """
    words = list(words_of(command))
    environment: dict[str, str] = {}
    script = _script_place(words)
    for place, word in enumerate(tuple(words)):
        if place == script:
            words[place], variables = _filled_script(word, values)
            environment.update(variables)
            continue
        if _is_code(words, place):
            for match in _PLACEHOLDER.finditer(word):
                if not _plain(match[1], values[match[1]]):
                    raise _as_code(match[1])
        words[place] = _PLACEHOLDER.sub(lambda match: values[match[1]], word)
    return tuple(words), environment


def _plain(name: str, value: str) -> bool:
    """Whether a value means itself to every shell; a prompt is never taken for that."""
    return name != "PROMPT" and shlex.quote(value) == value


def _as_code(name: str) -> ValueError:
    return ValueError(f"`{{{name}}}` would be read as code here; give it as a word of its own, as {{PROMPT_FILE}} or on standard input")


def _script_place(words: Sequence[str]) -> int | None:
    """Where the script stands in `sh -c SCRIPT`, options before `-c` allowed; None when the program is no shell or runs a file."""
    if not words or not re.fullmatch(_SHELLS, PurePath(words[0]).name):
        return None
    place = 1
    while place < len(words) and words[place][:1] in ("-", "+"):
        if re.fullmatch(r"-[A-Za-z]*c[A-Za-z]*", words[place]):
            return place + 1
        place += 2 if words[place] in ("-o", "+o", "-O", "+O") else 1
    return None


def _is_code(words: Sequence[str], place: int) -> bool:
    """Whether a word is handed to an interpreter as code (`python3 -c WORD`), or to a program that lets a shell read it."""
    names = [PurePath(word).name for word in words[:place]]
    if not _HANDS_ON.isdisjoint(names):
        return True
    owner = next((name for word, name in zip(reversed(words[:place]), reversed(names), strict=True) if not word.startswith("-")), "")
    if not re.fullmatch(_INTERPRETER, owner):
        return False
    joined = re.match(rf"{_CODE_FLAG}=?.", words[place]) is not None
    return joined or re.fullmatch(_CODE_FLAG, words[place - 1]) is not None


def _filled_script(script: str, values: Mapping[str, str]) -> tuple[str, Mapping[str, str]]:
    parts, environment, end = [], {}, 0
    for start, stop, name, text in _replacements(script, values):
        parts += [script[end:start], text]
        end = stop
        if text.startswith('"$'):
            environment[_variable(name)] = values[name]
    return "".join([*parts, script[end:]]), environment


def _variable(name: str) -> str:
    return f"AGENTEVALS_{name}"


def _replacements(script: str, values: Mapping[str, str]) -> Iterator[tuple[int, int, str, str]]:
    """Start, end, name and replacement of each placeholder that is in `values`, in order."""
    quoting = _quoting(script)
    for match in _PLACEHOLDER.finditer(script):
        start, stop, name = match.start(), match.end(), match[1]
        if start not in quoting or name not in values:  # in a comment, or behind a backslash
            continue
        if _plain(name, values[name]):
            yield start, stop, name, values[name]
            continue
        quote, opened = quoting[start]
        if quote and not (opened == start - 1 and script[stop : stop + 1] == quote):
            raise ValueError(f"`{{{name}}}` stands among other text in quotes; write it outside of them, its text is quoted already")
        if _BEFORE_CODE.search(script[:start]) or _HANDED_ON.search(script[:start]) or _HEREDOC.search(script):
            raise _as_code(name)
        tight = len(quote)
        yield start - tight, stop + tight, name, f'"${_variable(name)}"'


def _quoting(script: str) -> Mapping[int, tuple[str, int]]:
    """For each placeholder's start the quote that it stands in (`'`, `"`, `$'` or none) and where that was opened."""
    starts = {match.start() for match in _PLACEHOLDER.finditer(script)}
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
            quote, opened = ("$'" if char == "'" and script[place - 1 : place] == "$" else char), place
        elif char == "#" and (place == 0 or script[place - 1] in _WORD_START):
            place = script.find("\n", place) if "\n" in script[place:] else len(script)
        place += 1
    return found
