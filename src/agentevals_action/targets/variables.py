"""`${{ NAME }}` in suites and targets: which names a value needs, and their values from the
environment and `.env` files."""

import re
from collections.abc import Iterator, Mapping, Sequence
from pathlib import Path
from typing import Any

from agentevals_action.errors import AttemptError
from agentevals_action.model.runner_variables import is_never_passed

_REFERENCE = re.compile(r"\$\{\{\s*([^{}]*?)\s*\}\}")
#: Bytes of a `.env` file that are read at most.
_DOTENV_LIMIT = 1024 * 1024
#: Compiled where it is used: few folders have such a file.
_ASSIGNMENT = r"""(?msx)^[ \t]*(?:export[ \t]+)?(?P<name>[A-Za-z_][A-Za-z0-9_]*)[ \t]*=[ \t]*
    (?:'(?P<single>[^']*)'|"(?P<double>(?:\\.|[^"\\])*)"|(?P<plain>[^\n]*))"""
_ESCAPES = {"n": "\n", "r": "\r", "t": "\t", '"': '"', "\\": "\\", "$": "$"}


def names_in(value: Any) -> tuple[str, ...]:
    """The names that `${{ NAME }}` in any string of the value asks for, each once, in their order.

    What stands between the braces is the name, whatever it is: `secrets.KEY` names no variable and
    will be missing."""
    return tuple(
        dict.fromkeys(name for text in _strings(value) for name in _REFERENCE.findall(text))
    )


def _strings(value: Any) -> Iterator[str]:
    if isinstance(value, str):
        yield value
    elif isinstance(value, Mapping):
        for item in value.values():
            yield from _strings(item)
    elif isinstance(value, Sequence) and not isinstance(value, bytes):
        for item in value:
            yield from _strings(item)


def resolve(value: Any, variables: Mapping[str, str]) -> Any:
    """The value with every `${{ NAME }}` filled in; AttemptError of kind `configuration` names
    those that are missing."""
    if missing := [name for name in names_in(value) if name not in variables]:
        raise missing_error(missing)
    return _resolved(value, variables)


def missing_error(names: Sequence[str]) -> AttemptError:
    """The error for variables that are not set, or empty, as a secret is in a run that may not have
    it."""
    words = (
        ("the variable {} is", "set it")
        if len(names) == 1
        else ("the variables {} are", "set them")
    )
    return AttemptError(
        "configuration",
        f"{words[0].format(', '.join(names))} not set",
        f"{words[1]} in the workflow's `env:`, or in a .env file; pull requests from forks and Dependabot have no secrets",
    )


def _resolved(value: Any, variables: Mapping[str, str]) -> Any:
    if isinstance(value, str):
        return _REFERENCE.sub(lambda match: variables[match[1]], value)
    if isinstance(value, Mapping):
        return {key: _resolved(item, variables) for key, item in value.items()}
    if isinstance(value, list | tuple):
        return type(value)(_resolved(item, variables) for item in value)
    return value


def read_variables(environ: Mapping[str, str], root: Path, folder: Path) -> Mapping[str, str]:
    """What `${{ }}` may name: the environment's variables, then those of the `.env` files from the
    repository's root to the folder, the nearest file winning. An empty value counts as none.
    AttemptError of kind `configuration` when a file cannot be used."""
    variables: dict[str, str] = {}
    folders = [root / part for part in _below(root, folder)]
    for place in folders:
        variables.update(_read_dotenv(place / ".env", root))
    variables.update({name: value for name, value in environ.items() if value})
    return {name: value for name, value in variables.items() if value and not is_never_passed(name)}


def _below(root: Path, folder: Path) -> list[Path]:
    parts = folder.relative_to(root).parts
    return [Path(*parts[:length]) for length in range(len(parts) + 1)]


def _read_dotenv(path: Path, root: Path) -> Mapping[str, str]:
    if not path.is_file():
        return {}
    name = path.relative_to(root).as_posix()
    if not path.resolve().is_relative_to(root):
        raise AttemptError(
            "configuration",
            f"{name} leads out of the repository",
            "replace the symbolic link with a file",
        )
    try:
        with path.open("rb") as file:
            data = file.read(_DOTENV_LIMIT + 1)
        if len(data) > _DOTENV_LIMIT:
            raise ValueError("it is over 1 MB")
        text = data.decode("utf-8-sig")
    except (OSError, ValueError) as error:
        raise AttemptError("configuration", f"{name} cannot be read: {error}") from None
    return parse_dotenv(text)


def parse_dotenv(text: str) -> Mapping[str, str]:
    """The assignments of a `.env` file: `export`, quotes (double ones with escapes, both over
    several lines) and comments are understood; any other line is left aside, as every reader of
    such files does. Nothing is expanded or run."""
    return {
        match["name"]: _value(match)
        for match in re.finditer(_ASSIGNMENT, text.replace("\r\n", "\n"))
    }


def _value(match: re.Match[str]) -> str:
    if match["single"] is not None:
        return match["single"]
    if match["double"] is not None:
        return re.sub(
            r"\\(.)",
            lambda escape: _ESCAPES.get(escape[1], escape[0]),
            match["double"],
            flags=re.DOTALL,
        )
    return re.split(r"(?:^|[ \t])#", match["plain"], maxsplit=1)[0].strip()
