"""The cache key of a request: a digest of everything that the reply depends on."""

import hashlib
import hmac
import json
from collections.abc import Callable, Iterator, Mapping, Sequence
from pathlib import PurePath
from typing import Any

from agentevals_action.model.messages import wire_message
from agentevals_action.model.suite import Block, Message
from agentevals_action.model.target import Target
from agentevals_action.model.validation.json_values import replace_surrogates
from agentevals_action.system import redaction
from agentevals_action.targets.base import ProviderOptions, Request
from agentevals_action.targets.cache.file_digests import CacheFiles

#: The version of the keys. A new one ignores every stored reply: raise it if a provider starts to
#: send the same request differently.
FORMAT = 1
#: Fields of options that a successful reply does not depend on. (`api_key` is the key of the HMAC.)
_IRRELEVANT = {"api_key", "healthcheck", "timeout_seconds"}


class CacheKeys:
    """Computes the keys of a run. `allowed` are the variables that the workflow passes to children,
    `notice` receives a sentence for each target whose replies cannot be cached despite its
    `cache_key`, `files` reads the files that requests and globs name.

    A key contains nothing of this machine: neither the location of the checkout nor the side of a
    comparison, so that head and base share the reply to the same request; nor the interpreter and
    libraries of a command."""

    def __init__(
        self,
        allowed: Mapping[str, str],
        notice: Callable[[str], None],
        files: CacheFiles | None = None,
    ) -> None:
        self._allowed = allowed
        self._notice = notice
        self._files = files or CacheFiles()
        self._noticed: set[str] = set()

    def key(
        self, target: Target, options: ProviderOptions, request: Request, secrets: Sequence[str]
    ) -> str | None:
        """The key (64 hexadecimal digits) of a request to a target with these resolved options and
        secrets; None if its reply must not be cached.

        Not cached: a deterministic provider; a request in a workspace, whose files are not in the
        key; an agent without `cache_key`, with a glob that matches no file, or in a conversation,
        which it may remember; and a request whose file cannot be read."""
        if options.deterministic or request.workspace is not None:
            return None
        if not options.is_defined and (not target.cache_key or request.conversation_id is not None):
            return None
        fields = options.model_dump(exclude=_IRRELEVANT)
        try:
            parts = {
                "format": FORMAT,
                "provider": target.provider,
                "options": fields,
                "messages": [self._message(message) for message in request.messages],
                "sample": [request.attempt, request.repeat],
                # Left out where there is none: the replies that are stored stay known.
                **({} if request.temperature is None else {"temperature": request.temperature}),
                "behind": None if options.is_defined else self._behind(target, fields, request),
            }
            data = json.dumps(self._plain(parts, request), ensure_ascii=True).encode("ascii")
        except OSError:
            return None  # the provider that sends the file reports the error
        except ValueError as error:
            sentence = f"Replies of the target `{target.name}` are not cached: {error}."
            if sentence not in self._noticed:
                self._noticed.add(sentence)
                self._notice(sentence)
            return None
        derived = _derive([*secrets, *_secrets_in(fields)])
        return hmac.digest(derived, data, "sha256").hex()

    def describe(self, target: Target, request: Request) -> dict[str, Any]:
        """A request as data for a reader, by the same facts as a key. The definition is as written:
        a variable is its name. Of headers, only the names are kept.

        ValueError with the reason if the reply depends on what is not part of the request."""
        options = target.options
        if request.workspace is not None:
            raise ValueError("the agent works in a workspace, whose files are not in the request")
        if not options.is_defined and not target.cache_key:
            raise ValueError("its definition does not contain its code; name it in `cache_key`")
        fields = options.model_dump(exclude=_IRRELEVANT, exclude_defaults=True)
        if "headers" in fields:
            fields["headers"] = sorted(fields["headers"])
        try:
            parts = {
                "provider": target.provider,
                "options": fields,
                "sample": request.attempt + 1,
                "repeat": request.repeat or None,
                "messages": [self._readable_message(message) for message in request.messages],
                "behind": None if options.is_defined else self._code_behind(target, request),
            }
            readable: dict[str, Any] = self._readable(
                {name: value for name, value in parts.items() if value is not None}, request
            )
        except OSError as error:
            raise ValueError(f"a file of it cannot be read ({error.strerror or error})") from None
        return readable

    def _message(self, message: Message) -> Any:
        content: Any = message.content
        if not isinstance(content, str):
            content = [self._block(block) for block in content]
        return {
            "role": message.role,
            "content": content,
            "name": message.name,
            "tool_call_id": message.tool_call_id,
            "tool_calls": [
                [call.name, call.arguments, call.output, call.id, call.duration_ms]
                for call in message.tool_calls
            ],
        }

    def _readable_message(self, message: Message) -> dict[str, Any]:
        data = wire_message(message)
        if not isinstance(message.content, str):
            for block, written in zip(message.content, data["content"], strict=True):
                if block.path is not None:
                    written["sha256"] = hashlib.sha256(block.data).hexdigest()
        return data

    def _block(self, block: Block) -> Any:
        digest = None if block.path is None else hashlib.sha256(block.data).hexdigest()
        return [block.type, block.value, digest]

    def _behind(self, target: Target, fields: Mapping[str, Any], request: Request) -> Any:
        """The agent's code and the variables that it sees, in the order of all stored keys."""
        named = fields.get("env")
        names = self._allowed if named is None else named
        code = self._code_behind(target, request)
        files = {name: code.pop(name) for name in ("files", "command")}
        return {
            **files,
            "variables": {name: self._allowed.get(name) for name in sorted(names)},
            **code,
        }

    def _code_behind(self, target: Target, request: Request) -> dict[str, Any]:
        return {
            "files": self._files.matching(request.root, target.cache_key),
            "command": {path: self._command_file(request, path) for path in target.files},
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
        """JSON data with a different form for each value: every object is a marker with one key.
        The order of an object's keys counts, since a model sees it."""
        if value is None or isinstance(value, str | bool | int | float):
            return value
        if isinstance(value, Mapping):
            return {"object": [self._plain(pair, request) for pair in value.items()]}
        if isinstance(value, list | tuple):
            return [self._plain(item, request) for item in value]
        if isinstance(value, set | frozenset):
            return {"set": sorted(json.dumps(self._plain(item, request)) for item in value)}
        if isinstance(value, PurePath):
            path = value.relative_to(request.root).as_posix()
            return {"file": [path, self._files.digest(request.root / value)]}
        return {type(value).__name__: str(value)}

    def _readable(self, value: Any, request: Request) -> Any:
        """JSON data without markers, for `describe`."""
        if value is None or isinstance(value, bool | int | float):
            return value
        if isinstance(value, Mapping):
            return {str(key): self._readable(item, request) for key, item in value.items()}
        if isinstance(value, list | tuple):
            return [self._readable(item, request) for item in value]
        if isinstance(value, set | frozenset):
            return sorted((self._readable(item, request) for item in value), key=json.dumps)
        if isinstance(value, PurePath):
            path = value.relative_to(request.root).as_posix()
            return {"file": path, "sha256": self._files.digest(request.root / value)}
        return replace_surrogates(str(value))


def _secrets_in(value: Any, name: str = "") -> Iterator[str]:
    """Texts in fields with a secret's name, at any depth: a header with a token."""
    if isinstance(value, str):
        if redaction.looks_secret(name):
            yield value
    elif isinstance(value, Mapping):
        for key, item in value.items():
            yield from _secrets_in(item, str(key))
    elif isinstance(value, list | tuple):
        for item in value:
            yield from _secrets_in(item, name)


def _derive(secrets: Sequence[str]) -> bytes:
    """The HMAC key of the digests, derived from a target's secrets with HKDF (RFC 5869)."""
    parts = [secret.encode("utf-8", "backslashreplace") for secret in sorted({*secrets} - {""})]
    material = b"".join(len(part).to_bytes(8, "big") + part for part in parts)
    extracted = hmac.digest(b"agentevals-action/cache", material, "sha256")
    return hmac.digest(extracted, b"find\x01", "sha256")
