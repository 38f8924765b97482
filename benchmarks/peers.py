"""Other tools that do the benchmarks' work in their own format; `speed.py --peers FOLDER` installs
and measures them.

Each is installed from its registry; promptfoo needs a newer Node.js than many machines have, so one
is installed next to it. Its column is empty for what a tool has no form for, and `failed` for what
it cannot do here."""

import json
import os
import subprocess
import sys
from abc import ABC, abstractmethod
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path

CONCURRENCY = {"http10": 10, "http50": 50, "judges": 10}
TESTS = {
    "validate": 1,
    "mock": 1_000,
    "memory": 5_000,
    "http10": 200,
    "http50": 200,
    "judges": 200,
    "code": 100,
    "cli": 100,
}
QUESTION = "Say hello to customer {}."


@dataclass(frozen=True)
class Job:
    """A command that does one workload, and where."""

    command: Sequence[str | Path]
    folder: Path
    environment: Mapping[str, str]


class Peer(ABC):
    """One tool; `packages` are installed into `home`."""

    name: str
    packages: Sequence[str]

    def __init__(self, home: Path) -> None:
        self.home = home / self.name

    @abstractmethod
    def install(self) -> None:
        """Installs the tool; CalledProcessError, or OSError when there is nothing to install it
        with."""

    @abstractmethod
    def write(self, workload: str, folder: Path) -> Sequence[str | Path] | None:
        """Writes the workload into a folder and gives the command, which finds the server in its
        environment; None where the tool has no form for it."""

    def prepare(self, workload: str, folder: Path, port: int) -> Job | None:
        """The workload, ready to run, with nothing sent home."""
        folder.mkdir()
        command = self.write(workload, folder)
        if command is None:
            return None
        server = f"http://127.0.0.1:{port}/v1"
        environment = {
            "PATH": f"{self.home / 'node_modules/node/bin'}{os.pathsep}{os.environ.get('PATH', '')}",
            "HOME": str(folder),
            "DO_NOT_TRACK": "1",
            "STAND_IN_MODEL": "stand-in",
            "STAND_IN_BASE_URL": server,
            "STAND_IN_API_KEY": "none",
            "OPENAI_BASE_URL": server,
            "OPENAI_API_KEY": "none",
            "PROMPTFOO_CONFIG_DIR": str(folder),
            "PROMPTFOO_DISABLE_TELEMETRY": "1",
            "PROMPTFOO_DISABLE_UPDATE": "1",
        }
        return Job(command, folder, environment)


class NodePeer(Peer):
    """A tool of npm's."""

    def install(self) -> None:
        if not (self.home / "node_modules").is_dir():
            command = [
                "npm",
                "install",
                "--prefix",
                str(self.home),
                "--no-audit",
                "--no-fund",
                *self.packages,
            ]
            subprocess.run(command, check=True, stdout=subprocess.DEVNULL)


class AgentV(NodePeer):
    """https://agentv.dev: the same EVAL.yaml."""

    name, packages = "agentv", ("agentv@4.42",)

    def write(self, workload: str, folder: Path) -> Sequence[str | Path] | None:
        graded: list[dict[str, object]] = [
            {"type": "contains", "value": "hello"},
            {"type": "regex", "value": "hel+o"},
        ]
        target: dict[str, object] = {"provider": "mock", "response": "hello there"}
        if workload in CONCURRENCY:
            target = {
                "provider": "openai",
                **{
                    field: f"${{{{ STAND_IN_{field.upper()} }}}}"
                    for field in ("model", "base_url", "api_key")
                },
            }
        if workload == "judges":
            graded = [
                {"type": "llm-grader", "name": f"judge-{number}", "prompt": "Is hello said?"}
                for number in range(3)
            ]
        if workload == "code":
            (folder / "judge.py").write_text(
                "import json, sys\njson.load(sys.stdin)\nprint(json.dumps({'score': 1.0, 'hits': [], 'misses': []}))\n"
            )
            graded = [
                {"type": "code-grader", "command": [sys.executable, str(folder / "judge.py")]}
            ]
        if workload == "cli":
            (folder / "agent.py").write_text(
                "import json, sys\nopen(sys.argv[1], 'w').write(json.loads('\"hello there\"'))\n"
            )
            target = {
                "provider": "cli",
                "command": f"{sys.executable} {folder / 'agent.py'} {{OUTPUT_FILE}}",
            }
        subprocess.run(["git", "init", "--quiet", folder], check=True)
        (folder / ".agentv").mkdir()
        entry = {"name": "default", "grader_target": "default", **target}
        (folder / ".agentv/targets.yaml").write_text(json.dumps({"targets": [entry]}))
        tests = [
            {"id": f"test-{number}", "input": QUESTION.format(number), "criteria": "says hello"}
            for number in range(TESTS[workload])
        ]
        suite = {
            "name": "speed",
            "execution": {"target": "default"},
            "assertions": graded,
            "tests": tests,
        }
        (folder / "speed.eval.yaml").write_text(json.dumps(suite))
        command = [self.home / "node_modules/.bin/agentv"]
        if workload == "validate":
            return [*command, "validate", "speed.eval.yaml"]
        workers = str(CONCURRENCY.get(workload, 10))
        return [
            *command,
            "eval",
            "run",
            "speed.eval.yaml",
            "--workers",
            workers,
            "--no-results-push",
            "--threshold",
            "0",
        ]


