"""Agents behind an HTTP service in a review: one that is started for each side, and one that runs
already."""

import json
import signal
import time
from pathlib import Path
from typing import Any

import pytest
import yaml

from tests.support import command
from tests.support.agent_server import AgentServer
from tests.support.agent_service import SERVICE
from tests.support.processes import gone
from tests.support.repositories import Repository

SUITE = """\
name: greeter
tests:
  - {id: greets, input: Ada, assert: [{type: contains, value: Hello, required: true}]}
  - {id: names, input: Bob, assert: [{type: contains, value: Bob}]}
"""
#: It writes its process id into a file of its tree.
NOTING = f"import os; open('pid', 'w').write(str(os.getpid()))\n{SERVICE}"


def targets(**fields: Any) -> str:
    return yaml.safe_dump([{"name": "default", "provider": "http", "retries": 0, **fields}])


def started(*words: str) -> str:
    start = ["python3", "-S", "service.py", "{PORT}", *words]
    return targets(url="http://127.0.0.1:{PORT}/ask", start=start, cwd="/")


def repository(folder: Path, target: str) -> Repository:
    made = Repository.create(
        folder / "repository",
        {
            "evals/EVAL.yaml": SUITE,
            ".agentv/targets.yaml": target,
            "service.py": NOTING,
            ".gitignore": "/agentevals-report/\n/pid\n",
        },
    )
    made.git("checkout", "--quiet", "-b", "change")
    return made


def review(repository: Repository, *options: str) -> command.Done:
    return command.run(repository.path, "review", "--base", "main", *options)


def rows(repository: Repository, name: str) -> list[dict[str, Any]]:
    text = (repository.path / "agentevals-report" / name).read_text()
    return [json.loads(line) for line in text.splitlines()]


def test_review__each_side_starts_the_service_in_its_own_tree(tmp_path: Path) -> None:
    change = repository(tmp_path, started())
    change.commit("rude", {"service.py": NOTING.replace('"Hello"', '"Yo"')})
    done = review(change, "--confirm", "0")
    assert done.code == 1, done.out + done.err
    assert "1 test regressed and failed a required gate" in done.out
    assert [row["candidateAnswer"] for row in rows(change, "base.jsonl")] == [
        "Hello Ada",
        "Hello Bob",
    ]
    assert gone(int((change.path / "pid").read_text()))


def test_review__a_service_that_does_not_start_on_head_is_no_pass(tmp_path: Path) -> None:
    change = repository(tmp_path, started())
    change.commit("broken", {"service.py": "raise SystemExit('no module named shop')\n"})
    done = review(change)
    assert done.code == 3, done.out + done.err
    assert "its service ended with exit code 1; its service wrote: no module named shop" in done.out


def test_review__one_that_does_not_start_on_base_alone_is_the_reason(
    tmp_path: Path,
) -> None:
    change = repository(tmp_path, started())
    change.git("checkout", "--quiet", "main")
    change.commit("broken", {"service.py": "raise SystemExit('no module named shop')\n"})
    change.git("checkout", "--quiet", "-B", "change")
    change.commit("repaired", {"service.py": NOTING})
    done = review(change)
    assert done.code == 0, done.out + done.err
    assert "could not be compared with the base (its service ended with exit code 1" in done.out


@pytest.mark.parametrize("number", [signal.SIGTERM, signal.SIGINT])
def test_run__a_signal_ends_the_service_while_it_starts(
    tmp_path: Path, number: signal.Signals
) -> None:
    made = repository(tmp_path, started())
    made.write(
        {
            "service.py": "import os,time; open('pid', 'w').write(str(os.getpid()))\ntime.sleep(600)\n"
        }
    )
    process = command.start(made.path, "run")
    pid = made.path / "pid"
    while not (pid.is_file() and pid.read_text()):
        time.sleep(0.01)
        assert process.poll() is None
    process.send_signal(number)
    process.communicate(timeout=60)
    assert process.returncode == 128 + number
    assert gone(int(pid.read_text()))


@pytest.fixture
def service() -> Any:
    with AgentServer(lambda received: f"Hello {received.body['prompt']}") as server:
        yield server


