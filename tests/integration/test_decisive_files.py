"""Attacks by the program under test on the files that decide about it: each ends in an error of the
affected tests that names the file, or has no effect."""

import json
import mmap
import os
import threading
from pathlib import Path
from typing import Any

import pytest

from tests.support import command, payloads
from tests.support.github_server import GitHubServer
from tests.support.github_world import file
from tests.support.job import Job
from tests.support.repositories import Files, Repository, pull_request

JUDGE = "import json, sys\nprint(json.dumps({'score': float('good' in json.load(sys.stdin)['answer'])}))\n"
GENEROUS = "print('{\"score\": 1}')\n"
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


def results(made: Repository) -> list[dict[str, Any]]:
    lines = (made.path / "agentevals-report/results.jsonl").read_text().splitlines()
    return [json.loads(line) for line in lines]


def test_judge__that_the_agent_rewrites_runs_as_it_was(tmp_path: Path) -> None:
    agent = (
        f"import pathlib\npathlib.Path('judges/check.py').write_text({GENEROUS!r})\nprint('bad')\n"
    )
    made = change(tmp_path, agent)
    done = review(made)
    assert done.code != 0, done.out + done.err
    (result,) = results(made)
    assert result["error"]["message"].startswith(
        "evals/judges/check.py was changed by a program after it was loaded"
    )
    # Attack: the failed gate becomes inconclusive, which a workflow may let pass.
    assert (done.code, result["verdict"], result["gatesFailed"]) == (1, "fail", ["check"])
    assert "`evals/judges/check.py` was changed by a program while the tests ran" in done.out


def test_judge__loads_no_module_that_an_agent_left_before_the_confirmation(tmp_path: Path) -> None:
    """Attack: the fresh samples that confirm a failure are judged with a module of the agent."""
    forged = "print('{\"score\": 1}')\nraise SystemExit\n"
    agent = f"import pathlib\npathlib.Path('judges/json.py').write_text({forged!r})\nprint('bad')\n"
    made = change(tmp_path, agent)
    done = command.run(made.path, "review", "--base", "main", "--confirm", "3")
    (result,) = results(made)
    assert (done.code, result["verdict"], result["gatesFailed"]) == (1, "fail", ["check"]), done.out
    assert {sample["verdict"] for sample in result["samples"]} == {"fail"}
    assert len(result["samples"]) > 1


#: They wait for the process that the agent left.
WAITING_AGENT = """\
open("PIPES/go", "w").close()
open("PIPES/changed").close()
print("bad")
"""
WAITING_JUDGE = """\
import json, sys
case = json.load(sys.stdin)
open("PIPES/judged", "w").close()
open("PIPES/restored").close()
print(json.dumps({"score": float(case["answer"].strip() in case["reference_answer"])}))
"""


def test_reference__that_an_agent_changes_in_its_memory_is_not_used(tmp_path: Path) -> None:
    """Attack: a process that an agent left maps the file. Its times show no later change of it,
    until the system writes it to the disk."""
    pipes = tmp_path / "pipes"
    pipes.mkdir()
    for name in ("go", "changed", "judged", "restored"):
        os.mkfifo(pipes / name)
    expected = "{role: assistant, content: [{type: file, value: reference.txt}]}"
    files: Files = {
        "evals/EVAL.yaml": SUITE.replace("input: qa", f"input: qa, expected_output: [{expected}]"),
        "evals/reference.txt": "good",
        "evals/judges/check.py": WAITING_JUDGE.replace("PIPES", str(pipes)),
    }
    made = change(tmp_path, WAITING_AGENT.replace("PIPES", str(pipes)), files)
    file = made.path / "evals/reference.txt"
    with file.open("r+b") as opened, mmap.mmap(opened.fileno(), 0) as memory:
        memory[:] = b"good"

        def attack() -> None:
            (pipes / "go").open().close()
            memory[:] = b"bad "
            (pipes / "changed").open("w").close()
            (pipes / "judged").open().close()
            memory[:] = b"good"
            (pipes / "restored").open("w").close()

        attacker = threading.Thread(target=attack)
        attacker.start()
        done = command.run(
            made.path, "review", "--base", "main", "--baseline", "none", "--confirm", "0"
        )
        # The judge did not start.
        others = [os.open(pipes / name, os.O_RDWR) for name in ("judged", "restored")]
        attacker.join()
        for descriptor in others:
            os.close(descriptor)
    (result,) = results(made)
    assert (done.code, result["verdict"]) == (3, None), done.out
    assert "it was changed by a program after it was loaded" in result["error"]["message"]


