"""Agents that work in folders, from the command line: what they are asked in, what judges see of
it, what is left behind."""

import json
import signal
from pathlib import Path
from typing import Any

import pytest

from tests.support import command
from tests.support.repositories import Repository

#: An agent that does what the prompt says: `write NAME TEXT` or `fail`.
AGENT = """\
import pathlib, sys
word, *rest = sys.stdin.read().split()
if word == "fail":
    sys.exit("the agent gave up")
pathlib.Path(rest[0]).write_text(rest[1] + "\\n")
print("done in", pathlib.Path.cwd())
"""
#: A judge that wants to see a change in the diff and in the folder itself.
JUDGE = """\
import json, pathlib, sys
case = json.load(sys.stdin)
name, text = case["config"]["name"], case["config"]["text"]
in_folder = (pathlib.Path(case["workspace_path"]) / name).read_text() == text + "\\n"
in_diff = f"+++ b/{name}" in case["file_changes"] and f"+{text}" in case["file_changes"]
print(json.dumps({"score": float(in_folder and in_diff), "reasoning": case["file_changes"]}))
"""
TARGETS = "targets:\n  - {name: default, provider: cli, command: [python3, AGENT]}\n"


def one_test(name: str, prompt: str, wanted: str, more: str = "") -> str:
    """A test that wants `NAME=TEXT` to be changed."""
    file, _, text = wanted.partition("=")
    judge = (
        f"{{type: code_judge, script: [python3, judge.py], config: {{name: {file}, text: {text}}}}}"
    )
    return f"  - {{id: {name}, input: {prompt}, assert: [{judge}]{more}}}\n"


def make_repository(tmp_path: Path, workspace: str, *tests: str) -> Path:
    """A repository with a suite in it."""
    agent = tmp_path / "repository" / "agent.py"
    files = {
        ".agentv/targets.yaml": TARGETS.replace("AGENT", str(agent)),
        "agent.py": AGENT,
        "judge.py": JUDGE,
        "start/app.txt": "old\n",
        "EVAL.yaml": f"name: suite\nworkspace:\n{workspace}tests:\n{''.join(tests)}",
    }
    Repository.create(tmp_path / "repository", files)
    return tmp_path / "repository"


def results(root: Path, name: str = "results") -> list[dict[str, Any]]:
    return [
        json.loads(line)
        for line in (root / "agentevals-report" / f"{name}.jsonl").read_text().splitlines()
    ]


def temporary(tmp_path: Path) -> dict[str, str]:
    """The environment of a run whose temporary files lie where they can be looked at."""
    (tmp_path / "temp").mkdir(exist_ok=True)
    return {"TMPDIR": str(tmp_path / "temp")}


@pytest.mark.parametrize("isolation", ["shared", "per_test"])
def test_run__an_agent_works_in_its_folder_and_judges_see_what_it_did(
    tmp_path: Path, isolation: str
) -> None:
    root = make_repository(
        tmp_path,
        f"  template: start\n  isolation: {isolation}\n",
        *(
            one_test(name, f"write {name}.txt {name}", f"{name}.txt={name}")
            for name in ("a", "b", "c")
        ),
    )
    done = command.run(root, "run", env=temporary(tmp_path))
    assert done.code == 0, done.out + done.err
    folders = {result["candidateAnswer"].split()[2] for result in results(root)}
    assert len(folders) == (1 if isolation == "shared" else 3)
    for result in results(root):
        name = result["evalId"]
        assert result["samples"][0]["fileChanges"].count("+++") == 1
        assert f"+++ b/{name}.txt" in result["samples"][0]["fileChanges"]
    assert list((tmp_path / "temp").iterdir()) == []
    assert not (root / "start" / "a.txt").exists()


def test_review__head_and_base_have_folders_of_their_own(tmp_path: Path) -> None:
    workspace = "  template: start\n  hooks: {after_each: {reset: strict}}\n"
    root = make_repository(
        tmp_path,
        workspace,
        *(one_test(name, f"write app.txt {name}", f"app.txt={name}") for name in ("a", "b")),
    )
    repository = Repository(root)
    repository.git("checkout", "--quiet", "-b", "change")
    repository.commit("another start", {"start/app.txt": "new\n"})
    done = command.run(root, "review", "--base", "main", env=temporary(tmp_path))
    assert done.code == 0, done.out + done.err
    for name, start in (("results", "new"), ("base", "old")):
        for result in results(root, name):
            assert f"-{start}\n+{result['evalId']}\n" in result["samples"][0]["fileChanges"]
    assert "start/app.txt" in done.out  # the question differs: what the agent finds is another
    assert list((tmp_path / "temp").iterdir()) == []


@pytest.mark.parametrize("isolation", ["shared", "per_test"])
def test_run__a_signal_skips_no_hook_that_cleans_up(tmp_path: Path, isolation: str) -> None:
    hooks = f"  isolation: {isolation}\n  hooks: {{after_all: {{command: 'sleep 600 & echo ended > {tmp_path}/ended'}}}}\n"
    root = make_repository(tmp_path, hooks, one_test("waits", "write a b", "a=b"))
    agent = f"import pathlib, time; pathlib.Path('{tmp_path}/started').touch(); time.sleep(600)\n"
    (root / "agent.py").write_text(agent)
    process = command.start(root, "run")
    command.wait_for(tmp_path / "started", process)
    process.send_signal(signal.SIGTERM)
    process.communicate(timeout=60)
    assert process.returncode == 128 + signal.SIGTERM
    assert (tmp_path / "ended").read_text() == "ended\n"
