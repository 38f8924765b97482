"""The composite action: the same contract as the container's, its steps run for real as the runner
starts them."""

import json
import subprocess
import sys
from collections.abc import Mapping
from pathlib import Path

import pytest
import yaml

from tests.support.repositories import Repository
from tests.support.runner import TOKEN, Finished, run_composite

ROOT = Path(__file__).resolve().parents[2]
FOLDER = ROOT / "composite"
ACTION = yaml.safe_load((ROOT / "action.yml").read_text(encoding="utf-8"))
COMPOSITE = yaml.safe_load((FOLDER / "action.yml").read_text(encoding="utf-8"))


def test_inputs__are_those_of_the_action() -> None:
    assert COMPOSITE["inputs"] == ACTION["inputs"]


def test_outputs__are_those_of_the_action() -> None:
    described = {
        name: {"description": each["description"]} for name, each in COMPOSITE["outputs"].items()
    }
    assert described == ACTION["outputs"]
    values = {name: f"steps.gate.outputs.{name}" for name in ACTION["outputs"]}
    values["report-url"] = "steps.upload.outputs.artifact-url"
    assert {name: each["value"] for name, each in COMPOSITE["outputs"].items()} == {
        name: f"${{{{ {value} }}}}" for name, value in values.items()
    }


def test_steps__put_no_expression_into_a_shell() -> None:
    scripts = [step["run"] for step in COMPOSITE["runs"]["steps"] if "run" in step]
    assert len(scripts) == 4
    assert [script for script in scripts if "${{" in script] == []


def interpreter(path: Path, code: str) -> None:
    """A program that stands where the environment's interpreter would."""
    path.parent.mkdir(parents=True)
    path.write_text(f"#!{sys.executable}\n{code}", encoding="utf-8")
    path.chmod(0o755)


HOSTILE = "a\"b$(touch pwned)`touch pwned`\n';touch pwned;\\ ${{ github.token }} ü"


def test_gate__gives_every_input_as_the_runner_does(tmp_path: Path) -> None:
    record = tmp_path / "seen.json"
    code = f"import json, os, sys\njson.dump([sys.argv[1:], dict(os.environ), os.getpid()], open({str(record)!r}, 'w'))\n"
    interpreter(tmp_path / "agentevals-action" / "bin" / "python", code)
    inputs = {
        **{name: str(each["default"]) for name, each in ACTION["inputs"].items()},
        "github-token": TOKEN,
        "fail-on": HOSTILE,
    }
    environment = {
        "PATH": f"{Path(sys.executable).parent}:/usr/bin:/bin",
        "RUNNER_TEMP": str(tmp_path),
        "GITHUB_ACTION_PATH": str(FOLDER),
    }
    script = COMPOSITE["runs"]["steps"][1]["run"]
    child = subprocess.Popen(
        ["bash", "--noprofile", "--norc", "-eo", "pipefail", "-c", script],
        env={**environment, "AGENTEVALS_INPUTS": json.dumps(inputs)},
        cwd=tmp_path,
    )
    assert child.wait(timeout=30) == 0
    arguments, seen, pid = json.loads(record.read_text())
    assert arguments == ["-I", "-m", "agentevals_action", "action"]
    assert {name: value for name, value in seen.items() if name.startswith("INPUT_")} == {
        f"INPUT_{name.upper()}": value
        # Another step uploads the page: this one does not get the token for it.
        for name, value in {**inputs, "upload-report": "false"}.items()
    }
    assert "AGENTEVALS_INPUTS" not in seen
    # The runner signals the process that it started: that must be the action itself.
    assert pid == child.pid
    assert not (tmp_path / "pwned").exists()