class Promptfoo(NodePeer):
    """https://promptfoo.dev, which has an `echo` for a mock."""

    name, packages = "promptfoo", ("promptfoo@0.123", "node@22")

    def write(self, workload: str, folder: Path) -> Sequence[str | Path] | None:
        if workload in ("code", "cli"):
            return None
        model = "openai:chat:stand-in"
        graded: list[dict[str, object]] = [
            {"type": "contains", "value": "hello"},
            {"type": "regex", "value": "hel+o"},
        ]
        if workload == "judges":
            graded = [
                {"type": "llm-rubric", "value": f"Is hello said? ({number})", "provider": model}
                for number in range(3)
            ]
        config = {
            "prompts": ["{{question}}"],
            "providers": [model if workload in CONCURRENCY else "echo"],
            "defaultTest": {"assert": graded},
            "tests": [
                {"vars": {"question": QUESTION.format(number)}} for number in range(TESTS[workload])
            ],
        }
        (folder / "promptfooconfig.json").write_text(json.dumps(config))
        command = [self.home / "node_modules/.bin/promptfoo"]
        if workload == "validate":
            return [*command, "validate", "-c", "promptfooconfig.json"]
        concurrency = str(CONCURRENCY.get(workload, 10))
        return [
            *command,
            "eval",
            "-c",
            "promptfooconfig.json",
            "--no-cache",
            "--no-table",
            "--no-progress-bar",
            "--no-write",
            "-j",
            concurrency,
        ]


class Inspect(Peer):
    """https://inspect.aisi.org.uk, with its `mockllm`."""

    name, packages = "inspect-ai", ("inspect-ai==0.3.285", "openai")

    def install(self) -> None:
        if not self.home.is_dir():
            subprocess.run([sys.executable, "-m", "venv", self.home], check=True)
            subprocess.run(
                [self.home / "bin/pip", "install", "--quiet", *self.packages], check=True
            )

    def write(self, workload: str, folder: Path) -> Sequence[str | Path] | None:
        if workload in ("validate", "judges", "code", "cli"):
            return None
        (folder / "speed.py").write_text(
            "from inspect_ai import Task, task\n"
            "from inspect_ai.dataset import MemoryDataset, Sample\n"
            "from inspect_ai.scorer import includes, pattern\n"
            "from inspect_ai.solver import generate\n"
            "@task\n"
            "def speed():\n"
            f"    samples = [Sample(input={QUESTION!r}.format(n), target='o') for n in range({TESTS[workload]})]\n"
            "    return Task(dataset=MemoryDataset(samples), solver=generate(), scorer=[includes(), pattern('(o)')])\n"
        )
        model = "openai-api/stand-in/stand-in" if workload in CONCURRENCY else "mockllm/model"
        concurrency = str(CONCURRENCY.get(workload, 10))
        limits = ["--max-connections", concurrency, "--max-samples", concurrency]
        return [
            self.home / "bin/inspect",
            "eval",
            "speed.py",
            "--model",
            model,
            "--display",
            "none",
            "--log-dir",
            folder / "logs",
            *limits,
        ]


PEERS: Sequence[type[Peer]] = (AgentV, Promptfoo, Inspect)


def installed(home: Path) -> list[Peer]:
    """The tools that could be installed; for the others, the reason is printed."""
    found: list[Peer] = []
    for peer in (kind(home) for kind in PEERS):
        try:
            peer.install()
            found.append(peer)
        except (OSError, subprocess.CalledProcessError) as error:
            print(f"{peer.name} could not be installed: {error}", file=sys.stderr)
    return found
