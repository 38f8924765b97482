"""Requests as JSON data: everything that a reply depends on, in a form that a person can read."""

import hashlib
import json
import os
import stat
from collections.abc import Collection, Mapping, Sequence
from pathlib import Path
from typing import Any

from agentevals_action.model import path_patterns
from agentevals_action.model.messages import Message, wire_message
from agentevals_action.model.target import Request, Target
from agentevals_action.system.files.regular_files import digest_of
from agentevals_action.system.redaction import MASK, looks_secret
from agentevals_action.targets.calls.client import Variables
from agentevals_action.targets.variables import names_in

#: Fields of a target that a successful reply does not depend on.
_IRRELEVANT = {"api_key", "healthcheck"}
#: Folders that are not part of an agent: git's own, and bytecode.
_SKIPPED = frozenset({".git", "__pycache__"})


class FileDigests:
    """The digests (SHA-256, hexadecimal) of the files of a run, each as it was when it was first
    read. `excluded` are absolute folders that no glob searches: those that the run itself
    writes."""

    def __init__(self, excluded: Collection[Path] = ()) -> None:
        self._excluded = frozenset(excluded)
        self._first: dict[Path, str] = {}
        self._found: dict[Path, Sequence[str]] = {}
        self._matched: dict[tuple[Path, tuple[str, ...]], Mapping[str, str]] = {}

    def first(self, path: Path) -> str:
        """The digest of a file when it was first read, before a program could change it."""
        if path not in self._first:
            try:
                self._first[path] = digest_of(path)
            except OSError as error:
                # The component that needs the file reports the error; here it is one more state.
                self._first[path] = type(error).__name__
        return self._first[path]

    def matching(self, root: Path, patterns: Sequence[str]) -> Mapping[str, str]:
        """Digests by path of the files below `root` that the globs match (`!` excludes), as they
        are at the first call. ValueError names a glob without a file, or a path that leads out of
        the repository."""
        key = root, tuple(patterns)
        if key not in self._matched:
            paths = self._paths(root)
            for pattern in patterns:
                is_used = any(path_patterns.matches(path, pattern) for path in paths)
                if not is_used and not pattern.startswith("!"):
                    raise ValueError(f"no file matches `{pattern}` of its `cache_key`")
            chosen = [path for path in paths if path_patterns.selected(path, patterns)]
            if not chosen:
                raise ValueError("its `cache_key` leaves no file")
            self._matched[key] = {path: self._content(root, path) for path in chosen}
        return self._matched[key]

    def _paths(self, root: Path) -> Sequence[str]:
        """All files below a folder, and links to folders (relative, POSIX), at the first call."""
        if root not in self._found:
            found: list[Path] = []
            for name, folders, files in os.walk(root):
                folder = Path(name)
                found += [folder / file for file in files]
                found += [folder / name for name in folders if (folder / name).is_symlink()]
                folders[:] = [
                    name
                    for name in folders
                    if name not in _SKIPPED and folder / name not in self._excluded
                ]
            self._found[root] = sorted(path.relative_to(root).as_posix() for path in found)
        return self._found[root]

    def _content(self, root: Path, path: str) -> str:
        """The digest of a file, and whether it is executable. A link stands for its target, which
        must be inside the repository."""
        file = (root / path).resolve()
        if not file.is_relative_to(root.resolve()) or not file.is_file():
            problem = "which its `cache_key` matches, does not lead to a file of the repository"
            raise ValueError(f"`{path}`, {problem}")
        return f"{digest_of(file)}{' x' if file.stat().st_mode & stat.S_IXUSR else ''}"


class RequestDescriptions:
    """Describes the requests of a run. `variables` returns what `${{ }}` in targets may name,
    `allowed` are the variables that the workflow passes to children.

    A description contains nothing of this machine and no key: neither the location of the checkout
    nor the side of a comparison, so that head and base share the reply to the same request; nor
    the interpreter and libraries of a command."""

    def __init__(
        self, variables: Variables, allowed: Mapping[str, str], files: FileDigests
    ) -> None:
        self._variables, self._allowed, self._files = variables, allowed, files

    def describe(self, target: Target, request: Request) -> dict[str, Any]:
        """A request as JSON data. ValueError with the reason if the reply depends on what is not
        part of it, UnusableVariables."""
        is_defined = target.is_defined
        if request.workspace is not None:
            raise ValueError("the agent works in a workspace, whose files are not in the request")
        if not is_defined and not target.cache_key:
            raise ValueError("its definition does not contain its code; name it in `cache_key`")
        if not is_defined and request.conversation_id is not None:
            raise ValueError("the agent may remember the conversation")
        fields = {
            name: value for name, value in target.own_fields().items() if name not in _IRRELEVANT
        }
        try:
            described = {
                "provider": target.provider,
                "options": _without_keys(fields),
                "variables": self._values(target, fields, request),
                "sample": request.attempt + 1,
                "repeat": request.repeat or None,
                "temperature": request.temperature,
                "messages": list(map(describe_message, request.messages)),
                "behind": {} if is_defined else self._behind(target, request),
            }
        except OSError as error:
            raise ValueError(f"a file of it cannot be read ({error.strerror or error})") from None
        return {name: part for name, part in described.items() if part not in (None, {})}

    def _values(
        self, target: Target, fields: Mapping[str, Any], request: Request
    ) -> Mapping[str, str]:
        """The values of the variables that the definition names and that an agent sees."""
        named = variable_values(fields, self._variables(request.root, request.suite_folder))
        seen = self._allowed if fields.get("env") is None else fields["env"]
        names = () if target.is_defined else [*filter(self._allowed.get, sorted(seen))]
        return named | {name: self._allowed[name] for name in names if not looks_secret(name)}

    def _behind(self, target: Target, request: Request) -> dict[str, Any]:
        """What is behind an agent: its code, and what it knows of the test."""
        return {
            "files": self._files.matching(request.root, target.cache_key),
            "command": {
                file.path: self._files.first(request.root / file.path) for file in target.files
            },
            "folder": request.suite_folder.relative_to(request.root).as_posix(),
            "test": request.eval_id,
            "metadata": request.metadata,
        }


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


def _without_keys(fields: dict[str, Any]) -> dict[str, Any]:
    """The fields of a target as written, without the values of headers that look secret."""
    if headers := fields.get("headers"):
        hidden = {name: MASK if looks_secret(name) else text for name, text in headers.items()}
        return {**fields, "headers": hidden}
    return fields
