"""Hooks of workspaces: commands of a suite that get facts about the test as JSON."""

import json
import re
import shlex
from collections.abc import Mapping
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import Any

from agentevals_action.errors import AttemptError
from agentevals_action.model.suite import Hook, Test
from agentevals_action.system import process
from agentevals_action.system.isolation import ChildUser
from agentevals_action.targets.message_texts import prompt_text

_PLACEHOLDER = re.compile(r"\{\{(\w+)\}\}")


@dataclass(frozen=True)
class HookInput:
    """What a hook gets. `test_id` is `__before_all__` or `__after_all__`, without input and
    metadata, for a folder that several tests share."""

    workspace_path: str
    test_id: str
    eval_run_id: str
    case_input: str | None = None
    case_metadata: Mapping[str, Any] | None = None

    @classmethod
    def of_test(cls, folder: Path, run_id: str, test: Test) -> "HookInput":
        """The input for one test. Raises AttemptError when a file of the prompt cannot be read."""
        try:
            prompt = prompt_text(test.input)
        except (OSError, ValueError) as error:
            problem = f"the input cannot be written for the hooks: {error}"
            raise AttemptError("workspace", problem) from error
        return cls(str(folder), test.id, run_id, prompt, test.metadata or None)

    def json(self) -> str:
        """The text on the hook's standard input."""
        return json.dumps(asdict(self), default=str)

    def placeholders(self) -> Mapping[str, str]:
        """The values of `{{name}}` in a command, empty where they are unknown."""
        metadata = json.dumps(self.case_metadata, default=str) if self.case_metadata else ""
        return {**asdict(self), "case_input": self.case_input or "", "case_metadata": metadata}


@dataclass(frozen=True)
class HookRunner:
    """Runs hooks. `environment` is all that they see, `withheld` are the names of the variables
    that they do not see, `user` is the user that they run as."""

    environment: Mapping[str, str]
    withheld: tuple[str, ...] = ()
    user: ChildUser | None = None

    async def run(self, name: str, hook: Hook, facts: HookInput) -> None:
        """Runs a hook; nothing that it started stays. Raises AttemptError when it fails."""
        await process.run_checked(
            f"the hook `{name}` ({hook.location})",
            _filled(hook.command, facts.placeholders()),
            kind="workspace",
            cwd=hook.cwd,
            environment=self.environment,
            withheld=self.withheld,
            timeout=hook.timeout_seconds,
            complete=False,
            stdin=facts.json(),
            user=self.user,
        )


def _filled(command: str | tuple[str, ...], values: Mapping[str, str]) -> tuple[str, ...]:
    """The command with its placeholders filled in, quoted in a script. An unknown `{{name}}` stays
    as it is."""
    if isinstance(command, str):
        quoted = {name: shlex.quote(value) for name, value in values.items()}
        return ("sh", "-c", _PLACEHOLDER.sub(lambda hit: quoted.get(hit[1], hit[0]), command))
    return tuple(
        _PLACEHOLDER.sub(lambda hit: values.get(hit[1], hit[0]), word).replace("\0", "")
        for word in command
    )
