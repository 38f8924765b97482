"""Turns of a conversation run one after another, whatever else runs beside them."""

import json
from pathlib import Path

from agentevals_action.results.jsonl import read_results
from tests.support import command
from tests.support.agent_server import AgentServer

#: Notes its beginning and its end, with a moment between in which another could begin.
AGENT = """\
import os, sys, time
def note(word):
    with open("log.txt", "a") as log:
        log.write(f"{word} {sys.argv[1]} {sys.argv[2]}\\n")
note("begin")
time.sleep(0.05)
note("end")
print("fine")
"""
TARGETS = "targets:\n  - {name: default, provider: cli, command: [python3, agent.py, '{EVAL_ID}', '{ATTEMPT}']}\n"


def prepared(folder: Path, turns: int, alone: int) -> None:
    (folder / ".agentv").mkdir()
    (folder / ".agentv/targets.yaml").write_text(TARGETS)
    (folder / "agent.py").write_text(AGENT)
    tests = [{"id": f"turn-{number}", "conversation_id": "chat"} for number in range(turns)]
    tests[1:1] = [{"id": f"alone-{number}"} for number in range(alone)]
    suite = {
        "name": "talk",
        "tests": [
            {**test, "input": "hi", "assert": [{"type": "equals", "value": "fine"}]}
            for test in tests
        ],
    }
    (folder / "EVAL.yaml").write_text(json.dumps(suite))


def noted(folder: Path) -> list[list[str]]:
    return [line.split() for line in (folder / "log.txt").read_text().splitlines()]


def test_conversation__its_turns_go_one_after_another(tmp_path: Path) -> None:
    prepared(tmp_path, turns=6, alone=6)
    done = command.run(tmp_path, "run", "--max-concurrency", "8")
    assert done.code == 0, done.err
    log = noted(tmp_path)
    turns = [(word, name) for word, name, _ in log if name.startswith("turn")]
    assert turns == [(word, f"turn-{number}") for number in range(6) for word in ("begin", "end")]
    running = most = 0
    for word, *_ in log:
        running += 1 if word == "begin" else -1
        most = max(most, running)
    assert most > 1  # the others ran beside it
    results = list(read_results(tmp_path / "agentevals-report/results.jsonl"))
    assert [result.conversation_id for result in results if result.eval_id.startswith("turn")] == [
        "chat"
    ] * 6


def test_conversation__a_turn_that_ends_in_an_error_does_not_stop_the_others(
    tmp_path: Path,
) -> None:
    prepared(tmp_path, turns=3, alone=0)
    (tmp_path / "agent.py").write_text(
        AGENT.replace("time.sleep(0.05)", "sys.exit(sys.argv[1] == 'turn-0')")
    )
    assert command.run(tmp_path, "run").code == 3
    assert [name for word, name, _ in noted(tmp_path) if word == "begin"] == [
        "turn-0",
        "turn-1",
        "turn-2",
    ]


def test_conversation__an_agent_hears_each_run_and_sample_apart(tmp_path: Path) -> None:
    prepared(tmp_path, turns=2, alone=0)
    with AgentServer("fine") as server:
        target = {
            "name": "default",
            "provider": "http",
            "url": server.url,
            "body": {
                "id": "{{ conversation_id }}",
                "at": "{{ sample }}",
                "question": "{{ prompt }}",
            },
        }
        (tmp_path / ".agentv/targets.yaml").write_text(json.dumps({"targets": [target]}))
        for _ in range(2):
            assert command.run(tmp_path, "run", "--samples", "2").code == 0
    names = [asked.body["id"] for asked in server.requests]
    assert len(names) == 8
    assert sorted(names.count(name) for name in set(names)) == [
        2,
        2,
        2,
        2,
    ]  # the two turns of one sample of one run share theirs
    assert all(name.startswith("chat-") for name in names)
