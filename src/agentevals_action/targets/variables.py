"""`${{ NAME }}` in suites and targets: the names that a value needs, and their values from the
environment and `.env` files."""

import re
from collections.abc import Callable, Iterator, Mapping, Sequence
from io import StringIO
from pathlib import Path
from typing import Any

from dotenv import dotenv_values

from agentevals_action.errors import AttemptError, UnusableVariables
from agentevals_action.formatting import plural
from agentevals_action.model.diagnostic import Location
from agentevals_action.system.child_environment import is_never_passed
from agentevals_action.system.files.regular_files import is_present, read_regular
from agentevals_action.validation.json_values import map_texts

#: The variables for `${{ }}` in the suites of a folder: repository root, folder (both absolute).
Variables = Callable[[Path, Path], Mapping[str, str]]

_REFERENCE = re.compile(r"\$\{\{\s*([^{}]*?)\s*\}\}")
#: Maximum size of a `.env` file in bytes.
_DOTENV_LIMIT = 1024 * 1024


def names_in(value: Any) -> tuple[str, ...]:
    """The names in `${{ NAME }}` in any string of the value, each once; a name is any text."""
    return tuple(
        dict.fromkeys(name for text in _strings(value) for name in _REFERENCE.findall(text))
    )


def _strings(value: Any) -> Iterator[str]:
    if isinstance(value, str):
        yield value
    elif isinstance(value, Mapping | list | tuple):
        for item in value.values() if isinstance(value, Mapping) else value:
            yield from _strings(item)


def resolve(value: Any, variables: Mapping[str, str]) -> Any:
    """The value with every `${{ NAME }}` replaced; AttemptError of kind `configuration` names the
    missing variables."""
    if missing := [name for name in names_in(value) if name not in variables]:
        raise missing_error(missing)
    return map_texts(value, lambda text: _REFERENCE.sub(lambda name: variables[name[1]], text))


def missing_error(names: Sequence[str]) -> AttemptError:
    """The error for variables that are not set, or empty: a secret is empty in a run without access
    to it."""
    number, them = len(names), plural(len(names), "it", "them")
    variables = f"{plural(number, 'variable')} {', '.join(names)} {plural(number, 'is', 'are')}"
    return AttemptError(
        "configuration",
        f"the {variables} not set",
        f"set {them} in the environment or a `.env` file; in a workflow, give {them} to the step "
        "as `env:` from a secret, which pull requests from forks and Dependabot do not get",
    )


def read_variables(environ: Mapping[str, str], root: Path, folder: Path) -> Mapping[str, str]:
    """The variables for `${{ }}`: the environment, then the nearest `.env` files up to the root of
    the repository, without empty values. UnusableVariables if a file cannot be used."""
    variables: dict[str, str] = {}
    for above in (*reversed(folder.relative_to(root).parents), folder.relative_to(root)):
        variables.update(_read_dotenv(root / above / ".env", root))
    variables.update({name: value for name, value in environ.items() if value})
    return {name: value for name, value in variables.items() if value and not is_never_passed(name)}


def _read_dotenv(path: Path, root: Path) -> Mapping[str, str]:
    if not is_present(path.resolve()):  # a link may lead to a file of one machine
        return {}
    name = path.relative_to(root).as_posix()
    place, resolved = Location(name), path.resolve()
    if not resolved.is_relative_to(root):
        raise UnusableVariables(
            f"{place}: this file leads out of the repository",
            "replace the symbolic link with a file",
        )
    try:
        data = read_regular(resolved, _DOTENV_LIMIT + 1)
    except OSError as error:
        problem = f"{place}: this file cannot be read ({error.strerror})"
        raise UnusableVariables(problem, "make it a readable file") from None
    if len(data) > _DOTENV_LIMIT:
        raise UnusableVariables(f"{place}: this file is over 1 MB", "keep only variables in it")
    try:
        return parse_dotenv(data.decode("utf-8-sig"))
    except UnicodeDecodeError as error:
        place = Location.of_byte(name, data, error.start)
        raise UnusableVariables(f"{place}: this is not UTF-8", "save the file as UTF-8") from None


def parse_dotenv(text: str) -> Mapping[str, str]:
    """The assignments of a `.env` file; nothing is expanded or run, other lines are skipped."""
    values = dotenv_values(stream=StringIO(text), interpolate=False)
    return {name: value for name, value in values.items() if value is not None}
