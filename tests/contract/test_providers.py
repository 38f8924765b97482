"""Every provider implements the interface of `targets/base.py`, and every file of the folder is in
the registry."""

import asyncio
import importlib
import inspect
import os
import sys
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import pytest
from pydantic import ValidationError

from agentevals_action.errors import AttemptError
from agentevals_action.model.messages import Message
from agentevals_action.model.trace import Trace
from agentevals_action.system.files.paths import Folder
from agentevals_action.targets import base, providers
from tests.support import agent_programs, targets
from tests.support.agent_server import AgentServer
from tests.support.model_targets import MODELS, VendorServer

FOLDER = Path(providers.__file__).parent
ANSWERED = Path(__file__).parents[1] / "support" / "answered.jsonl"

#: For each provider a definition that answers `echo X` with X; `URL` stands for a server. A
#: provider without a line here fails the tests.
SAMPLES: dict[str, dict[str, Any]] = {
    "anthropic": {"model": "m", "base_url": "URL"},
    "azure": {"endpoint": "URL", "deployment": "m", "api_key": "k"},
    "claude_cli": {"command": agent_programs.program("claude")},
    "cli": {"command": "sed s/^echo.//"},
    "codex_cli": {"command": agent_programs.program("codex")},
    "copilot_cli": {"command": agent_programs.program("copilot")},
    "gemini": {"model": "m", "base_url": "URL"},
    "gemini_cli": {"command": agent_programs.program("gemini")},
    "http": {"url": "URL"},
    "mock": {"responses": [{"pattern": "^echo hello$", "response": "hello"}]},
    "openai": {"model": "m", "base_url": "URL"},
    "python": {
        "target": "tests.support.echo_agent:answer",
        "python": sys.executable,
        "cwd": str(ANSWERED.parents[2]),
    },
    "replay": {"path": str(ANSWERED)},
}
NAMES = sorted(SAMPLES)


def stand_in(name: str, replies: Mapping[str, str]) -> VendorServer | AgentServer:
    """The server of a model, or of an agent."""
    return MODELS[name].server(replies) if name in MODELS else AgentServer.matching(replies)


def defined(name: str, sample: Mapping[str, Any], url: str) -> base.ProviderOptions:
    """The options of a sample, at a server."""
    definition = {field: url if value == "URL" else value for field, value in sample.items()}
    return targets.options({"provider": name, **definition})


@contextmanager
def connected(name: str) -> Iterator[tuple[base.ProviderOptions, base.ProviderContext]]:
    with stand_in(name, {"^echo hello$": "hello"}) as server:
        options = defined(name, SAMPLES[name], server.url)
        yield options, targets.context({"PATH": os.environ["PATH"]})


def complete(name: str, *messages: Message | str, **fields: Any) -> Trace:
    async def completed(options: base.ProviderOptions, context: base.ProviderContext) -> Trace:
        provider = options.connect(context)
        try:
            return await provider.complete(targets.request(Path("/"), *messages, **fields))
        finally:
            await provider.close()

    with connected(name) as (options, context):
        return asyncio.run(completed(options, context))


def test_registry__every_file_is_registered_and_has_a_sample() -> None:
    files = {path.stem for path in FOLDER.glob("*.py")} - {"__init__", "base"}
    registered = {options.__module__.rpartition(".")[2] for options in providers.PROVIDERS.values()}
    assert files == registered
    assert sorted(providers.PROVIDERS) == NAMES


def test_registry__a_file_holds_one_provider_of_its_name() -> None:
    for name, options in providers.PROVIDERS.items():
        module = importlib.import_module(options.__module__)
        own = [
            item
            for item in vars(module).values()
            if inspect.isclass(item)
            and issubclass(item, base.ProviderOptions)
            and item.__module__ == module.__name__
        ]
        assert own == [options]
        assert options.provider.replace("-", "_") == name == module.__name__.rpartition(".")[2]


@pytest.mark.parametrize("name", NAMES)
def test_options__every_field_and_the_provider_are_described(name: str) -> None:
    options = providers.PROVIDERS[name]
    assert options.__doc__
    assert [field for field, info in options.model_fields.items() if not info.description] == []


@pytest.mark.parametrize("name", NAMES)
def test_options__are_frozen_and_survive_a_round_trip(name: str) -> None:
    with connected(name) as (options, _):
        assert type(options).model_validate(options.model_dump(exclude_defaults=True)) == options
        with pytest.raises(ValidationError, match="frozen"):
            setattr(options, next(iter(type(options).model_fields)), "changed")
        assert all(isinstance(variable, str) for variable in options.variables())
        assert repr(options) == f"{type(options).__name__}(…)"  # no field, as it may be a key


@pytest.mark.parametrize("name", NAMES)
def test_options__name_no_file_outside(name: str, tmp_path: Path) -> None:
    with connected(name) as (options, _):
        assert list(options.files(Folder(tmp_path, tmp_path))) == []


@pytest.mark.parametrize("name", NAMES)
def test_complete__answers(name: str) -> None:
    trace = complete(name, "echo hello")
    assert trace.output == "hello"
    assert trace.messages[-1].role == "assistant"
    assert trace.llm_call_count in ((1,) if providers.PROVIDERS[name].is_model else (1, None))


@pytest.mark.parametrize("name", NAMES)
def test_complete__many_at_once(name: str) -> None:
    async def many(options: base.ProviderOptions, context: base.ProviderContext) -> list[Trace]:
        provider = options.connect(context)
        try:
            return list(
                await asyncio.gather(
                    *(
                        provider.complete(targets.request(Path("/"), "echo hello", attempt=i))
                        for i in range(4)
                    )
                )
            )
        finally:
            await provider.close()

    with connected(name) as (options, context):
        assert {trace.output for trace in asyncio.run(many(options, context))} == {"hello"}


FAILING: Mapping[str, Mapping[str, Any]] = {
    "anthropic": {"model": "m", "base_url": "URL"},
    "azure": {"endpoint": "URL", "deployment": "m", "api_key": "k"},
    "claude_cli": {"command": agent_programs.program("claude")},
    "cli": {"command": "exit 1"},
    "codex_cli": {"command": agent_programs.program("codex")},
    "copilot_cli": {"command": agent_programs.program("copilot")},
    "gemini": {"model": "m", "base_url": "URL"},
    "gemini_cli": {"command": agent_programs.program("gemini")},
    "http": {"url": "URL"},
    "mock": {"responses": [{"pattern": "never", "response": "x"}]},
    "openai": {"model": "m", "base_url": "URL"},
    "python": {"target": "nothing_like_it:answer", "python": sys.executable},
    "replay": {"path": str(ANSWERED)},
}


@pytest.mark.parametrize("name", NAMES)
def test_complete__a_failure_is_an_attempt_error_of_the_target(name: str) -> None:
    async def failed(options: base.ProviderOptions) -> None:
        provider = options.connect(targets.context({"PATH": os.environ["PATH"]}))
        try:
            await provider.complete(targets.request(Path("/"), "hello", eval_id="other"))
        finally:
            await provider.close()

    with stand_in(name, {}) as server:
        options = defined(name, FAILING[name], server.url)
        with pytest.raises(AttemptError) as caught:
            asyncio.run(failed(options))
    assert caught.value.kind == "target"


@pytest.mark.parametrize("name", NAMES)
def test_connect__opens_nothing(name: str) -> None:
    with stand_in(name, {}) as server:
        options = defined(name, SAMPLES[name], server.url)
        asyncio.run(options.connect(targets.context({"PATH": os.environ["PATH"]})).close())
        assert server.requests == []