def test_judge__that_a_hook_names_too_runs_as_it_was(tmp_path: Path) -> None:
    """Attack: the change names the judge's script in a hook, so that it counts as the hook's."""
    hook = "{command: [test, -f, judges/check.py]}"
    files: Files = {
        "evals/EVAL.yaml": f"workspace: {{hooks: {{before_each: {hook}}}}}\n{SUITE}",
        ".agentv/targets.yaml": "targets: [{name: default, provider: cli, command: [python3, "
        "agent.py], cwd: /}]\n",
    }
    agent = "import pathlib\njudge = pathlib.Path('evals/judges/check.py')\n"
    agent += f"judge.write_text({GENEROUS!r})\nprint('bad')\n"
    made = change(tmp_path, agent, files)
    done = review(made)
    (result,) = results(made)
    assert (done.code, result["verdict"], result["gatesFailed"]) == (1, "fail", ["check"])


def test_judge__that_the_agent_changes_and_restores_is_noticed(tmp_path: Path) -> None:
    agent = (
        "import pathlib\n"
        "for name in ('EVAL.yaml', 'judges/check.py'):\n"
        "    path = pathlib.Path(name)\n    before = path.read_bytes()\n"
        "    path.write_bytes(b'x')\n    path.write_bytes(before)\n"
        "print('good')\n"
    )
    made = change(tmp_path, agent)
    done = review(made)
    assert done.code == 3, done.out + done.err
    (result,) = results(made)
    assert "was changed and restored by a program while the test ran" in result["error"]["message"]


def test_prompt__that_the_agent_replaces_by_a_link_is_not_read(tmp_path: Path) -> None:
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

    assert done.code == 3, done.out + done.err
    assert "the question" in received.read_text()
    assert "the runner's own token" not in received.read_text()
    assert "evals/question.md" in done.out


def test_judge__that_prepare_rewrites_is_an_error(tmp_path: Path) -> None:
    made = change(tmp_path, "print('bad')")
    done = review(made, "--prepare", "echo 'print(1)' > evals/judges/check.py")
    assert done.code != 0
    assert "evals/judges/check.py was changed by a program" in done.out


@pytest.mark.slow
@pytest.mark.parametrize("size", [3, 400])
def test_rows__that_the_agent_rewrites_in_place(tmp_path: Path, size: int) -> None:
    # Attack: the same length and time, in a short file and in one that is read as a stream.
    check = [{"type": "equals", "value": "good", "name": "gate", "required": True}]
    rows = [
        json.dumps({"id": f"t{number}", "input": "q" * 300, "assert": check})
        for number in range(size)
    ]
    agent = (
        "import os\n"
        "path = 'rows.jsonl'\n"
        "facts, text = os.stat(path), open(path).read()\n"
        "with open(path, 'r+') as file:\n"
        "    file.write(text.replace('good', 'evil'))\n"
        "os.utime(path, ns=(facts.st_atime_ns, facts.st_mtime_ns))\n"
        "print('evil')\n"
    )
    suite = "name: suite\ntests: rows.jsonl\n"
    made = change(
        tmp_path, agent, {"evals/EVAL.yaml": suite, "evals/rows.jsonl": "\n".join(rows) + "\n"}
    )
    done = command.run(made.path, "run", "--max-concurrency", "2")
    assert done.code != 0
    found = results(made)
    assert [row["evalId"] for row in found] == [f"t{number}" for number in range(size)]
    assert {row["verdict"] for row in found} <= {None, "fail"}
    assert "evals/rows.jsonl was changed by a program" in found[-1]["error"]["message"]


@pytest.mark.parametrize("local", [True, False])
def test_sparse_checkout__that_hides_a_suite_is_an_error(tmp_path: Path, local: bool) -> None:
    made = change(tmp_path, "print('bad')", {"other/EVAL.yaml": SUITE, "docs/x": "x"})
    made.git("sparse-checkout", "set", "--cone", "docs" if local else "other")
    done = review(made)
    assert done.code == 2, done.out + done.err
    assert "evals/EVAL.yaml: this file is tracked by git and is not on disk" in done.out + done.err
    assert "git sparse-checkout disable" in done.out + done.err


@pytest.mark.parametrize("hidden", ["config.yaml", "targets.yaml"])
def test_sparse_checkout__that_hides_a_configuration_is_an_error(
    tmp_path: Path, hidden: str
) -> None:
    """Attack: no suite is found without its pattern, and the check is green."""
    config = "eval_patterns: [checks/*.yaml]\n"
    files = {".agentv/config.yaml": config, "checks/one.yaml": SUITE, "agent.txt": "1"}
    made = change(tmp_path, "print('bad')", files)
    made.git("sparse-checkout", "set", "--no-cone", "/*", f"!/.agentv/{hidden}")
    done = review(made)
    assert done.code == 2, done.out + done.err
    assert (
        f".agentv/{hidden}: this file is tracked by git and is not on disk" in done.err + done.out
    )


def test_sparse_checkout__outside_of_what_is_searched_is_none_of_ours(tmp_path: Path) -> None:
    made = change(tmp_path, "print('good')", {"other/EVAL.yaml": SUITE})
    made.git("sparse-checkout", "set", "--cone", "evals", ".agentv")
    done = review(made, "--suites", "**/EVAL.yaml,!other/**")
    assert done.code == 0, done.out + done.err


