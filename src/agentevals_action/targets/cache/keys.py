"""What a reply depends on, as one key; None for what must not be cached."""

import hmac
import json
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import PurePath
from typing import Any

from agentevals_action.entries.reading import to_data
from agentevals_action.model.suite import Block, Message
from agentevals_action.model.target import Target
from agentevals_action.system import redaction
from agentevals_action.targets.base import ProviderOptions, Request
from agentevals_action.targets.cache.file_digests import CacheFiles

#: Of what keys are made of. Another one lets every stored reply lie: raise it when a provider
#: begins to send the same request otherwise.
FORMAT = 1
#: Fields of options that no successful reply depends on. A key tells who pays: it seals the row
#: instead.
_NO_MATTER = frozenset({"api_key", "healthcheck", "timeout_seconds"})


@dataclass(frozen=True)
class Key:
    """A request as the cache knows it: `digest` (64 hexadecimal digits) finds the row, `seal`
    authenticates it."""

    digest: str
    seal: bytes = field(repr=False)


class CacheKeys:
    """Makes the keys of a run. `allowed` are the variables that the workflow lets through to
    children, `notice` is told once of each target whose replies cannot be cached though its
    `cache_key` asks for it, `files` reads what requests and globs name.

    A key holds nothing of this machine: neither where the checkout lies nor on which side of a
    comparison it stands, so that head and base share the reply to a request that is the same. What
    a command is on this machine (its interpreter, its libraries) is in no key."""

    def __init__(
        self,
        allowed: Mapping[str, str],
        notice: Callable[[str], None],
        files: CacheFiles | None = None,
    ) -> None:
        self._allowed = allowed
        self._notice = notice
        self._files = files or CacheFiles()
        self._told: set[str] = set()

    def key(
        self, target: Target, options: ProviderOptions, request: Request, secrets: Sequence[str]
    ) -> Key | None:
        """The key of a request to a target with these resolved options and secrets; None when its
        reply must not be cached.

        That is: of a provider that answers the same at no cost; in a workspace, whose files are in
        no key; of anything but a model without `cache_key`, with a glob in it that matches no file,
        or in a conversation, which it may remember; and where a file cannot be read."""
        if options.deterministic or request.workspace is not None:
            return None
        if not options.is_defined and (not target.cache_key or request.conversation_id is not None):
            return None
        fields = {name: value for name, value in to_data(options).items() if name not in _NO_MATTER}
        try:
            parts = {
                "format": FORMAT,
                "provider": target.provider,
                "options": fields,
                "messages": [self._message(message) for message in request.messages],
                "sample": [request.attempt, request.repeat],
                "behind": None if options.is_defined else self._behind(target, fields, request),
            }
            data = json.dumps(self._plain(parts, request), ensure_ascii=True).encode("ascii")
        except OSError:
            return None  # whoever sends the file says that it cannot be read
        except ValueError as error:
            self._tell(f"Replies of the target `{target.name}` are not cached: {error}.")
            return None
        find, seal = _derived([*secrets, *_secrets_in(fields)])
        return Key(hmac.digest(find, data, "sha256").hex(), seal)

    def _message(self, message: Message) -> Any:
        content = message.content
        return {
            "role": message.role,
            "content": content
            if isinstance(content, str)
            else [self._block(block) for block in content],
            "name": message.name,
            "tool_call_id": message.tool_call_id,
            "tool_calls": [
                [call.name, call.arguments, call.output, call.id, call.duration_ms]
                for call in message.tool_calls
            ],
        }

    def _block(self, block: Block) -> Any:
        return [
            block.type,
            block.value,
            self._files.digest(block.path) if block.path is not None else None,
        ]

    def _behind(self, target: Target, fields: Mapping[str, Any], request: Request) -> Any:
        """What an agent gets beside its definition and the messages, and the files that it is made
        of."""
        named = fields.get("env")
        names = self._allowed if named is None else named
        return {
            "files": self._files.matching(request.root, target.cache_key),
            "command": {path: self._command_file(request, path) for path in target.files},
            "variables": {name: self._allowed.get(name) for name in sorted(names)},
            "folder": request.suite_folder.relative_to(request.root).as_posix(),
            "eval_id": request.eval_id,
            "metadata": request.metadata,
        }

    def _command_file(self, request: Request, path: str) -> str | None:
        try:
            return self._files.digest(request.root / path)
        except FileNotFoundError:
            return None

    def _plain(self, value: Any, request: Request) -> Any:
        """Data with one form for each value: objects are made of markers alone, so that no two
        values read the same. The order of an object's keys counts: a model sees it."""
        if value is None or isinstance(value, str | bool | int | float):
            return value
        if isinstance(value, Mapping):
            return {
                "object": [
                    [self._plain(name, request), self._plain(item, request)]
                    for name, item in value.items()
                ]
            }
        if isinstance(value, list | tuple):
            return [self._plain(item, request) for item in value]
        if isinstance(value, set | frozenset):
            return {"set": sorted(json.dumps(self._plain(item, request)) for item in value)}
        if isinstance(value, PurePath):
            return {
                "file": [
                    value.relative_to(request.root).as_posix(),
                    self._files.digest(request.root / value),
                ]
            }
        return {type(value).__name__: str(value)}

    def _tell(self, sentence: str) -> None:
        if sentence not in self._told:
            self._told.add(sentence)
            self._notice(sentence)


def _secrets_in(value: Any, name: str = "") -> Iterator[str]:
    """Texts in fields whose names say that they are secrets: a header with a token, at any
    depth."""
    if isinstance(value, str):
        if redaction.looks_secret(name):
            yield value
    elif isinstance(value, Mapping):
        for key, item in value.items():
            yield from _secrets_in(item, str(key))
    elif isinstance(value, list | tuple):
        for item in value:
            yield from _secrets_in(item, name)


def _derived(secrets: Sequence[str]) -> tuple[bytes, bytes]:
    """The keys that find and that seal rows, from a target's secrets as HKDF (RFC 5869) derives
    them. Without a secret anybody can derive them: a seal then shows damage, not forgery."""
    parts = [secret.encode("utf-8", "backslashreplace") for secret in sorted({*secrets} - {""})]
    material = b"".join(len(part).to_bytes(8, "big") + part for part in parts)
    extracted = hmac.digest(b"agentevals-action/cache", material, "sha256")
    return hmac.digest(extracted, b"find\x01", "sha256"), hmac.digest(
        extracted, b"seal\x01", "sha256"
    )
