"""The image, built and started as GitHub's runner does it, where a Docker daemon is to be had."""

import json
import os
import signal
import socket
import subprocess
import time
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import pytest

from tests.support.artifact_server import ArtifactServer
from tests.support.container import (
    ROOT,
    RUN_STEP,
    TOKEN,
    Process,
    docker,
    give_to_the_runner,
    step,
    step_words,
    with_docker,
)
from tests.support.github_server import GitHubServer
from tests.support.payloads import pull_request_event
from tests.support.repositories import Files, Repository, pull_request

BASE = "python:3.13-slim"
DEMO = ROOT / "examples" / "demo"
MOST_BYTES = 260_000_000

# A cold build takes its libraries and git from their registries.
pytestmark = [pytest.mark.container, pytest.mark.timeout(600)]


def run(image: str, *words: str, options: tuple[str, ...] = (), expect: int = 0) -> str:
    """What a fresh container prints, on either stream."""
    done = docker("run", "--rm", *options, image, *words, expect=expect)
    return done.stdout + done.stderr


def test_image__is_small(image: str) -> None:
    sizes = [
        int(docker("image", "inspect", "--format", "{{.Size}}", name).stdout)
        for name in (image, BASE)
    ]
    assert sizes[0] - sizes[1] < MOST_BYTES


def test_image__starts_as_the_runner_starts_it(image: str) -> None:
    config = json.loads(docker("image", "inspect", "--format", "{{json .Config}}", image).stdout)
    assert (config.get("User", ""), config.get("WorkingDir", "")) == ("", "")
    assert config["Labels"]["org.opencontainers.image.licenses"] == "MIT"
    assert run(image, "--version", options=("--entrypoint", "agentevals-action")).startswith(
        "agentevals-action "
    )


def test_image__starts_without_compiling(image: str) -> None:
    program = "import pathlib; print(sum(1 for _ in pathlib.Path('/usr/local').rglob('*.pyc')))"
    count = f'python3 -B -c "{program}"'
    script = f"{count}; agentevals-action action --help >/dev/null; {count}"
    done = docker("run", "--rm", "--entrypoint=sh", image, "-c", script)
    before, after = done.stdout.splitlines()
    assert 0 < int(before) == int(after)


def test_image__holds_no_build_tools_and_nothing_of_the_history(image: str) -> None:
    script = (
        "for tool in gcc cc g++ make hatch hatchling; do command -v $tool; done; "
        "/opt/agentevals/bin/python -I -c 'import hatchling' 2>/dev/null && echo hatchling; "
        "/opt/agentevals/bin/python -I -m pip --version 2>/dev/null; "
        "find / -xdev -name .git -o -xdev -path '*/agentevals_action/tests' | head; ls /build 2>/dev/null; ls /var/lib/apt/lists; true"
    )
    assert run(image, "-c", script, options=("--entrypoint", "sh")) == ""


def test_image__holds_templates_examples_and_schemas(image: str) -> None:
    code = "from agentevals_action import templating; print(*(len(list(templating.packaged_folder(n).rglob('*'))) for n in ('templates', 'examples', 'schemas')))"
    counts = run(
        image, "-I", "-c", code, options=("--entrypoint", "/opt/agentevals/bin/python")
    ).split()
    assert all(int(count) > 0 for count in counts)
    listing = run(
        image,
        "-c",
        "ls -a /opt/agentevals/lib/python3.*/site-packages/agentevals_action/_data/examples/demo/base",
        options=("--entrypoint", "sh"),
    )
    assert ".agentv" in listing.split()


def test_image__imports_nothing_from_the_workspace(image: str, tmp_path: Path) -> None:
    for name in ("yaml.py", "json.py", "sitecustomize.py", "agentevals_action/__init__.py"):
        (tmp_path / name).parent.mkdir(exist_ok=True)
        (tmp_path / name).write_text("raise SystemExit('the workspace was imported')\n")
    mounted = (
        "--volume",
        f"{tmp_path}:/github/workspace",
        "--workdir",
        "/github/workspace",
        "--env",
        "PYTHONPATH=/github/workspace",
    )
    output = run(image, options=mounted, expect=2)
    assert "the workspace was imported" not in output
    assert "GITHUB_EVENT_NAME" in output


@contextmanager
def served(folder: Path) -> Iterator[str]:
    """A git server on loopback for the repositories of a folder; its address."""
    with socket.socket() as free:
        free.bind(("127.0.0.1", 0))
        port = free.getsockname()[1]
    words = [
        "git",
        "daemon",
        "--listen=127.0.0.1",
        f"--port={port}",
        f"--base-path={folder}",
        "--export-all",
        "--reuseaddr",
        "--verbose",
    ]
    # Another user's repository is served too: only the daemon's own configuration may allow that.
    trusting = {
        **os.environ,
        "GIT_CONFIG_COUNT": "1",
        "GIT_CONFIG_KEY_0": "safe.directory",
        "GIT_CONFIG_VALUE_0": "*",
    }
    with subprocess.Popen(words, stderr=subprocess.PIPE, text=True, env=trusting) as daemon:
        assert daemon.stderr is not None
        assert "Ready to rumble" in daemon.stderr.readline()
        try:
            yield f"git://127.0.0.1:{port}"
        finally:
            daemon.terminate()


def example() -> dict[str, bytes]:
    """The files of the example repository."""
    files = DEMO / "base"
    return {
        path.relative_to(files).as_posix(): path.read_bytes()
        for path in files.rglob("*")
        if path.is_file() and path.suffix != ".pyc"
    }


