"""Requests as JSON data: everything that a reply depends on, in a form that a person can read."""

import hashlib
import json
from collections.abc import Mapping
from pathlib import Path
from typing import Any

from agentevals_action.model.messages import Message, wire_message
from agentevals_action.model.target import Request, Target
from agentevals_action.system.files.regular_files import digest_of
from agentevals_action.system.redaction import looks_secret
from agentevals_action.targets.calls.client import Variables
from agentevals_action.targets.variables import names_in


class FileDigests:
    """The digests (SHA-256, hexadecimal) of the files of a run, each as it was when it was first
    read."""

    def __init__(self) -> None:
        self._first: dict[Path, str] = {}

    def first(self, path: Path) -> str:
        """The digest of a file when it was first read, before a program could change it."""
        if path not in self._first:
            try:
                self._first[path] = digest_of(path)
            except OSError as error:
                # The component that needs the file reports the error; here it is one more state.
                self._first[path] = type(error).__name__
        return self._first[path]


def describe_request(target: Target, request: Request, variables: Variables) -> dict[str, Any]:
    """A request to a model as JSON data; `variables` returns what `${{ }}` in targets may name.
    ValueError with the reason if the reply depends on what is not part of it, UnusableVariables.

    It contains nothing of this machine and no key: neither the location of the checkout nor the
    side of a comparison, so that head and base share the reply to the same request."""
    if not target.is_defined:
        raise ValueError("its definition does not contain its code")
    if request.workspace is not None:
        raise ValueError("the agent works in a workspace, whose files are not in the request")
    fields = {name: value for name, value in target.own_fields().items() if name != "api_key"}
    described = {
        "provider": target.provider,
        "options": fields,
        "variables": variable_values(fields, variables(request.root, request.suite_folder)),
        "sample": request.attempt + 1,
        "repeat": request.repeat or None,
        "temperature": request.temperature,
        "messages": list(map(describe_message, request.messages)),
    }
    return {name: part for name, part in described.items() if part not in (None, {})}


def digest(data: Any, *, is_ordered: bool = True) -> str:
    """The SHA-256 of bytes or of JSON data, hexadecimal. The order of an object's keys counts if it
    `is_ordered`: a model sees it."""
    if not isinstance(data, bytes):
        data = json.dumps(data, default=plain, sort_keys=not is_ordered).encode("ascii")
    return hashlib.sha256(data).hexdigest()


def plain(value: Any) -> Any:
    """The JSON data of a value that has none of its own (a read-only mapping, a set, a date)."""
    if isinstance(value, Mapping):
        return dict(value)
    return sorted(value, key=repr) if isinstance(value, set | frozenset) else str(value)


def without_variables(described: Mapping[str, Any]) -> Mapping[str, Any]:
    """The description of a request with its variables by name alone: a replay may not have them."""
    return {name: part for name, part in described.items() if name != "variables"}


def describe_message(message: Message) -> dict[str, Any]:
    """A message as JSON data; a digest stands for the content of a file."""
    data = wire_message(message)
    if not isinstance(message.content, str):
        data["content"] = [
            {"type": block.type, "value": block.value}
            | ({} if block.path is None else {"sha256": digest(block.data)})
            for block in message.content
        ]
    return data


def variable_values(definition: Any, known: Mapping[str, str]) -> dict[str, str]:
    """The values of the variables that a definition names, secrets left out: another model in a
    variable is another target, another key is not."""
    names = (name for name in names_in(definition) if not looks_secret(name))
    return {name: known[name] for name in names if name in known}