def test_review__a_service_that_runs_already_is_not_asked_for_base(
    tmp_path: Path, service: AgentServer
) -> None:
    change = repository(tmp_path, targets(url=service.url))
    change.commit("code", {"service.py": "# changed\n"})
    done = review(change, "--watch", "service.py")
    assert done.code == 0, done.out + done.err
    assert len(service.requests) == 2  # two tests of head
    assert (
        "all pass; 2 tests could not be compared with the base (both sides would ask the same service)."
        in done.out
    )
    assert "**Not compared** with the base" in done.out
    page = (change.path / "agentevals-report/report.html").read_text()
    assert "2 tests are not comparable: both sides would ask the same service" in page
    assert "regressed" not in done.out


def test_review__a_failure_of_a_service_that_runs_already_is_inconclusive(
    tmp_path: Path, service: AgentServer
) -> None:
    change = repository(tmp_path, targets(url=service.url))
    suite = SUITE.replace("value: Bob", "value: Rob")
    change.commit("stricter", {"evals/EVAL.yaml": suite})
    done = review(change)
    assert done.code == 3, done.out + done.err
    assert "**Inconclusive:** 1 test failed and has no result on base" in done.out


def test_review__an_earlier_turn_of_a_removed_one_has_no_result_of_the_same_service(
    tmp_path: Path, service: AgentServer
) -> None:
    """Base asks it again, so that the removed turn has its conversation: the answer is head's."""
    change = repository(tmp_path, targets(url=service.url))
    turns = """\
        name: greeter
        tests:
          - {id: first, conversation_id: a, input: Ada, assert: [{type: contains, value: Yo}]}
          - {id: second, conversation_id: a, input: Bob, assert: [{type: contains, value: Bob}]}
        """
    change.git("checkout", "--quiet", "main")
    change.commit("turns", {"evals/EVAL.yaml": turns})
    change.git("checkout", "--quiet", "-B", "change")
    change.commit("one turn", {"evals/EVAL.yaml": turns.rpartition("  - {id")[0]})
    done = review(change, "--confirm", "0")
    assert done.code == 3, done.out + done.err
    assert "1 test failed and has no result on base" in done.out
    assert [row["evalId"] for row in rows(change, "base.jsonl")] == ["second"]
    assert [received.body["prompt"] for received in service.requests] == ["Ada", "Ada", "Bob"]


@pytest.mark.parametrize("what", ["definition", "system"])
def test_review__another_definition_or_system_message_is_run_on_base(
    tmp_path: Path, service: AgentServer, what: str
) -> None:
    change = repository(tmp_path, targets(url=service.url))
    definition = targets(url=service.url, body={"prompt": "{{ prompt }}", "tone": "kind"})
    system = "input: [{role: system, content: Be kind}, {role: user, content: Ada}]"
    files = {
        "definition": {".agentv/targets.yaml": definition},
        "system": {"evals/EVAL.yaml": SUITE.replace("input: Ada", system)},
    }
    change.commit("kind", files[what])
    done = review(change)
    assert done.code == 0, done.out + done.err
    on_base = [row["evalId"] for row in rows(change, "base.jsonl")]
    assert on_base == (["greets", "names"] if what == "definition" else ["greets"])


def test_review__stored_results_are_the_base_of_a_service_that_runs_already(
    tmp_path: Path,
) -> None:
    greeting = {"word": "Hello"}
    with AgentServer(lambda asked: f"{greeting['word']} {asked.body['prompt']}") as service:
        change = repository(tmp_path, targets(url=service.url))
        change.git("checkout", "--quiet", "main")
        change.commit("rules", {".agentevals.yaml": "watch: [service.py => evals/**]\n"})
        assert command.run(change.path, "run", "--output", "evals/base.jsonl").code == 0
        change.commit("results")
        change.git("checkout", "--quiet", "-B", "change")
        change.commit("code", {"service.py": "# changed\n"})
        options = ("--baseline-file", "evals/base.jsonl")
        same = review(change, *options)
        greeting["word"] = "Yo"
        rude = review(change, *options)
    assert same.code == 0, same.out + same.err
    assert "none regressed" in same.out
    assert rude.code == 1, rude.out + rude.err
    assert "base could not be sampled again: both sides would ask the same service" in rude.out