def example_change(folder: Path) -> dict[str, bytes]:
    """The files that its red pull request changes."""
    repository = Repository.create(folder, example())
    repository.git("apply", str(DEMO / "red.patch"))
    names = repository.git("diff", "--name-only").split()
    return {name: (folder / name).read_bytes() for name in names}


def test_step__gates_a_pull_request_at_depth_one_in_another_users_workspace(
    image: str, tmp_path: Path
) -> None:
    if not RUN_STEP.is_file():
        pytest.skip(
            "the runner's part is not beside this checkout (../shared/container/run_step.py)"
        )
    if os.geteuid() != 0:
        pytest.skip("only root can give the workspace to another user")
    pull = pull_request(
        tmp_path / "origin",
        example(),
        example_change(tmp_path / "change"),
        {"CHANGES.md": "main moved on"},
    )
    workspace = pull.checkout(tmp_path / "workspace", pull.merge)
    payload = pull_request_event(pull.head, pull.main)
    payload["pull_request"]["merge_commit_sha"] = pull.merge
    event = tmp_path / "event.json"
    event.write_text(json.dumps(payload))

    with served(tmp_path) as address, GitHubServer("acme", "agent", token=TOKEN) as server:
        server.add_pull(7, pull.head, pull.main)
        workspace.git("remote", "set-url", "origin", f"{address}/origin/.git")
        give_to_the_runner(workspace.path)
        done = step(step_words(image, workspace.path, event, server, {}))

        assert done["exit"] == 1, done["log"]
        assert (
            done["outputs"]["outcome"],
            done["outputs"]["regressions"],
            done["outputs"]["improvements"],
        ) == ("failed", "4", "1")
        assert (done["outputs"]["base-sha"], done["outputs"]["head-sha"]) == (pull.main, pull.head)
        (comment,) = server.comments
        assert "refund-window" in comment.body
        (check,) = server.check_runs
        assert (check.head_sha, check.status, check.conclusion) == (
            pull.head,
            "completed",
            "failure",
        )
        gates = {
            (annotation["path"], annotation["start_line"])
            for annotation in check.annotations
            if annotation["annotation_level"] == "failure"
        }
        assert gates == {
            ("evals/EVAL.yaml", line_of("value: 30 days")),
            ("evals/EVAL.yaml", line_of("name: no-email-address")),
            (
                "evals/refunds/EVAL.yaml",
                line_of("type: tool_trajectory", "evals/refunds/EVAL.yaml"),
            ),
        }

    assert done["summary"]
    assert [str(path) for path in workspace.path.rglob("*") if path.lstat().st_uid != 1001] == []
    assert workspace.git("worktree", "list").count("\n") == 0
    assert TOKEN not in done["log"]


def test_step__uploads_its_report_page(image: str, tmp_path: Path) -> None:
    if not RUN_STEP.is_file():
        pytest.skip(
            "the runner's part is not beside this checkout (../shared/container/run_step.py)"
        )
    pull = pull_request(tmp_path / "origin", example(), example_change(tmp_path / "change"))
    workspace = pull.checkout(tmp_path / "workspace", pull.merge, depth=2)
    payload = pull_request_event(pull.head, pull.main)
    payload["pull_request"]["merge_commit_sha"] = pull.merge
    event = tmp_path / "event.json"
    event.write_text(json.dumps(payload))

    with GitHubServer("acme", "agent", token=TOKEN) as server, ArtifactServer() as artifacts:
        server.add_pull(7, pull.head, pull.main)
        done = step(step_words(image, workspace.path, event, server, {}, artifacts.variables))
        (comment,), (check,) = server.comments, server.check_runs

    assert done["exit"] == 1, done["log"]
    ((name, artifact),) = artifacts.artifacts.items()
    assert name == "agentevals-report-agentevals-1658821493-1.html"
    page = (workspace.path / "agentevals-report" / "report.html").read_bytes()
    assert (artifact.content, artifact.mime_type) == (page, "text/html")
    url = f"https://github.com/acme/agent/actions/runs/1658821493/artifacts/{artifact.id}"
    assert (done["outputs"]["report-url"], check.details_url) == (url, url)
    assert f"({url})" in comment.body
    assert f"({url})" in done["summary"]
    assert artifacts.token not in done["log"] + comment.body + page.decode()


def line_of(text: str, suite: str = "evals/EVAL.yaml") -> int:
    lines = (DEMO / "base" / suite).read_text().splitlines()
    return next(number for number, line in enumerate(lines, 1) if text in line)


ATTACKS = (ROOT / "tests/support/attacks.py").read_text()
CREDENTIAL = "AUTHORIZATION: basic dG9rZW4="


def suite_of(hook: str, agent: str, judge: str, workspace: str = "") -> dict[str, str]:
    """A suite whose hook, agent and judge are commands; `workspace` are more hooks and fields."""
    return {
        "EVAL.yaml": f"""\
name: programs
execution: {{target: agent}}
workspace:
  hooks:
    before_each: {{command: {hook}}}
    {workspace}
tests:
  - id: attempt
    input: Are you safe?
    criteria: It is.
    assertions:
      - {{type: equals, value: safe, required: true}}
      - {{type: code_judge, exit_code: true, script: {judge}, required: true}}
""",
        ".agentv/targets.yaml": f"""\
targets:
  - name: agent
    provider: cli
    command: {agent}
    cwd: .
""",
    }


@dataclass(frozen=True)
class Prepared:
    """A step on a pull request that is ready to run, and the modes in its checkout before it."""

    words: Sequence[str]
    workspace: Path
    before: Mapping[str, tuple[int, int, int]]
    server: GitHubServer


