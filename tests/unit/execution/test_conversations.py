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
from agentevals_action.results.jsonl import read_results
from tests.support import command, suites, targets

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


#: Answers with how many turns it has heard, and notes each.
PROGRAM = """\
import pathlib, sys
log = pathlib.Path("log.txt")
heard = (log.read_text().split() if log.exists() else []) + [sys.argv[1]]
log.write_text(" ".join(heard))
print("fine")
"""
NOTED = "targets:\n  - {name: default, provider: cli, command: [python3, agent.py, '{EVAL_ID}']}\n"


def conversations(folder: Path, value: str = "fine") -> Path:
    asks = "input: q, assert: [{type: equals, value: fine}]"
    last = f"input: q, assert: [{{type: equals, value: {value}}}]"
    rows = [
        f"{{id: {id}, {last if id == 'a2' else asks}{f', conversation_id: {talk}' if talk else ''}}}"
        for id, talk in TURNS
    ]
    text = "name: suite\ntests:\n" + "".join(f"  - {row}\n" for row in rows)
    return suites.write(
        folder, {".agentv/targets.yaml": NOTED, "agent.py": PROGRAM, "EVAL.yaml": text}
    )


def heard(folder: Path) -> list[str]:
    lines = (folder / "log.txt").read_text().split()
    (folder / "log.txt").unlink()
    return lines


def ids(folder: Path) -> list[str]:
    results_file = folder / "agentevals-report/results.jsonl"
    return [result.eval_id for result in read_results(results_file)]


def test_run__a_turn_is_not_sent_alone(tmp_path: Path) -> None:
    conversations(tmp_path)

    done = command.run(tmp_path, "run", "--test", "a2")

    assert (done.code, heard(tmp_path), ids(tmp_path)) == (0, ["a1", "a2"], ["a1", "a2"])
    assert "1 earlier turn of a conversation runs too" in done.err
    done = command.run(tmp_path, "run", "--test", "x")
    assert (heard(tmp_path), "earlier turn" in done.err) == (["x"], False)


def test_run__resume_makes_a_conversation_again_completely(tmp_path: Path) -> None:
    conversations(tmp_path)
    assert command.run(tmp_path, "run", "--max-concurrency", "1").code == 0
    assert len(heard(tmp_path)) == 6
    conversations(tmp_path, "other")  # what is expected of the second turn is another by now

    done = command.run(tmp_path, "run", "--resume")

    assert done.code == 1
    assert heard(tmp_path) == ["a1", "a2", "a3"]
    assert ids(tmp_path) == [id for id, _ in TURNS]
    assert "2 turns of conversations run again" in done.err
    assert "3 of 6 tests are kept" in done.err
