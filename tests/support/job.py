"""A job of a workflow: the action's process as GitHub's runner starts it, with its files, inputs
and event."""

import json
from collections.abc import Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from agentevals_action.settings import INPUTS
from tests.support import command
from tests.support.github_server import GitHubServer
from tests.support.runner import read_outputs


@dataclass(frozen=True)
class Finished:
    """What a job's step left."""

    code: int
    outputs: Mapping[str, str]
    summary: str
    log: str


@dataclass
class Job:
    """One step. `run` and `attempt` are GitHub's numbers, `inputs` what the workflow sets besides
    the defaults; `kilobytes` are the most that a file may grow to, where the disk is to be full."""

    workspace: Path
    server: GitHubServer
    event: Mapping[str, Any]
    sha: str
    folder: Path
    name: str = "pull_request"
    run: int = 1000
    attempt: int = 1
    inputs: Mapping[str, str] = field(default_factory=dict)
    env: Mapping[str, str] = field(default_factory=dict)
    actor: str = "ada"
    kilobytes: int | None = None

    def environment(self) -> dict[str, str]:
        """The step's environment, with new file commands."""
        self.folder.mkdir(parents=True, exist_ok=True)
        files = {
            name: self.folder / name.lower() for name in ("GITHUB_OUTPUT", "GITHUB_STEP_SUMMARY")
        }
        for path in files.values():
            path.write_text("")
        (self.folder / "event.json").write_text(json.dumps(self.event))
        inputs = {
            name: "" if described.default.startswith("${{") else described.default
            for name, described in INPUTS.items()
        }
        inputs |= {"github-token": self.server.token, **self.inputs}
        return command.environment(
            {
                "CI": "true",
                "GITHUB_ACTIONS": "true",
                "GITHUB_ACTOR": self.actor,
                "GITHUB_API_URL": self.server.url,
                "GITHUB_EVENT_NAME": self.name,
                "GITHUB_EVENT_PATH": str(self.folder / "event.json"),
                "GITHUB_GRAPHQL_URL": f"{self.server.url}/graphql",
                "GITHUB_REF": "refs/pull/7/merge"
                if self.name == "pull_request"
                else "refs/heads/main",
                "GITHUB_REPOSITORY": self.server.world.full_name,
                "GITHUB_RUN_ATTEMPT": str(self.attempt),
                "GITHUB_RUN_ID": str(self.run),
                "GITHUB_SERVER_URL": "https://github.com",
                "GITHUB_SHA": self.sha,
                "GITHUB_WORKSPACE": str(self.workspace),
                **{name: str(path) for name, path in files.items()},
                **{f"INPUT_{name.upper()}": value for name, value in inputs.items()},
                **self.env,
            }
        )

    def start(self) -> command.Process:
        """Starts the step, for tests that kill it."""
        return command.start_with_pipes(self.workspace, ["action"], self.environment(), merged=True)

    def finish(self, timeout: float = 100) -> Finished:
        """Runs the step to its end."""
        place, environ = self.workspace, self.environment()
        if self.kilobytes is None:
            done = command.finish(place, ["action"], environ, timeout, merged=True)
        else:
            done = command.run_with_small_files(place, self.kilobytes, ["action"], environ)
        return Finished(done.code, self.outputs(), self._file("github_step_summary"), done.out)

    def outputs(self) -> dict[str, str]:
        """The outputs that the step has written."""
        return dict(read_outputs(self._file("github_output")))

    def _file(self, name: str) -> str:
        return (self.folder / name).read_text(encoding="utf-8")