@contextmanager
def prepared(
    image: str,
    tmp_path: Path,
    files: Files,
    inputs: Mapping[str, str],
    variables: Mapping[str, str] | None = None,
    changes: Mapping[str, str] | None = None,
) -> Iterator[Prepared]:
    """A step on a pull request that changes the suite, or makes these `changes`."""
    changed = dict(changes or {"EVAL.yaml": str(files["EVAL.yaml"]) + "# changed\n"})
    pull = pull_request(tmp_path / "origin", files, changed)
    workspace = pull.checkout(tmp_path / "workspace", pull.merge)
    payload = pull_request_event(pull.head, pull.base)
    payload["pull_request"]["merge_commit_sha"] = pull.merge
    event = tmp_path / "event.json"
    event.write_text(json.dumps(payload))
    with served(tmp_path) as address, GitHubServer("acme", "agent", token=TOKEN) as server:
        server.add_pull(7, pull.head, pull.base)
        workspace.git("remote", "set-url", "origin", f"{address}/origin/.git")
        workspace.git("config", "http.https://github.com/.extraheader", CREDENTIAL)
        give_to_the_runner(workspace.path)
        inputs = {"baseline": "rerun", **inputs}
        words = step_words(image, workspace.path, event, server, inputs, variables)
        yield Prepared(words, workspace.path, modes(workspace.path), server)


@contextmanager
def listening(path: Path, group: int, mode: int) -> Iterator[None]:
    """A socket of root that accepts connections."""
    with socket.socket(socket.AF_UNIX) as listener:
        listener.bind(os.path.relpath(path))
        os.chown(path, 0, group)
        path.chmod(mode)
        listener.listen()
        yield
    path.unlink()


def step_of(
    image: str,
    tmp_path: Path,
    files: Files,
    inputs: Mapping[str, str],
    variables: Mapping[str, str] | None = None,
    changes: Mapping[str, str] | None = None,
) -> tuple[dict[str, Any], Path, Mapping[str, tuple[int, int, int]]]:
    """Runs such a step with a Docker socket in the checkout, and one that every user may write
    where the runner mounts its own."""
    sockets = tmp_path / "sockets"
    sockets.mkdir()
    path = with_docker_socket(tmp_path / "bin", sockets / "docker.sock")
    with (
        prepared(image, tmp_path, files, inputs, variables, changes) as ready,
        listening(ready.workspace / "docker.sock", 999, 0o660),
        listening(sockets / "docker.sock", 0, 0o666),
    ):
        done = step(ready.words, path=path)
    return done, ready.workspace, ready.before


def with_docker_socket(folder: Path, mounted: Path) -> str:
    """A PATH whose `docker run` mounts a socket, as the runner does."""
    volume = f"{mounted}:/var/run/docker.sock"
    return with_docker(folder, f'test "$1" != run || {{ shift; set -- run -v {volume} "$@"; }}')


def check_restored(workspace: Path, before: Mapping[str, tuple[int, int, int]]) -> None:
    """The runner's user has what it had, and what the programs made."""
    after = modes(workspace)
    assert {path: after.get(path) for path in before} == before
    assert [path for path in workspace.rglob("*") if path.lstat().st_uid != 1001] == []
    assert CREDENTIAL in (workspace / ".git/config").read_text()


def modes(folder: Path) -> dict[str, tuple[int, int, int]]:
    """Mode and owner of every entry of a checkout, without git's index and records."""
    entries = (folder, *folder.rglob("*"))
    return {
        str(path.relative_to(folder)): (facts.st_mode, facts.st_uid, facts.st_gid)
        for path in entries
        for facts in (path.lstat(),)
        if "objects" not in path.parts
    }


@pytest.mark.parametrize("option", ["", ", daemon"])
def test_attacks__of_every_program_fail(image: str, tmp_path: Path, option: str) -> None:
    roles = ("hook", "agent", "judge")
    commands = {role: f"[python3, attacks.py, {role}{option}]" for role in roles}
    files = {**suite_of(**commands), "attacks.py": ATTACKS}
    done, workspace, before = step_of(
        image,
        tmp_path,
        files,
        {
            "prepare": f"python3 attacks.py prepare {option.strip(', ')}",
            "cache-dir": ".cache/agentevals",
        },
    )
    assert done["outputs"]["outcome"] == "passed", done["log"] + done["summary"]
    check_restored(workspace, before)
    assert sorted(workspace.glob("found-*.txt")) == []
    assert done["env"] == {}
    assert "credentials are in `.git/config`" in done["log"]


#: A runner of others that attacks, and searches the folders of all runners. A test of its fails in
#: head's first start, so that it starts again.
ATTACKING_RUNNER = """\
import json, os, sys
from pathlib import Path
import attacks
suite, results, *selection = sys.argv[1:]
file = Path(results, "results.jsonl")
own = file.parents[1]
names = Path(selection[0]).read_text().split() if selection else ["safe", "again"]
found = attacks.attack()
for number in range(9):
    folder = own.with_name(f"runner-{number}")
    others = [folder, *(folder / f"results-{start}" for start in range(1, 9) if folder != own)]
    found += [f"{path} is readable" for path in others if os.access(path, os.R_OK)]
    found += [f"{path} is writable" for path in others if os.access(path, os.W_OK)]
found += [f"{path} is writable" for path in selection if os.access(path, os.W_OK)]
is_first = attacks.own_tree() == attacks.CHECKOUT and not selection
verdicts = {"safe": not found, "again": not is_first}
rows = [{"evalId": name, "verdict": "pass" if verdicts[name] else "fail"} for name in names]
file.write_text("".join(json.dumps({**row, "misses": found}) + "\\n" for row in rows))
"""