@pytest.mark.parametrize(
    ("server", "uploaded"),
    [
        ("https://github.com", True),
        ("https://acme.ghe.com", True),
        ("https://ghes.acme.com", False),
    ],
)
def test_page__has_the_name_of_its_artifact(tmp_path: Path, server: str, uploaded: bool) -> None:
    (tmp_path / "report").mkdir()
    (tmp_path / "report" / "report.html").write_text("the page")
    environment = {
        "GITHUB_WORKSPACE": str(tmp_path),
        "GITHUB_SERVER_URL": server,
        "GITHUB_RUN_ID": "7",
        "GITHUB_RUN_ATTEMPT": "2",
        "GITHUB_OUTPUT": str(tmp_path / "outputs"),
        "RUNNER_TEMP": str(tmp_path),
        "REPORT_DIR": "report",
        "COMMENT_ID": "nightly",
    }
    done = subprocess.run(
        [sys.executable, "-I", str(FOLDER / "page.py")],
        env=environment,
        check=True,
        capture_output=True,
        text=True,
    )
    copy = tmp_path / "agentevals-report-nightly-7-2.html"
    assert copy.is_file() is uploaded
    if uploaded:
        assert (copy.read_text(), (tmp_path / "outputs").read_text()) == (
            "the page",
            f"path={copy}\n",
        )
    else:
        assert "not uploaded, because GitHub Enterprise Server" in done.stdout


def example(folder: Path) -> Repository:
    """A git repository of the example's base."""
    files = ROOT / "examples" / "demo" / "base"
    return Repository.create(
        folder,
        {
            path.relative_to(files).as_posix(): path.read_bytes()
            for path in files.rglob("*")
            if path.is_file() and path.suffix != ".pyc"
        },
    )


def run(temp: Path, workspace: Path, sha: str) -> Finished:
    """The action on a scheduled run of the example, with no host to write to."""
    event = temp / "event.json"
    event.write_text(
        json.dumps(
            {
                "schedule": "0 4 * * *",
                "repository": {"full_name": "acme/agent", "default_branch": "main"},
            }
        )
    )
    environment: Mapping[str, str] = {
        "GITHUB_ACTIONS": "true",
        "GITHUB_EVENT_NAME": "schedule",
        "GITHUB_EVENT_PATH": str(event),
        "GITHUB_REPOSITORY": "acme/agent",
        "GITHUB_SHA": sha,
        "GITHUB_REF": "refs/heads/main",
        "GITHUB_WORKSPACE": str(workspace),
        "GITHUB_API_URL": "http://127.0.0.1:9",
        "GITHUB_RUN_ID": "7",
        "GITHUB_RUN_ATTEMPT": "1",
        "GITHUB_SERVER_URL": "https://github.com",
        "PATH": f"{Path(sys.executable).parent}:/usr/local/bin:/usr/bin:/bin",
        "PIP_NO_COMPILE": "1",  # of the libraries that are installed, one run imports a few
    }
    return run_composite(
        FOLDER, {"check-run": "false", "comment": "off"}, environment, workspace, temp
    )


# Installs from the package registry, as the runner does: ten seconds, and minutes where the machine
# or the line is busy.
@pytest.mark.slow
@pytest.mark.timeout(300)
def test_steps__install_and_gate(tmp_path: Path) -> None:
    workspace, temp = tmp_path / "workspace", tmp_path / "temp"
    temp.mkdir()
    sha = example(workspace).head()
    # A module of the workspace must not come before ours.
    (workspace / "yaml.py").write_text("raise SystemExit('the workspace was imported')\n")

    finished = run(temp, workspace, sha)
    assert finished.exit_code == 0, finished.log
    assert (
        finished.outputs["outcome"],
        finished.outputs["failed"],
        finished.outputs["errored"],
    ) == ("passed", "0", "0")
    assert finished.outputs["head-sha"] == sha
    assert (workspace / finished.outputs["results-path"]).is_file()
    ((name, page),) = finished.uploaded.items()
    assert name == "agentevals-report-agentevals-7-1.html"
    assert page == (workspace / "agentevals-report" / "report.html").read_bytes()
    assert finished.outputs["report-url"].endswith(name)
    assert f"[Open the report]({finished.outputs['report-url']})" in finished.summary