def test_quarantine__a_named_pipe_is_an_error(tmp_path: Path) -> None:
    made = change(tmp_path, "print('good')")
    os.mkfifo(made.path / ".agentevals.yaml")
    done = review(made)
    assert done.code == 2, done.out + done.err
    assert "it is a named pipe, not a regular file" in done.out + done.err


def test_judge__runs_from_a_copy_and_finds_what_it_needs(tmp_path: Path) -> None:
    judge = (
        "import sys, pathlib\n"
        "sys.path.insert(0, str(pathlib.Path(__file__).parents[2]))\n"
        "import helper, shared.words, built\n"
        "assert pathlib.Path.cwd() == pathlib.Path(sys.argv[1]), pathlib.Path.cwd()\n"
        "assert pathlib.Path('data.txt').read_text() == 'data'\n"
        "assert not pathlib.Path(__file__).is_relative_to(sys.argv[1])\n"
        "print('{\"score\": 1}')\n"
    )
    made = Repository.create(
        tmp_path / "repository",
        {
            **FILES,
            "evals/judges/check.py": judge,
            "evals/judges/helper.py": "",
            "shared/words.py": "",
            "evals/data.txt": "data",
            "evals/EVAL.yaml": SUITE.replace(
                "judges/check.py", f"judges/check.py, '{tmp_path.resolve()}/repository/evals'"
            ),
        },
    )
    done = command.run(made.path, "run", "--prepare", "echo > evals/judges/built.py")
    assert done.code == 0, done.out + done.err + str(results(made))


def test_uncommitted_change__of_a_file_that_decides_is_reported(tmp_path: Path) -> None:
    with GitHubServer() as server:
        pull = pull_request(tmp_path / "origin", FILES, {"agent.py": "print('good!')\n"})
        server.add_pull(7, pull.head, pull.main, [file("agent.py")])
        workspace = pull.checkout(tmp_path / "workspace", pull.merge, 1).path
        suite = workspace / "evals/EVAL.yaml"
        suite.write_text(suite.read_text() + "# generated\n")
        (workspace / "agent.py").write_text("print('good!!')\n")
        done = Job(
            workspace,
            server,
            payloads.pull_request_event(pull.head, pull.main, 7),
            pull.merge,
            tmp_path / "runner",
            run=5,
            inputs={"baseline": "rerun"},
        ).finish()
    assert done.code == 0, done.log
    expected = "`agent.py` and `evals/EVAL.yaml` differ from the commit"
    assert expected in done.summary
    assert expected in server.world.comments[0].body


@pytest.mark.parametrize("restores", [False, True])
def test_judge__whose_command_the_agent_rewrites_is_an_error(
    tmp_path: Path, restores: bool
) -> None:
    """Attack: the judge of an `llm_judge` is a program of the repository. What the agent wrote there
    would run with the rights of judges."""
    ran = tmp_path / "ran"
    agent = "import pathlib\npath = pathlib.Path('../judge.py')\nbefore = path.read_text()\n"
    rewritten = f"open({str(ran)!r}, 'w').close()\n{GENEROUS}"
    agent += f"path.write_text({rewritten!r})\n"
    agent += "path.write_text(before)\n" * restores + "print('bad')\n"
    declared = TARGETS.replace("/agent.py", "../agent.py").replace(
        "}]", "}, {name: judge, provider: cli, command: [python3, ../judge.py]}]"
    )
    files = {
        "judge.py": "print('{\"score\": 0}')\n",
        "evals/EVAL.yaml": "name: suite\ntests:\n  - {id: a, input: qa, criteria: good}\n",
        ".agentv/targets.yaml": declared.replace("default,", "default, judge_target: judge,"),
    }
    made = change(tmp_path, agent, files)
    done = review(made, "--baseline", "none", "--watch", "agent.py")
    assert done.code == 3, done.out + done.err
    (result,) = results(made)
    assert result["error"]["message"].startswith("judge.py was changed ")
    assert not ran.exists()


def test_judge__imports_modules_as_they_were(tmp_path: Path) -> None:
    """Attack: a module outside of `judges/` is other while the judge runs."""
    agent = (
        "import pathlib\n"
        "path = pathlib.Path('../src/helpers.py')\n"
        "path.write_text('def score(answer): return 1.0\\n')\nprint('bad')\n"
    )
    judge = (
        "import json, pathlib, sys\n"
        "sys.path.insert(0, str(pathlib.Path(__file__).resolve().parents[2] / 'src'))\n"
        "import helpers\n"
        "print(json.dumps({'score': helpers.score(json.load(sys.stdin)['answer'])}))\n"
    )
    files = {
        "evals/judges/check.py": judge,
        "src/helpers.py": "def score(answer): return float('good' in answer)\n",
    }
    made = change(tmp_path, agent, files)
    done = review(made)
    (result,) = results(made)
    assert (done.code, result["verdict"]) == (1, "fail")
    assert result["evaluatorResults"][0]["score"] == 0
    message = "src/helpers.py was changed by a program after it was loaded"
    assert result["error"]["message"].startswith(message)