def test_attacks__of_a_runner_fail(image: str, tmp_path: Path) -> None:
    words = ["python3", "runner.py", "{SUITE}", "{RESULTS}"]
    entry = {
        "name": "ours",
        "results": "agentevals",
        "suites": "checks/*",
        "command": words,
        "again": [*words, "{SELECTION}"],
        "required": "safe",
    }
    files = {
        ".agentevals.yaml": json.dumps({"watch": "agent.txt", "runners": [entry]}),
        "checks/suite.txt": "safe",
        "runner.py": ATTACKING_RUNNER,
        "attacks.py": ATTACKS,
        "EVAL.yaml": "# Of the attacks.\n",
        "agent.txt": "before",
    }
    changes = {"agent.txt": "after"}
    done, workspace, before = step_of(image, tmp_path, files, {"suites": "none"}, None, changes)
    rows = (workspace / "agentevals-report/results.jsonl").read_text()
    assert done["outputs"]["outcome"] == "passed", done["log"] + done["summary"] + rows
    summary = json.loads((workspace / "agentevals-report/summary.json").read_text())
    assert summary["groups"]["flaky"] == 1
    check_restored(workspace, before)


KEY = "sk-of-the-workflow-0123456789"
#: Searches the variables and the memory of every process for the secrets of the step.
SEARCHING = f"""\
import glob, sys
found = []
for path in glob.glob("/proc/[0-9]*/environ"):
    try:
        data = open(path, "rb").read()
    except OSError:
        continue
    found += [path] * (b"{TOKEN}" in data or b"{KEY}" in data)
try:
    open("/proc/1/mem", "rb").close()
    found.append("memory")
except OSError:
    pass
print(found or "safe")
sys.exit(len(found))
"""
#: Docker's container with the user of the runner, to whom what the runner mounts belongs.
AS_RUNNER = """\
for word; do case $word in *:/github/*) chown -R 1001:127 "${word%%:*}";; esac; done
test "$1" != run || { shift; set -- run --user 1001:127 "$@"; }
"""


@pytest.mark.parametrize(
    ("isolation", "variables", "docker_lines"),
    [
        ("user", {}, ""),
        ("none", {}, ""),
        ("", {"AGENTEVALS_IMAGE": ""}, ""),
        ("", {}, AS_RUNNER),
    ],
    ids=["user", "none", "not in the image", "not as root"],
)
def test_secrets__of_the_step_are_in_reach_of_no_program(
    image: str, tmp_path: Path, isolation: str, variables: Mapping[str, str], docker_lines: str
) -> None:
    """Attack: a program that runs as root reads `/proc/1/environ`. `setup` runs base's files, also
    by the path of the checkout."""
    words = "[python3, search.py]"
    files = {**suite_of(words, words, words), "search.py": SEARCHING, "install.sh": "exit 0\n"}
    changes = {"install.sh": "exit 1\n", "EVAL.yaml": files["EVAL.yaml"] + "# changed\n"}
    inputs = {
        "prepare": "python3 search.py",
        "setup": 'python3 search.py && sh install.sh && sh "$GITHUB_WORKSPACE/install.sh"',
        **({"isolation": isolation} if isolation else {}),
    }
    known = {"OPENAI_API_KEY": KEY, **variables}
    path = with_docker(tmp_path / "bin", docker_lines)
    with prepared(image, tmp_path, files, inputs, known, changes) as ready:
        done = step(ready.words, path=path)
    assert done["outputs"].get("outcome") == "passed", done["log"] + done["summary"]


PYTHON_AGENT = """\
import os
from shop import words

calls = []


async def answer(messages, test_id):
    assert os.getuid() != 0, "the agent runs as root"
    calls.append(test_id)
    text = words.ANSWER.format(", ".join(calls))
    return {"output": text, "token_usage": {"input": 3, "output": 1}}
"""


def test_python_agent__is_imported_once_and_answers_in_both_trees(
    image: str, tmp_path: Path
) -> None:
    """Attack: the agent runs as root. The interpreter is the one that `prepare` made for a tree."""
    limit = "{type: token_usage, max_total: 4, required: true}"
    tests = "".join(
        f"  - {{id: {test}, input: q, assert: [{{type: equals, value: '{answer}', required: true}}, "
        f"{limit}]}}\n"
        for test, answer in (("first", "I saw first"), ("second", "I saw first, second"))
    )
    files = {
        "EVAL.yaml": f"name: python\ntests:\n{tests}",
        ".agentv/targets.yaml": "- {name: default, provider: python, target: 'shop.agent:answer', "
        "python: .venv/bin/python, cwd: /, max_concurrency: 1}\n",
        "shop/__init__.py": "",
        "shop/words.py": "ANSWER = 'I saw {}'\n",
        "shop/agent.py": PYTHON_AGENT,
        ".gitignore": ".venv\n__pycache__\n",
    }
    prepare = {"prepare": "python3 -m venv --without-pip .venv"}

    done, workspace, before = step_of(image, tmp_path, files, prepare)

    assert (done["outputs"]["outcome"], done["outputs"]["passed"]) == ("passed", "2"), done["log"]
    results = [
        json.loads(line)
        for name in ("base", "results")
        for line in (workspace / f"agentevals-report/{name}.jsonl").read_text().splitlines()
    ]
    assert [(row["evalId"], row["verdict"]) for row in results] == 2 * [
        ("first", "pass"),
        ("second", "pass"),
    ]
    check_restored(workspace, before)


