"""The secrets of a run: the values that no reply, result or report may contain."""

from collections.abc import Iterable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from typing import Any
from urllib.parse import unquote, urlsplit

from agentevals_action.model.suite import Suite
from agentevals_action.system.isolation import hide_from_children
from agentevals_action.system.redaction import Redactor, looks_secret, redacting
from agentevals_action.targets.calls.client import Variables
from agentevals_action.targets.variables import names_in


@contextmanager
def keeping_secrets(
    suites: Iterable[Suite],
    variables: Variables,
    environ: Mapping[str, str],
    allowed: Iterable[str],
) -> Iterator[None]:
    """Until the end of the block, no text that enters contains a secret of the environment, of the
    variables that the workflow passes on (`allowed`), or of the targets of the suites. From now on
    child processes cannot read the environment of this process. Raises AttemptError."""
    hide_from_children()
    with redacting(Redactor.from_environ(environ, allowed, _find_secrets(suites, variables))):
        yield


def _find_secrets(suites: Iterable[Suite], variables: Variables) -> set[str]:
    """Secrets that the names of the environment's variables do not reveal: keys of targets,
    passwords in addresses, secrets of `.env` files."""
    found: set[str] = set()
    for suite in suites:
        known = variables(suite.root, suite.folder)
        used = (suite.targets.targets[name] for name in suite.used_targets)
        keys = [value for target in used for value in _keys_in(target.definition)]
        names = {*names_in(keys), *filter(looks_secret, known)}
        found.update(known[name] for name in names if name in known)
        for value in known.values():
            found.update(_passwords(value))
    return found


def _keys_in(definition: Any, is_key: bool = False) -> Iterator[Any]:
    """The values of a target's definition that are keys: under a name that looks secret, at any
    depth, and in headers."""
    if is_key:
        yield definition
    elif isinstance(definition, Mapping):
        for name, value in definition.items():
            yield from _keys_in(value, name == "headers" or looks_secret(str(name)))
    elif isinstance(definition, list | tuple):
        for item in definition:
            yield from _keys_in(item)


def _passwords(value: str) -> Sequence[str]:
    """The password in an address (`postgres://user:password@host`), as it is written and as it is
    sent; empty if there is none."""
    try:
        password = urlsplit(value).password if "://" in value else None
    except ValueError:
        return ()
    return (password, unquote(password)) if password else ()
