"""Turns of a conversation run one after another, whatever else runs beside them."""

import json
from pathlib import Path

from agentevals_action.results.jsonl import read_results
from tests.support import command, suites
from tests.support.agent_server import AgentServer

RESULTS = "agentevals-report/results.jsonl"
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


def write_suite(folder: Path, names: str, **answers: str) -> None:
    """A suite of tests: `a2` is a turn of the conversation `a`, `x` is alone. `answers` are the
    expected ones that are not `fine`, by test."""
    tests = [
        {
            "id": name,
            "input": "hi",
            "conversation_id": name[0] if name[1:] else None,
            "assert": [{"type": "equals", "value": answers.get(name, "fine")}],
        }
        for name in names.split()
    ]
    text = json.dumps({"name": "talk", "tests": tests})
    suites.write(folder, {".agentv/targets.yaml": TARGETS, "agent.py": AGENT, "EVAL.yaml": text})


def noted(folder: Path) -> list[list[str]]:
    return [line.split() for line in (folder / "log.txt").read_text().splitlines()]


def begun(folder: Path) -> list[str]:
    """The tests that began, in order, since this was last asked."""
    names = [name for word, name, _ in noted(folder) if word == "begin"]
    (folder / "log.txt").unlink()
    return names


def ids(folder: Path) -> list[str]:
    return [result.eval_id for result in read_results(folder / RESULTS)]


def test_conversation__its_turns_go_one_after_another(tmp_path: Path) -> None:
    write_suite(tmp_path, "t1 u v w x y z t2 t3 t4 t5 t6")
    done = command.run(tmp_path, "run", "--max-concurrency", "8")
    assert done.code == 0, done.err
    log = noted(tmp_path)
    turns = [(word, name) for word, name, _ in log if name.startswith("t")]
    assert turns == [(word, f"t{number}") for number in range(1, 7) for word in ("begin", "end")]
    running = most = 0
    for word, *_ in log:
        running += 1 if word == "begin" else -1
        most = max(most, running)
    assert most > 1  # the others ran beside it
    results = read_results(tmp_path / RESULTS)
    assert [each.conversation_id for each in results if each.eval_id[0] == "t"] == ["t"] * 6


def test_conversation__a_turn_that_ends_in_an_error_does_not_stop_the_others(
    tmp_path: Path,
) -> None:
    write_suite(tmp_path, "t1 t2 t3")
    (tmp_path / "agent.py").write_text(
        AGENT.replace("time.sleep(0.05)", "sys.exit(sys.argv[1] == 't1')")
    )
    assert command.run(tmp_path, "run").code == 3
    assert begun(tmp_path) == ["t1", "t2", "t3"]


def test_run__a_turn_is_not_sent_alone(tmp_path: Path) -> None:
    write_suite(tmp_path, "a1 x b1 a2 b2 a3")
    done = command.run(tmp_path, "run", "--test", "a2")
    assert (done.code, begun(tmp_path), ids(tmp_path)) == (0, ["a1", "a2"], ["a1", "a2"])
    assert "1 earlier turn of a conversation runs too" in done.err
    done = command.run(tmp_path, "run", "--test", "x")
    assert (begun(tmp_path), "earlier turn" in done.err) == (["x"], False)


def test_run__resume_makes_a_conversation_again_completely(tmp_path: Path) -> None:
    write_suite(tmp_path, "a1 x b1 a2 b2 a3")
    assert command.run(tmp_path, "run", "--max-concurrency", "1").code == 0
    assert len(begun(tmp_path)) == 6
    write_suite(tmp_path, "a1 x b1 a2 b2 a3", a2="other")
    done = command.run(tmp_path, "run", "--resume")
    assert done.code == 1
    assert begun(tmp_path) == ["a1", "a2", "a3"]
    assert ids(tmp_path) == ["a1", "x", "b1", "a2", "b2", "a3"]
    assert "2 turns of conversations run again" in done.err
    assert "3 of 6 tests are kept" in done.err


def test_conversation__an_agent_hears_each_run_and_sample_apart(tmp_path: Path) -> None:
    write_suite(tmp_path, "t1 t2")
    with AgentServer("fine") as server:
        body = {"id": "{{ conversation_id }}", "question": "{{ prompt }}"}
        target = {"name": "default", "provider": "http", "url": server.url, "body": body}
        suites.write(tmp_path, {".agentv/targets.yaml": json.dumps([target])})
        for _ in range(2):
            assert command.run(tmp_path, "run", "--samples", "2").code == 0
    names = [asked.body["id"] for asked in server.requests]
    assert len(names) == 8
    # The two turns of one sample of one run share theirs.
    assert [names.count(name) for name in set(names)] == [2] * 4
    assert all(name.startswith("t-") for name in names)
