"""Turns that are run before the one that is asked for."""

from collections.abc import Mapping
from pathlib import Path

from agentevals_action.execution.conversations import (
    may_remember,
    remembered_conversation,
    with_earlier_turns,
)
from agentevals_action.execution.resume import incomplete_conversations
from agentevals_action.model.suite import Suite
from tests.support import suites, targets

TURNS = (("a1", "a"), ("x", None), ("b1", "b"), ("a2", "a"), ("b2", "b"), ("a3", "a"))
MODEL: Mapping[str, object] = {"provider": "openai", "model": "m"}
AGENT: Mapping[str, object] = {"provider": "cli", "command": ["cat"]}
STORED: Mapping[str, object] = {"provider": "replay", "path": "r.jsonl"}


def talks(folder: Path, definition: Mapping[str, object] = AGENT) -> Suite:
    tests = "".join(
        f"  - {{id: {id}, input: q, criteria: c{f', conversation_id: {talk}' if talk else ''}}}\n"
        for id, talk in TURNS
    )
    suite = suites.load_valid(
        suites.write(
            folder,
            {"EVAL.yaml": f"name: suite\ntests:\n{tests}", ".agentv/targets.yaml": suites.TARGETS},
        )
    )
    suite.targets.targets["default"] = targets.target(definition)  # type: ignore[index]  # a plain dict, made by the loader
    return suite


def select(suite: Suite, *wanted: str) -> list[str]:
    return [test.id for test in with_earlier_turns(suite, lambda test: test.id in wanted)]


def test_turns__those_before_come_along_and_those_behind_do_not(tmp_path: Path) -> None:
    suite = talks(tmp_path)
    assert select(suite, "a2") == ["a1", "a2"]
    assert select(suite, "a1", "b2") == ["a1", "b1", "b2"]
    assert select(suite, "x") == ["x"]
    assert select(suite, "a3", "x", "a1") == ["a1", "x", "a2", "a3"]
    assert select(suite) == []


def test_turns__an_agent_that_remembers_nothing_is_asked_alone(tmp_path: Path) -> None:
    for definition in (MODEL, STORED):
        suite = talks(tmp_path, definition)
        (first, *_) = suite.tests
        assert not may_remember(suite, first)
        assert remembered_conversation(suite, first) is None
        assert select(suite, "a3") == ["a3"]


def test_incomplete_conversations__a_conversation_is_kept_completely_or_not_at_all(
    tmp_path: Path,
) -> None:
    def incomplete(definition: Mapping[str, object], valid: str) -> list[str]:
        suite = talks(tmp_path, definition)
        keys = [(suite.path, name) for name in valid.split()]
        return sorted(name for _, name in incomplete_conversations([suite], keys))

    assert incomplete(AGENT, "a1 x b1 a2 b2 a3") == []
    assert incomplete(AGENT, "a1 x b1 b2 a3") == ["a1", "a3"]
    assert incomplete(AGENT, "b1 b2") == []
    assert incomplete(MODEL, "a1 x b1 b2 a3") == []
