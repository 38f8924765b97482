"""Hooks of workspaces: commands of a suite that get facts about the test as JSON."""

import json
import re
import shlex
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from agentevals_action.errors import AttemptError
from agentevals_action.model.suite import Test
from agentevals_action.model.workspace import HookName, Workspace
from agentevals_action.system import process
from agentevals_action.system.child_environment import ChildContext
from agentevals_action.system.isolation import ChildUser
from agentevals_action.system.signals import is_ending
from agentevals_action.targets.message_texts import prompt_text

_PLACEHOLDER = re.compile(r"\{\{(\w+)\}\}")
#: Seconds for each hook of a run that a signal ends: GitHub kills it ten seconds after the signal.
_ENDING_SECONDS = 2.0


@dataclass(frozen=True)
class HookCommands:
    """Runs the hooks of one run, as `user`."""

    run_id: str
    children: ChildContext
    user: ChildUser | None = None

    async def run(
        self, name: HookName, workspace: Workspace, folder: Path, test: Test | None
    ) -> None:
        """Runs the hook of this name, if it exists, for the folder of a test, or of several tests
        (None); no process that it started stays. Raises AttemptError when it fails."""
        hook = workspace.hook(name)
        if hook is None:
            return
        facts: dict[str, Any] = {
            "workspace_path": str(folder),
            "test_id": test.id if test else f"__{name}__",
            "eval_run_id": self.run_id,
            "case_input": _prompt(test) if test else None,
            "case_metadata": (test.metadata or None) if test else None,
        }
        timeout = workspace.timeout_seconds(name)
        await process.run_checked(
            f"the hook `{name}` ({hook.location})",
            self.children.program(_filled(hook.command, facts), hook.cwd, self.user),
            kind="workspace",
            timeout=min(timeout, _ENDING_SECONDS) if is_ending() else timeout,
            complete=False,
            stdin=json.dumps(facts, default=str),
        )


def _prompt(test: Test) -> str:
    try:
        return prompt_text(test.input)
    except (OSError, ValueError) as error:
        problem = f"the input cannot be written for the hooks: {error}"
        raise AttemptError("workspace", problem) from error


def _filled(command: str | tuple[str, ...], facts: Mapping[str, Any]) -> tuple[str, ...]:
    """The command with its placeholders filled in, quoted in a script. An unknown fact is empty; an
    unknown `{{name}}` stays as it is."""
    values = {
        name: (value if isinstance(value, str) else json.dumps(value, default=str)) if value else ""
        for name, value in facts.items()
    }
    if isinstance(command, str):
        quoted = {name: shlex.quote(value) for name, value in values.items()}
        return ("sh", "-c", _PLACEHOLDER.sub(lambda hit: quoted.get(hit[1], hit[0]), command))
    return tuple(
        _PLACEHOLDER.sub(lambda hit: values.get(hit[1], hit[0]), word).replace("\0", "")
        for word in command
    )