WORK = """\
set -eux
mkdir -p node_modules/.bin && echo '#!/bin/sh' > node_modules/.bin/tool && chmod +x node_modules/.bin/tool
node_modules/.bin/tool
mkdir -p "$HOME/.npm/_npx" "$HOME/.cache/uv" && echo x > "$HOME/.npm/_npx/lock"
python3 -m venv --without-pip --clear .venv && .venv/bin/python -c 'import json'
git status --porcelain > /dev/null && git diff HEAD~0 > /dev/null && git log -1 --format=%H
test "$(cat "$(mktemp)" | wc -c)" = 0
bash -c 'set -euo pipefail; read -r line < <(echo one); echo "$line" > "$(mktemp -d)/in"'
rm -f state.db && python3 -c "import sqlite3; sqlite3.connect('state.db').execute('create table t(x)')"
PYTHONPATH=. python3 -c 'import helper' && test -d __pycache__
mkdir -p "$HOME/.cache/go-build/ab" && echo x > "$HOME/.cache/go-build/ab/cd"
ln -f "$HOME/.cache/go-build/ab/cd" "$HOME/.cache/go-build/ab/ef"
echo note > /dev/stderr && cat /dev/stdin > /dev/null
id -un && test "$(whoami)" = "$(id -un)"
"""
#: The hook may change what the judge made.
AFTER = """after_each: {command: [sh, after.sh]}
  template: project"""
AFTER_WORK = """\
set -eu
cd "$(python3 -c 'import json, sys; print(json.load(sys.stdin)["workspace_path"])')"
echo more >> coverage.txt && echo more >> package/build/out && echo new > package/build/new
rm -r coverage.txt package/build
"""
#: A judge reads the tree, and tests the project that the agent wrote where the agent wrote it.
JUDGE_WORK = """\
set -eux
cd "$(python3 -c 'import json, sys; print(json.load(sys.stdin)["workspace_path"])')"
test "$(cat x)" = x && test "$(git log -1 --format=%s)" = x
echo coverage > coverage.txt && mkdir -p package/build && echo built > package/build/out
python3 -m venv --without-pip .venv && .venv/bin/python -c 'import json'
cd "$GITHUB_WORKSPACE" && cat helper.py && git status --porcelain && git log -1 --format=%H
PYTHONPATH=. python3 -c 'import helper'
mkdir -p "$HOME/.cache/uv" && test "$(cat "$(mktemp)" | wc -c)" = 0
echo note > /dev/stderr && id -un && test "$(whoami)" = "$(id -un)"
"""
INSTALL = """\
set -eux
python3 -m venv --without-pip --clear .installed
pip --python .installed/bin/python install -q --no-index --no-build-isolation ./project
.installed/bin/python -c 'import helper_of_project'
"""
#: Makes a wheel with the standard library alone: there is no index in the test.
BACKEND = """\
import pathlib, zipfile
INFO = "project-1.0.dist-info/"
def build_wheel(folder, config=None, metadata=None):
    name = "project-1.0-py3-none-any.whl"
    with zipfile.ZipFile(pathlib.Path(folder, name), "w") as wheel:
        wheel.writestr("helper_of_project.py", "")
        wheel.writestr(INFO + "METADATA", "Metadata-Version: 2.1\\nName: project\\nVersion: 1.0\\n")
        wheel.writestr(INFO + "WHEEL", "Wheel-Version: 1.0\\nTag: py3-none-any\\n")
        wheel.writestr(INFO + "RECORD", "")
    return name
"""
PROJECT = """\
[project]
name = "project"
version = "1.0"
[build-system]
requires = []
build-backend = "backend"
backend-path = ["."]
"""
COMMIT = """\
cd "$WORKSPACE_PATH"
git init -q . && git config user.email a@example.org && git config user.name A
echo x > x && git add x && git commit -qm x && git log -1 --format=%s >&2
"""


def test_work_of_every_program__succeeds(image: str, tmp_path: Path) -> None:
    files = {
        **suite_of("[sh, work.sh]", "[sh, commit.sh]", "[sh, judge.sh]", AFTER),
        "judge.sh": JUDGE_WORK,
        "after.sh": AFTER_WORK,
        "project/package/source.txt": "",
        "work.sh": WORK,
        "install.sh": INSTALL,
        "helper.py": "",
        "project/pyproject.toml": PROJECT,
        "project/backend.py": BACKEND,
        "commit.sh": f"set -eu\nsh work.sh > /dev/null < /dev/null\n{COMMIT}echo safe\n",
    }
    done, workspace, before = step_of(
        image,
        tmp_path,
        files,
        {"prepare": "sh work.sh && sh install.sh"},
    )
    assert done["outputs"]["outcome"] == "passed", done["log"] + done["summary"]
    assert "after_each" not in done["summary"]
    check_restored(workspace, before)
    assert (workspace / ".venv/bin/python").is_symlink()
    assert (workspace / "state.db").stat().st_size > 0


#: What an agent as aider does with git, in a clone of the change as its workspace.
GIT_WORK = """\
set -eux
cd "$WORKSPACE_PATH/app"
git status --porcelain && git log -1 --format=%H && test -z "$(git status --porcelain)"
git config user.email a@example.org && git config user.name A
echo one >> agent.sh && git diff --stat && git stash && test -z "$(git status --porcelain)"
git stash pop && git add agent.sh && git commit -qm one && git switch -qc other && git reset -q --hard HEAD~0
git worktree add -q ../second && git -C ../second log -1 --format=%s
"""


