"""Calls of the providers of models, against the servers that replace their vendors."""

import asyncio
from collections.abc import Awaitable, Callable, Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any, TypeVar

import pytest

from agentevals_action.errors import AttemptError
from agentevals_action.model.suite import Message
from agentevals_action.model.trace import Trace
from agentevals_action.targets.base import Provider
from tests.support import targets
from tests.support.anthropic_server import AnthropicServer
from tests.support.anthropic_server import failure as anthropic_failure
from tests.support.gemini_server import GeminiServer
from tests.support.gemini_server import failure as gemini_failure
from tests.support.openai_server import AzureServer, OpenAIServer, azure_failure
from tests.support.openai_server import failure as openai_failure
from tests.support.stand_in import Sent, StandIn

Result = TypeVar("Result")


@dataclass(frozen=True)
class ModelTarget:
    """A provider with its shortest definition, the field that holds the URL, and its server."""

    definition: Mapping[str, Any]
    url_field: str
    server: Callable[..., StandIn[Any, Any]]
    failure: Callable[[int, str], Sent]

    def call(
        self,
        url: str,
        use: Callable[[Provider], Awaitable[Result]],
        variables: Mapping[str, str] | None = None,
        **fields: Any,
    ) -> Result:
        options = targets.options({**self.definition, self.url_field: url, **fields})

        async def called() -> Result:
            provider = options.connect(targets.context({}, variables=variables))
            try:
                return await use(provider)
            finally:
                await provider.close()

        return asyncio.run(called())

    def ask(self, url: str, *messages: Message | str, timeout: float = 30, **fields: Any) -> Trace:
        request = targets.request(Path("/"), *(messages or ("hello",)), timeout=timeout)
        return self.call(url, lambda provider: provider.complete(request), **fields)

    def refused(self, reply: Sent, **fields: Any) -> AttemptError:
        """The error of a call that gets this reply."""
        with self.server(script=[reply]) as server, pytest.raises(AttemptError) as caught:
            self.ask(server.url, **fields)
        return caught.value


ANTHROPIC = ModelTarget(
    {"provider": "anthropic", "model": "m"}, "base_url", AnthropicServer, anthropic_failure
)
AZURE = ModelTarget(
    {"provider": "azure", "deployment": "my gpt"},
    "endpoint",
    AzureServer,
    lambda status, message: azure_failure(status, message, str(status)),
)
GEMINI = ModelTarget({"provider": "gemini", "model": "m"}, "base_url", GeminiServer, gemini_failure)
OPENAI = ModelTarget({"provider": "openai", "model": "m"}, "base_url", OpenAIServer, openai_failure)
