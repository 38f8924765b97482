"""A composite action's steps as GitHub's runner starts them: expressions, bash, file commands, a
stand-in of actions/upload-artifact, nothing else."""

import json
import os
import re
import subprocess
from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import yaml

#: How the runner calls `shell: bash` with the file that it has written.
BASH = ("bash", "--noprofile", "--norc", "-e", "-o", "pipefail")
TOKEN = "ghs_token0of0the0job"

_EXPRESSION = re.compile(r"\$\{\{\s*(.+?)\s*\}\}")


@dataclass(frozen=True)
class Finished:
    """What a composite action left: the exit code of the first step that failed, or 0; outputs as
    mapped; everything printed; the files that it uploaded, by name."""

    exit_code: int
    outputs: Mapping[str, str]
    summary: str
    log: str
    uploaded: Mapping[str, bytes] = field(default_factory=dict)


@dataclass
class _Job:
    inputs: Mapping[str, str]
    steps: dict[str, dict[str, str]] = field(default_factory=dict)

    def text(self, template: object) -> str:
        return _EXPRESSION.sub(lambda match: self._value(match[1]), str(template))

    def _value(self, expression: str) -> str:
        if expression == "toJSON(inputs)":
            return json.dumps(self.inputs, indent=2)
        if expression == "github.token":
            return TOKEN
        if " && " in expression:
            parts = expression.split(" && ")
            return str(all(self._value(part) == "true" for part in parts)).lower()
        if expression == "!cancelled()":
            return "true"
        if compared := re.fullmatch(r"(\S+) (==|!=) '(.*)'", expression):
            is_equal = self._value(compared[1]) == compared[3]
            return str(is_equal is (compared[2] == "==")).lower()
        match expression.split("."):
            case ["inputs", name]:
                return self.inputs.get(name, "")
            case ["steps", step, "outputs", name]:
                return self.steps.get(step, {}).get(name, "")
        raise ValueError(f"the stand-in does not know the expression {expression!r}")


def run_composite(
    folder: Path,
    inputs: Mapping[str, str],
    environment: Mapping[str, str],
    workspace: Path,
    temp: Path,
) -> Finished:
    """Runs the steps of `folder/action.yml` in the workspace; after a failure, only those whose
    condition has a status function."""
    manifest = yaml.safe_load((folder / "action.yml").read_text(encoding="utf-8"))
    bare = _Job({})
    defaults = {
        name: bare.text(each.get("default", "")) for name, each in manifest["inputs"].items()
    }
    job = _Job({**defaults, **inputs})
    log, summary, code, uploaded = "", "", 0, dict[str, bytes]()
    for number, step in enumerate(manifest["runs"]["steps"]):
        files = {
            name: temp / f"{name.lower()}_{number}"
            for name in ("GITHUB_OUTPUT", "GITHUB_STEP_SUMMARY", "GITHUB_ENV", "GITHUB_PATH")
        }
        for path in files.values():
            path.touch()
        condition = step.get("if", "")
        if job.text(condition) == "false" or (code and "cancelled()" not in condition):
            continue
        name = step.get("id", str(number))
        if "uses" in step:
            job.steps[name] = _upload(step, job, uploaded)
            continue
        own = {name: job.text(value) for name, value in step.get("env", {}).items()}
        variables = {
            **{name: str(path) for name, path in files.items()},
            "GITHUB_ACTION_PATH": str(folder),
            "RUNNER_TEMP": str(temp),
        }
        finished = _run(
            step,
            job.text(step["run"]),
            {**environment, **variables, **own},
            workspace,
            temp / f"step_{number}.sh",
        )
        log += finished.stdout
        code = code or (0 if step.get("continue-on-error") else finished.returncode)
        summary += files["GITHUB_STEP_SUMMARY"].read_text(encoding="utf-8")
        outputs = files["GITHUB_OUTPUT"].read_text(encoding="utf-8")
        job.steps[name] = dict(read_outputs(outputs))
    return Finished(
        code,
        {name: job.text(each["value"]) for name, each in manifest["outputs"].items()},
        summary,
        log,
        uploaded,
    )


def _upload(step: Mapping[str, Any], job: _Job, uploaded: dict[str, bytes]) -> dict[str, str]:
    """The outputs of actions/upload-artifact, without an archive."""
    assert re.fullmatch(r"actions/upload-artifact@[0-9a-f]{40}", step["uses"])
    assert step["with"]["archive"] is False
    path = Path(job.text(step["with"]["path"]))
    uploaded[path.name] = path.read_bytes()
    return {"artifact-url": f"https://github.com/acme/agent/actions/runs/7/artifacts/{path.name}"}


def read_outputs(text: str) -> Iterator[tuple[str, str]]:
    """The names and values of a GITHUB_OUTPUT file, in both of its forms; ValueError as the runner
    fails the step."""
    lines = iter(text.splitlines())
    for line in lines:
        if match := re.fullmatch(r"([^=<]+)<<(.+)", line):
            value = []
            for inner in lines:
                if inner == match[2]:
                    break
                value.append(inner)
            else:
                raise ValueError(f"the delimiter of {match[1]} never came")
            yield match[1], "\n".join(value)
        elif "=" in line:
            name, _, plain = line.partition("=")
            yield name, plain
        elif line:
            raise ValueError(f"invalid format {line!r}")


def _run(
    step: Mapping[str, Any],
    script: str,
    environment: Mapping[str, str],
    workspace: Path,
    file: Path,
) -> subprocess.CompletedProcess[str]:
    assert step["shell"] == "bash", "the stand-in knows bash alone"
    file.write_text(script, encoding="utf-8")
    kept = {
        name: os.environ[name]
        for name in os.environ
        if name in {"PATH", "HOME", "LANG", "TMPDIR"} or name.startswith(("PIP_", "SSL_", "HTTPS_"))
    }
    return subprocess.run(
        [*BASH, str(file)],
        cwd=workspace,
        env={**kept, **environment},
        stdout=subprocess.PIPE,
        stderr=subprocess.STDOUT,
        stdin=subprocess.DEVNULL,
        text=True,
        timeout=280,
        check=False,
    )