def test_git__of_an_agent_works_in_a_clone_of_the_change(image: str, tmp_path: Path) -> None:
    """The checkout's own `.git` is not for programs: they read it, and change nothing."""
    files = {
        **suite_of('["true"]', "[sh, agent.sh]", "[sh, judge.sh]"),
        "agent.sh": f"({GIT_WORK}) >&2 || exit 1\n"
        'cd "$GITHUB_WORKSPACE" && git log -1 --format=%H >&2 && git status --porcelain >&2\n'
        "if git stash 2> /dev/null; then echo stashed; else echo safe; fi\n",
        "judge.sh": 'cd "$(python3 -c \'import json, sys; print(json.load(sys.stdin)["workspace_path"])\')/app"\n'
        'test "$(git log -1 --format=%s)" = one\n',
    }
    files["EVAL.yaml"] = files["EVAL.yaml"].replace(
        "workspace:\n", "workspace:\n  repos: [{path: app, repo: /}]\n"
    )
    done, workspace, before = step_of(image, tmp_path, files, {})
    assert done["outputs"]["outcome"] == "passed", done["log"] + done["summary"]
    check_restored(workspace, before)


def test_attacks__succeed_without_isolation(image: str, tmp_path: Path) -> None:
    """The attacks are real: what the README says about `isolation: none`."""
    commands = (f"[python3, attacks.py, {role}]" for role in ("hook", "agent", "judge"))
    files = {**suite_of(*commands), "attacks.py": ATTACKS}
    done, workspace, _ = step_of(image, tmp_path, files, {"isolation": "none"})
    assert done["outputs"]["outcome"] == "inconclusive", done["log"] + done["summary"]
    text = (workspace / "found-hook.txt").read_text()
    # Without `git`: base's programs, which run at the same time, may rename the folder first.
    names = ("rights", "docker_socket", "runner_files", "other_tree", "system_files", "other_homes")
    assert [name for name in names if f"{name}: " not in text] == []
    assert "isolation: none" in done["log"]


#: Asks both targets through its proxy, which print the numbers of their users.
ASKING = """\
import json, os, urllib.request
token = os.environ["AGENTV_TARGET_PROXY_TOKEN"]
def ask(target):
    body = json.dumps({"question": "who", "target": target}).encode()
    headers = {"Authorization": f"Bearer {token}", "Content-Type": "application/json"}
    url = os.environ["AGENTV_TARGET_PROXY_URL"] + "/invoke"
    with urllib.request.urlopen(urllib.request.Request(url, body, headers)) as answer:
        return int(json.load(answer)["rawText"])
found = [ask("agent"), ask("judge"), os.getuid()]
print(json.dumps({"score": float(found == [os.getgid(), 60803, 60803]), "misses": [str(found)]}))
"""


#: A service that answers with the number of its user.
SERVICE = """\
import http.server, os, sys
class Users(http.server.BaseHTTPRequestHandler):
    def do_POST(self):
        self.rfile.read(int(self.headers["Content-Length"]))
        self.send_response(200)
        self.end_headers()
        self.wfile.write(str(os.getuid()).encode())
http.server.HTTPServer(("127.0.0.1", int(sys.argv[1])), Users).serve_forever()
"""


@pytest.mark.parametrize(
    "provider",
    [
        "cli, command: [id, -u]",
        'http, url: "http://127.0.0.1:{PORT}/", start: "exec python3 service.py {PORT}"',
    ],
)
def test_users__of_agents_and_of_targets_that_judge(
    image: str, tmp_path: Path, provider: str
) -> None:
    files = {
        "EVAL.yaml": """\
name: users
execution: {target: agent}
tests:
  - id: asked
    input: Who are you?
    assertions:
      - {type: regex, value: "^6080[12]$", required: true}
      - {type: code_judge, name: asks, script: [python3, ask.py], target: true, required: true}
""",
        ".agentv/targets.yaml": f"""\
targets:
  - {{name: agent, provider: {provider}, judge_target: judge}}
  - {{name: judge, provider: {provider}}}
""",
        "ask.py": ASKING,
        "service.py": SERVICE,
    }
    done, _, _ = step_of(image, tmp_path, files, {})
    assert done["outputs"]["outcome"] == "passed", done["log"] + done["summary"]


#: Answers wrongly, and leaves a process that listens on the port of the judge's service before the
#: service does, which needs some time to start.
HIJACKING = """\
import glob, os, sys
sys.path.insert(0, os.environ["GITHUB_WORKSPACE"])
print("unsafe", flush=True)
if os.fork() == 0:
    os.setsid()
    os.dup2(os.open(os.devnull, os.O_RDWR), 1)
    os.dup2(1, 2)
    import judge
    port = None
    while port is None:
        for path in glob.glob("/proc/[0-9]*/cmdline"):
            try:
                words = open(path).read().split("\\0")
            except OSError:
                continue
            port = next((word for name, word in zip(words, words[1:]) if name == "judge.py"), port)
    judge.serve(int(port), lambda question: 1)
"""
JUDGE_SERVICE = """\
import http.server, json, sys, time
def serve(port, score):
    class Judge(http.server.BaseHTTPRequestHandler):
        def do_POST(self):
            question = self.rfile.read(int(self.headers["Content-Length"])).decode()
            reply = json.dumps({"score": score(question), "reasoning": "because"})
            self.send_response(200)
            self.end_headers()
            self.wfile.write(json.dumps({"output": reply}).encode())
    http.server.HTTPServer(("127.0.0.1", port), Judge).serve_forever()
if __name__ == "__main__":
    time.sleep(5)
    serve(int(sys.argv[1]), lambda question: int("unsafe" not in question))
"""


