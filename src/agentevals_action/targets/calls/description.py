"""Requests as JSON data: everything that a reply depends on, in a form that a person can read, and
the difference between two."""

import hashlib
import json
import re
from collections.abc import Iterator, Mapping, Sequence
from itertools import takewhile
from pathlib import Path
from typing import Any

from agentevals_action.model.messages import Message, wire_message
from agentevals_action.model.target import Request, Target
from agentevals_action.system.files.regular_files import digest_file
from agentevals_action.system.redaction import looks_secret, redact
from agentevals_action.targets.variables import Variables, names_in
from agentevals_action.validation.json_values import describe_json

_BEFORE = 20  # characters of a text that are shown before its first difference
#: The mark in a judge's prompt: it differs whenever the data between the marks does.
_MARK = re.compile(r"\b[0-9a-f]{32}\b")


class FileDigests:
    """The digests (SHA-256, hexadecimal) of the files of a run, each as it was when it was first
    read."""

    def __init__(self) -> None:
        self._first: dict[Path, str] = {}

    def first(self, path: Path) -> str:
        """The digest of a file when it was first read, before a program could change it."""
        if path not in self._first:
            try:
                self._first[path] = digest_file(path)
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


def first_difference(request: Mapping[str, Any], recorded: Sequence[Mapping[str, Any]]) -> str:
    """`messages[0].content` is “a” instead of “b”, of the recorded request that has the most values
    in common; empty if nothing is recorded or nothing differs."""
    leaves = dict(_leaves(request))
    others = [dict(_leaves(other)) for other in recorded]
    if not others:
        return ""
    nearest = max(others, key=lambda other: len(leaves.items() & other.items()))
    for path, value in leaves.items():
        if path not in nearest:
            return f"`{path}` ({describe_json(json.loads(value))}) is new"
        if value != nearest[path]:
            return f"`{path}`{_compared(json.loads(value), json.loads(nearest[path]))}"
    return next((f"`{path}` is missing" for path in nearest if path not in leaves), "")


def _leaves(value: Any, path: str = "") -> Iterator[tuple[str, str]]:
    """The texts, numbers and empty collections of JSON data as JSON (`true` is not 1), with their
    paths, in order."""
    if isinstance(value, Mapping) and value:
        for key, item in value.items():
            yield from _leaves(item, f"{path}.{key}" if path else str(key))
    elif isinstance(value, list | tuple) and value:
        for index, item in enumerate(value):
            yield from _leaves(item, f"{path}[{index}]")
    else:
        yield path, json.dumps(value)


def _compared(value: Any, recorded: Any) -> str:
    """The two values; of two texts, from shortly before the first difference on."""
    if not (isinstance(value, str) and isinstance(recorded, str)):
        return f" is {describe_json(value)} instead of {describe_json(recorded)}"
    texts = [redact(value), redact(recorded)]
    without_marks = [_MARK.sub("…", text) for text in texts]
    texts = texts if without_marks[0] == without_marks[1] else without_marks
    pairs = zip(*texts, strict=False)
    same = sum(1 for _ in takewhile(lambda pair: pair[0] == pair[1], pairs))
    line_start = texts[0].rfind("\n", 0, same) + 1
    line = texts[0].count("\n", 0, same) + 1
    where = f" (line {line})" if line > 1 else ""
    start = max(line_start, same - _BEFORE)
    new, old = (describe_json("…" * (start > line_start) + text[start:]) for text in texts)
    return f"{where} is {new} instead of {old}"
