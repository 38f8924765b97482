"""The files that decide about a review as they are on disk: missing, not regular, or not as in the
commit."""

import os
from pathlib import Path

from tests.support import command
from tests.support.gate import opened
from tests.support.repositories import Files, Repository

JUDGE = "import json, sys\nprint(json.dumps({'score': float('good' in json.load(sys.stdin)['answer'])}))\n"
GATE = "{type: code_judge, name: check, script: [python3, judges/check.py], required: true}"
SUITE = f"name: suite\ntests:\n  - {{id: a, input: qa, assert: [{GATE}]}}\n"
TARGETS = "targets: [{name: default, provider: cli, command: [python3, /agent.py, '{PROMPT}']}]\n"
FILES: Files = {
    "evals/EVAL.yaml": SUITE,
    "evals/judges/check.py": JUDGE,
    ".agentv/targets.yaml": TARGETS.replace("/agent.py", "../agent.py"),
    "agent.py": "print('good')\n",
    ".gitignore": "/agentevals-report/\n__pycache__/\n",
}


def change(tmp_path: Path, agent: str, files: Files | None = None) -> Repository:
    """A branch whose agent does something else than the one of main."""
    made = Repository.create(tmp_path / "repository", {**FILES, **(files or {})})
    made.git("checkout", "--quiet", "-b", "change")
    made.commit("change", {"agent.py": agent})
    return made


def review(made: Repository, *arguments: str) -> command.Done:
    return command.run(
        made.path, "review", "--base", "main", "--baseline", "rerun", "--confirm", "0", *arguments
    )


def test_prompt__is_as_it_was_before_the_agent_replaced_it_by_a_link(tmp_path: Path) -> None:
    """Attack: the action can read files that the agent cannot, and would send them to it."""
    secret, received = tmp_path / "secret.txt", tmp_path / "received.txt"
    secret.write_text("the runner's own token")
    agent = (
        "import os, pathlib, sys\n"
        f"with open({str(received)!r}, 'a') as file: file.write(sys.argv[1])\n"
        "os.remove('question.md')\n"
        f"os.symlink({str(secret)!r}, 'question.md')\n"
        "print('good')\n"
    )
    asked = "input: [{role: user, content: [{type: file, value: question.md}]}]"
    check = "assert: [{type: contains, value: good}]"
    files = {
        "evals/EVAL.yaml": f"name: suite\ntests:\n  - {{id: a, {asked}, {check}}}\n  - {{id: b, {asked}, {check}}}\n",
        "evals/question.md": "the question",
    }
    made = change(tmp_path, agent, files)

    done = review(made, "--max-concurrency", "1", "--baseline", "none", "--watch", "agent.py")

    assert done.code == 0, done.out + done.err
    assert received.read_text().count("the question") == 2
    assert "the runner's own token" not in received.read_text()


def test_quarantine__a_named_pipe_is_an_error(tmp_path: Path) -> None:
    made = change(tmp_path, "print('good')")
    os.mkfifo(made.path / ".agentevals.yaml")
    done = review(made)
    assert done.code == 2, done.out + done.err
    assert "it is not a regular file" in done.out + done.err


def test_uncommitted_change__of_a_file_that_decides_is_reported(tmp_path: Path) -> None:
    change = {"agent.py": "print('good!')\n"}
    base = {**FILES, "lib/tools.py": "", "lib/notes.md": ""}
    inputs = {"baseline": "rerun", "watch": "lib/*.py"}
    with opened(tmp_path, base, change, inputs=inputs) as gate:
        job = gate.job(depth=1)
        suite = job.workspace / "evals/EVAL.yaml"
        suite.write_text(suite.read_text() + "# generated\n")
        (job.workspace / "agent.py").write_text("print('good!!')\n")
        for name in ("tools.py", "notes.md"):  # the second one decides about nothing
            (job.workspace / "lib" / name).write_text("# generated\n")
        done = job.finish()
        (comment,) = gate.comments()
    assert done.code == 0, done.log
    expected = "`agent.py`, `evals/EVAL.yaml` and `lib/tools.py` differ from the commit"
    assert expected in done.summary
    assert expected in comment
    assert "orking tree of" in comment


def test_uncommitted_change__files_that_earlier_steps_made_are_none(tmp_path: Path) -> None:
    change = {"agent.py": "print('good!')\n"}
    with opened(tmp_path, FILES, change, inputs={"baseline": "rerun"}) as gate:
        job = gate.job(depth=1)
        (job.workspace / "coverage.xml").write_text("<xml/>\n")
        done = job.finish()
        (comment,) = gate.comments()
    assert done.code == 0, done.log
    assert "orking tree of" not in comment