@pytest.mark.parametrize(("isolation", "outcome"), [("user", "inconclusive"), ("none", "passed")])
def test_service__an_agent_that_listens_on_its_port_does_not_answer(
    image: str, tmp_path: Path, isolation: str, outcome: str
) -> None:
    """Without users of their own, the attack succeeds."""
    service = "provider: http, url: 'http://127.0.0.1:{PORT}/', cwd: /"
    files = {
        "EVAL.yaml": """\
name: hijacked
execution: {target: agent}
tests:
  - {id: judged, input: q, assert: [{type: llm_judge, prompt: "{{ output }}", required: true}]}
""",
        ".agentv/targets.yaml": f"""\
- {{name: agent, provider: cli, command: [python3, agent.py], cwd: /, judge_target: judge}}
- {{name: judge, {service}, start: [python3, judge.py, "{{PORT}}"]}}
""",
        "agent.py": "print('safe')\n",
        "judge.py": JUDGE_SERVICE,
    }
    changes = {"agent.py": HIJACKING}
    inputs = {"isolation": isolation}
    done, workspace, _ = step_of(image, tmp_path, files, inputs, None, changes)
    assert done["outputs"]["outcome"] == outcome, done["log"] + done["summary"]
    rows = (workspace / "agentevals-report/results.jsonl").read_text()
    assert ("a program of another user listens on its port" in rows) is (isolation == "user")


#: Answers wrongly, leaves modules that interpreters load from HOME, and a process that writes a
#: score into the standard output of each judge.
CHEATING = """\
import glob, os, site, sys, time
from pathlib import Path
score = "import os; os.write(1, b'{\\"score\\": 1}'); os._exit(0)\\n"
for uid in ("60801", "60802", "60803", Path.home().parent.name):
    home = Path.home().parent.with_name(uid) / "home"
    folder = home / Path(site.getusersitepackages()).relative_to(Path.home())
    try:
        folder.mkdir(parents=True, exist_ok=True)
        (folder / "usercustomize.py").write_text(score)
    except OSError:
        continue
print("unsafe", flush=True)
if os.fork() == 0:
    os.setsid()
    os.dup2(os.open(os.devnull, os.O_RDWR), 1)
    os.dup2(1, 2)
    while True:
        for path in glob.glob("/proc/[0-9]*/cmdline"):
            try:
                if b"judge.py" in Path(path).read_bytes():
                    Path(path).with_name("fd").joinpath("1").open("a").write('{"score": 1}')
            except OSError:
                continue
        time.sleep(0.01)
"""
SLOW_JUDGE = """\
import json, sys, time
safe = json.load(sys.stdin)["answer"] == "safe"
time.sleep(1)
print(json.dumps({"score": float(safe)}))
"""


def test_judge__is_out_of_reach_of_an_agent_that_cheats(image: str, tmp_path: Path) -> None:
    files = {
        "EVAL.yaml": """\
name: cheating
execution: {target: agent}
tests:
  - id: attempt
    input: Are you safe?
    assertions:
      - {type: code_judge, name: checked, script: [python3, judge.py], required: true}
""",
        ".agentv/targets.yaml": "targets: [{name: agent, provider: cli, command: [python3, agent.py]}]\n",
        "agent.py": CHEATING,
        "judge.py": SLOW_JUDGE,
    }
    done, workspace, before = step_of(image, tmp_path, files, {"baseline": "none"})
    assert done["outputs"]["outcome"] == "failed", done["log"] + done["summary"]
    check_restored(workspace, before)


#: Scores by a tracked file. `judges` and `data` are links.
JUDGE = """\
import json, os, pathlib, sys
answer = json.load(sys.stdin)["answer"].strip()
assert pathlib.Path(os.environ["AGENTEVALS_CHECKOUT"], "evals/agent.py").is_file()
expected = pathlib.Path("data/expected.txt").read_text().strip()
print(json.dumps({"score": float(answer == expected), "misses": [f"{answer} is not {expected}"]}))
"""
#: Answers wrongly, and makes that right for its judge in the checkout.
ATTACKING = """\
import mmap, os, pathlib, shutil, sys
root = pathlib.Path.cwd().parent
forged = "print('{\\"score\\": 1}')\\n"
print("bad", flush=True)
if sys.argv[1] == "links":
    (root / "shared/judges").rename(root / "shared/before")
    shutil.copytree(root / "shared/before", root / "shared/judges")
    (root / "shared/judges/check.py").write_text(forged)
elif sys.argv[1] == "data":
    pathlib.Path("forged").mkdir()
    pathlib.Path("forged/expected.txt").write_text("bad")
    os.remove("data")
    os.symlink("forged", "data")
elif sys.argv[1] == "prepared":
    (root / "shared/judges/check.py").write_text(forged)
elif sys.argv[1] == "map":
    opened = (root / "shared/data/expected.txt").open("r+b")
    memory = mmap.mmap(opened.fileno(), 0)
    if os.fork() == 0:
        os.setsid()
        for number in (0, 1, 2):
            os.dup2(os.open(os.devnull, os.O_RDWR), number)
        while True:
            memory[:] = b"bad \\n"
"""


