"""Every provider implements the interface of `Target`, and every file of the folder is in
the registry."""

import asyncio
import importlib
import inspect
import pkgutil
import sys
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import pytest
from pydantic import ValidationError

from agentevals_action import targets as package
from agentevals_action.model.target import Provider, Target
from agentevals_action.system.files.paths import Folder
from agentevals_action.targets.registry import PROVIDERS
from tests.support import agent_programs, targets
from tests.support.agent_server import AgentServer
from tests.support.model_targets import MODELS, VendorServer

ROOT = Path("/")
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


def defined(name: str, sample: Mapping[str, Any], url: str) -> Target:
    """The target of a sample, at a server."""
    definition = {field: url if value == "URL" else value for field, value in sample.items()}
    return targets.target({"provider": name, **definition})


@contextmanager
def served(name: str) -> Iterator[Target]:
    with stand_in(name, {"^echo hello$": "hello"}) as server:
        yield defined(name, SAMPLES[name], server.url)


def test_registry__has_every_provider_by_its_name() -> None:
    walked = pkgutil.walk_packages(package.__path__, f"{package.__name__}.")
    modules = [importlib.import_module(module.name) for module in walked]
    found = {
        item
        for module in modules
        for item in vars(module).values()
        if inspect.isclass(item) and issubclass(item, Target) and "provider" in vars(item)
    }
    assert found == {*PROVIDERS.values()}
    assert sorted(PROVIDERS) == NAMES
    for name, target in PROVIDERS.items():
        assert target.provider.replace("-", "_") == name


@pytest.mark.parametrize("name", NAMES)
def test_options__every_field_and_the_provider_are_described(name: str) -> None:
    target = PROVIDERS[name]
    assert target.__doc__
    own = target.model_fields.keys() - Target.model_fields.keys()
    assert [name for name in own if not target.model_fields[name].description] == []


@pytest.mark.parametrize("name", NAMES)
def test_options__are_frozen_and_survive_a_round_trip(name: str) -> None:
    with served(name) as target:
        fields = target.own_fields()
        again = type(target).model_validate({"name": "a", "provider": name, **fields})
        assert again.own_fields() == fields
        with pytest.raises(ValidationError, match="frozen"):
            setattr(target, next(iter(type(target).model_fields)), "changed")
        assert all(isinstance(variable, str) for variable in target.other_variables())
        assert repr(target) == f"{type(target).__name__}(…)"  # no field, as it may be a key


@pytest.mark.parametrize("name", NAMES)
def test_options__name_no_file_outside(name: str, tmp_path: Path) -> None:
    with served(name) as target:
        assert list(target.named_files(Folder(tmp_path, tmp_path))) == []


@pytest.mark.parametrize("name", NAMES)
def test_complete__answers(name: str) -> None:
    with served(name) as target:
        trace = targets.ask(target, ROOT, "echo hello")
    assert trace.output == "hello"
    assert trace.messages[-1].role == "assistant"
    assert trace.llm_call_count in ((1,) if PROVIDERS[name].is_model else (1, None))


@pytest.mark.parametrize("name", NAMES)
def test_complete__many_at_once(name: str) -> None:
    async def many(provider: Provider) -> set[str]:
        requests = (targets.request(ROOT, "echo hello", attempt=number) for number in range(4))
        return {trace.output for trace in await asyncio.gather(*map(provider.complete, requests))}

    with served(name) as target:
        assert targets.use(target, many) == {"hello"}


#: The definitions of those that fail by themselves; the others have no answer to `hello`.
FAILING: Mapping[str, Mapping[str, Any]] = {
    "cli": {"command": "exit 1"},
    "python": {"target": "nothing_like_it:answer", "python": sys.executable},
}


@pytest.mark.parametrize("name", NAMES)
def test_complete__a_failure_is_an_attempt_error_of_the_target(name: str) -> None:
    with stand_in(name, {}) as server:
        target = defined(name, FAILING.get(name, SAMPLES[name]), server.url)
        assert targets.refused(target, ROOT, "hello", eval_id="other").kind == "target"


@pytest.mark.parametrize("name", NAMES)
def test_connect__opens_nothing(name: str) -> None:
    with stand_in(name, {}) as server:
        target = defined(name, SAMPLES[name], server.url)
        asyncio.run(target.connect(targets.context()).close())
        assert server.requests == []
