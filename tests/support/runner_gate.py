"""A pull request of a repository whose suites a runner of others runs: `suite_runner.py`."""

import json
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from pathlib import Path
from typing import Any

from tests.support import payloads
from tests.support.gate import Gate
from tests.support.github_server import GitHubServer
from tests.support.job import Finished
from tests.support.repositories import Files, pull_request

PROGRAM = (Path(__file__).parent / "suite_runner.py").read_text(encoding="utf-8")
SUITE = "checks/shop.jsonl"
#: Both tests pass with the agent of `agent()`.
TESTS = """\
{"id": "greets", "ask": "Ada", "want": "Good day"}
{"id": "names", "ask": "Bob", "want": "Bob"}
"""
COMMAND = ("python3", "-S", "tools/run.py", "{SUITE}")


def agent(greeting: str = "Good day, {}.", **facts: Any) -> Files:
    """The agent's file, and what its runner does wrong."""
    return {"agent.json": json.dumps({"greeting": greeting, **facts})}


def entry(**fields: Any) -> dict[str, Any]:
    """An entry of `runners`, which starts the runner once for each sample."""
    common = {
        "name": "ours",
        "results": "agentevals",
        "suites": ["checks/*.jsonl"],
        "command": [*COMMAND, "1", "{RESULTS}"],
        "again": [*COMMAND, "1", "{RESULTS}", "{SELECTION}"],
        "env": ["CALLS"],
    }
    return {**common, **fields}


#: One start takes all samples.
WITH_SAMPLES = {
    "command": [*COMMAND, "{SAMPLES}", "{RESULTS}"],
    "again": [*COMMAND, "{SAMPLES}", "{RESULTS}", "{SELECTION}"],
}


def rules(*entries: Mapping[str, Any], **more: Any) -> Files:
    """`.agentevals.yaml`, by default with one entry."""
    content = {"watch": ["agent.json"], "runners": list(entries or [entry()]), **more}
    return {".agentevals.yaml": json.dumps(content)}


def files(*changes: Files) -> Files:
    """The files of base."""
    found = {"tools/run.py": PROGRAM, SUITE: TESTS, **rules(), **agent()}
    for change in changes:
        found |= change
    return found


class RunnerGate(Gate):
    """A pull request whose runner notes its starts."""

    @property
    def report(self) -> Path:
        """The report folder of the last run."""
        return self.folder / str(self.runs) / "workspace/agentevals-report"

    @property
    def summary(self) -> Any:
        """The summary of the last run."""
        return json.loads((self.report / "summary.json").read_text(encoding="utf-8"))

    def finish(self, *arguments: Any, timeout: float = 100, **facts: Any) -> Finished:
        """The next run, with a new file for the notes."""
        folder = self.folder / "calls"
        folder.mkdir(exist_ok=True)
        file = folder / str(self.runs + 1)
        file.touch()
        given = {"env": "CALLS", **facts.pop("inputs", {})}
        variables = {"CALLS": str(file), **facts.pop("env", {})}
        return self.job(*arguments, inputs=given, env=variables, **facts).finish(timeout)

    def pushed(self, commit: str = "") -> Finished:
        """A run of a push of a commit to main, by default of main as it is."""
        sha = commit or self.pull.main
        return self.finish("push", payloads.push_event("0" * 40, sha), sha)

    def calls(self, side: str = "") -> list[Any]:
        """The starts of the last run, of one side, in their order."""
        lines = (self.folder / "calls" / str(self.runs)).read_text(encoding="utf-8").splitlines()
        calls = [json.loads(line) for line in lines]
        head = str(self.folder / str(self.runs) / "workspace")
        return [call for call in calls if side in ("", "head" if call["tree"] == head else "base")]

    def rows(self, side: str = "head") -> dict[str, Any]:
        """The results of the last run by the ids of tests."""
        name = "results.jsonl" if side == "head" else "base.jsonl"
        lines = (self.report / name).read_text(encoding="utf-8").splitlines()
        return {row["evalId"]: row for row in map(json.loads, lines)}

    def changes(self) -> dict[str, str]:
        """What became of each test, apart from those that are as before."""
        return {
            test["id"]: test["change"]
            for suite in self.summary["suites"]
            for test in suite["tests"]
        }

    def annotations(self) -> list[tuple[str, str, int]]:
        """The level, path and line of each annotation of the last check run."""
        found = self.server.check_runs[-1].annotations
        return [(each["annotation_level"], each["path"], each["start_line"]) for each in found]


@contextmanager
def opened(
    folder: Path, base: Files, change: Files, since: Files | None = None
) -> Iterator[RunnerGate]:
    """A pull request that changes the files of `base`; main got those of `since` meanwhile."""
    pull = pull_request(folder / "origin", base, change, since)
    with GitHubServer() as server:
        server.permissions["contents"] = "write"
        yield RunnerGate(folder, server, pull, {})