@pytest.mark.parametrize("attack", ["links", "data", "prepared", "map"])
def test_judge__of_tracked_files_is_not_turned(image: str, tmp_path: Path, attack: str) -> None:
    """An agent changes what its judge is made of: through a link, a swapped link to data, a folder
    that `prepare` makes again and that is its own, and a file that it has mapped into memory."""
    files: Files = {
        "evals/EVAL.yaml": """\
name: attacked
execution: {target: agent}
tests:
  - id: attempt
    input: q
    assertions:
      - {type: code_judge, name: checked, script: [python3, judges/check.py], required: true}
""",
        ".agentv/targets.yaml": f"""\
targets: [{{name: agent, provider: cli, command: [python3, agent.py, {attack}]}}]
""",
        "evals/agent.py": ATTACKING,
        "evals/judges": Path("../shared/judges"),
        "evals/data": Path("../shared/data"),
        "shared/judges/check.py": JUDGE,
        "shared/data/expected.txt": "good\n",
    }
    again = "cp -r shared/judges made && rm -r shared/judges && mv made shared/judges"
    inputs = {"baseline": "none", "prepare": again}
    changes = {"evals/EVAL.yaml": str(files["evals/EVAL.yaml"]) + "# changed\n"}
    done, _, _ = step_of(image, tmp_path, files, inputs, changes=changes)
    assert done["outputs"]["outcome"] == "failed", done["log"] + done["summary"]
    assert "bad is not good" in done["summary"]


#: What a judge and the folder of an agent need of what `prepare` makes, and a folder of the change.
NEEDING = """\
import json, os, pathlib, sys
import built, vendored.module
folder = pathlib.Path(json.load(sys.stdin)["workspace_path"])
found = sorted(path.relative_to(folder).as_posix() for path in folder.rglob("*.txt"))
assert found == ["installed/a.txt", "tracked.txt"], found
assert not os.path.exists(".env") and not os.path.exists("late.txt")
assert os.access(pathlib.Path(os.environ["AGENTEVALS_CHECKOUT"], "late.txt"), os.R_OK)
print('{"score": 1}')
"""


def test_judge__finds_what_prepare_made_and_nothing_later(image: str, tmp_path: Path) -> None:
    files = {
        **suite_of('["true"]', "[sh, agent.sh]", "[python3, judge.py]", "\n  template: project"),
        "judge.py": NEEDING,
        "agent.sh": 'touch "$GITHUB_WORKSPACE/late.txt" && echo safe\n',
        "project/tracked.txt": "",
        "vendored/__init__.py": "",
        "prepare.sh": "touch built.py vendored/module.py .env\n"
        "mkdir -p project/installed && touch project/installed/a.txt\n",
    }
    files["EVAL.yaml"] = files["EVAL.yaml"].replace("exit_code: true, ", "")
    done, workspace, before = step_of(image, tmp_path, files, {"prepare": "sh prepare.sh"})
    assert done["outputs"]["outcome"] == "passed", done["log"] + done["summary"]
    assert "agents can change: `built.py` and `vendored/module.py`;" in done["summary"]
    check_restored(workspace, before)


WAITING = """\
touch started.txt
sleep 600
"""


#: Seconds after the first signal: the runner kills what is left after 7.5 s, and all after 10 s.
MOST_SECONDS = 7.0


@pytest.mark.parametrize("number", ["SIGINT", "SIGTERM"])
def test_signal__cancels_the_check_in_time_and_restores_the_checkout(
    image: str, tmp_path: Path, number: str
) -> None:
    files = {**suite_of('["true"]', "[sh, agent.sh]", '["true"]'), "agent.sh": WAITING}
    inputs = {"baseline": "none", "cache-dir": ".cache/agentevals"}
    with prepared(image, tmp_path, files, inputs) as ready:
        sent: list[float] = []

        def send_signal(process: Process) -> None:
            while not (ready.workspace / "started.txt").exists() and process.poll() is None:
                time.sleep(0.1)
            containers = docker("ps", "-q", "--filter", f"volume={ready.workspace}").stdout.split()
            sent.append(time.monotonic())
            docker("kill", "--signal", number, *containers)

        done = step(ready.words, send_signal)
        seconds = time.monotonic() - sent[0]
        (check,) = ready.server.check_runs
    assert done["exit"] == 128 + signal.Signals[number], done["log"]
    assert (check.status, check.conclusion) == ("completed", "cancelled")
    assert seconds < MOST_SECONDS
    check_restored(ready.workspace, ready.before)


@pytest.mark.parametrize("name", ["SETGID", "SETUID", "KILL"])
def test_isolation__without_a_capability_nothing_runs(
    image: str, tmp_path: Path, name: str
) -> None:
    files = suite_of(*3 * ["[touch, found.txt]"])
    lines = f'test "$1" != run || {{ shift; set -- run --cap-drop {name} "$@"; }}'
    with prepared(image, tmp_path, files, {}) as ready:
        done = step(ready.words, path=with_docker(tmp_path / "bin", lines))
        (check,) = ready.server.check_runs
    assert (done["exit"], done["outputs"]["outcome"]) == (2, "invalid"), done["log"]
    assert (check.status, check.conclusion) == ("completed", "failure")
    assert f"the container does not have CAP_{name}, so programs cannot run" in done["log"]
    assert not (ready.workspace / "found.txt").exists()


def test_isolation__user_where_it_is_not_possible_is_invalid(image: str, tmp_path: Path) -> None:
    files = {**suite_of(*3 * ["[python3, attacks.py, agent]"]), "attacks.py": ATTACKS}
    done, _, _ = step_of(image, tmp_path, files, {"isolation": "user"}, {"AGENTEVALS_IMAGE": ""})
    assert (done["exit"], done["outputs"]["outcome"]) == (2, "invalid")
    assert "input `isolation`: `user` is not possible" in done["log"]
