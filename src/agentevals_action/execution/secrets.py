"""The secrets of a run: the values that no reply, result or report may contain."""

from collections.abc import Iterable, Iterator, Mapping
from contextlib import contextmanager
from typing import Any
from urllib.parse import unquote, urlsplit

from agentevals_action.model.suite import Suite
from agentevals_action.system.redaction import Redactor, looks_secret, redacting
from agentevals_action.targets.variables import Variables, names_in

#: Characters of the shortest user in an address that may be a token; user names are shorter.
_TOKEN_LENGTH = 20


@contextmanager
def keeping_secrets(
    suites: Iterable[Suite],
    variables: Variables,
    environ: Mapping[str, str],
    allowed: Iterable[str],
) -> Iterator[None]:
    """Until the end of the block, no text that enters contains a secret of the environment, of the
    variables that the workflow passes on (`allowed`), or of the targets of the suites. Raises
    UnusableVariables."""
    with redacting(Redactor.from_environ(environ, allowed, _find_secrets(suites, variables))):
        yield


def _find_secrets(suites: Iterable[Suite], variables: Variables) -> set[str]:
    """Secrets that the names of the environment's variables do not reveal: keys of targets,
    passwords in addresses, secrets of `.env` files."""
    secrets: set[str] = set()
    for suite in suites:
        values = variables(suite.root, suite.folder)
        used = (suite.targets.targets[name] for name in suite.used_targets)
        keys = [value for target in used for value in _keys_in(target.definition)]
        names = {*names_in(keys), *filter(looks_secret, values)}
        secrets.update(values[name] for name in names if name in values)
        for value in values.values():
            secrets.update(_credentials(value))
    return secrets


def _keys_in(definition: Any, is_key: bool = False) -> Iterator[Any]:
    """The values of a target's definition that are keys: under a name that looks secret, at any
    depth, and in headers."""
    if is_key:
        yield definition
    elif isinstance(definition, Mapping):
        for name, value in definition.items():
            yield from _keys_in(value, name == "headers" or looks_secret(str(name)))
    elif isinstance(definition, list | tuple):
        for part in definition:
            yield from _keys_in(part)


def _credentials(value: str) -> Iterator[str]:
    """The password in an address (`postgres://user:password@host`) and a user that may be a token
    (`https://ghp_…@github.com`), as they are written and as they are sent."""
    try:
        address = urlsplit(value) if "://" in value else None
    except ValueError:
        return
    if address:
        user, password = address.username or "", address.password or ""
        parts = (user if len(user) >= _TOKEN_LENGTH else "", password)
        yield from (form for secret in parts for form in (secret, unquote(secret)))
