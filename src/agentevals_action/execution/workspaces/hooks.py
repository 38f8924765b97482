"""Hooks of workspaces: commands of a suite, with the facts of a test on their standard input."""

import json
import re
import shlex
from collections.abc import Callable, Mapping
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import Any

from agentevals_action.errors import AttemptError
from agentevals_action.model.messages import prompt_text
from agentevals_action.model.suite import Hook, Test
from agentevals_action.system import process

_LAST_LINES, _LAST_CHARACTERS = 5, 500
_PLACEHOLDER = re.compile(r"\{\{(\w+)\}\}")


@dataclass(frozen=True)
class Facts:
    """What a hook is told: `test_id` is `__before_all__` or `__after_all__`, without input and
    metadata, where no single test is served."""

    workspace_path: str
    test_id: str
    eval_run_id: str
    case_input: str | None = None
    case_metadata: Mapping[str, Any] | None = None

    @classmethod
    def of_test(cls, folder: Path, run_id: str, test: Test) -> "Facts":
        """The facts of one test; AttemptError when a file of its input cannot be read."""
        try:
            asked = prompt_text(test.input)
        except (OSError, ValueError) as error:
            raise AttemptError(
                "workspace", f"the input cannot be written for the hooks: {error}"
            ) from error
        return cls(str(folder), test.id, run_id, asked, test.metadata or None)

    def payload(self) -> str:
        """The JSON on a hook's standard input."""
        return json.dumps(asdict(self), default=str)

    def words(self) -> Mapping[str, str]:
        """What stands for `{{name}}` in a command; empty what is not known."""
        metadata = json.dumps(self.case_metadata, default=str) if self.case_metadata else ""
        return {**asdict(self), "case_input": self.case_input or "", "case_metadata": metadata}


@dataclass(frozen=True)
class Hooks:
    """Runs hooks: `environment` is all that they may see, `withheld` the names that were kept from
    it."""

    environment: Mapping[str, str]
    withheld: tuple[str, ...] = ()

    async def run(self, name: str, hook: Hook, facts: Facts) -> None:
        """Runs a hook to its end; AttemptError with its exit code and last words when it fails.
        Nothing that it started stays behind."""
        told = f"the hook `{name}` ({hook.location})"
        if not hook.cwd.is_dir():
            raise AttemptError("workspace", f"{told} cannot be run: its folder does not exist")
        command = _filled(hook.command, facts.words())
        try:
            done = await process.run(
                command,
                cwd=hook.cwd,
                environment=self.environment,
                timeout=hook.timeout_seconds,
                stdin=facts.payload(),
            )
        except OSError as error:
            reason = error.strerror or type(error).__name__
            raise AttemptError(
                "workspace", f"{told} cannot be started: {command[0]!r} ({reason})"
            ) from error
        if done.returncode == 0 and not done.timed_out:
            return
        how = (
            f"ran for over {hook.timeout_seconds:g} s"
            if done.timed_out
            else f"ended with exit code {done.returncode}"
        )
        raise AttemptError("workspace", f"{told} {how}{_last_words(done)}", self._hint())

    def _hint(self) -> str:
        if not self.withheld:
            return ""
        return f"Withheld from its environment: {', '.join(self.withheld)}; what it needs can be named in the workflow's input `env`."


def _filled(command: str | tuple[str, ...], words: Mapping[str, str]) -> tuple[str, ...]:
    """The words to run; in a script what is filled in is quoted. An unknown `{{name}}` stays as it
    is."""

    def replaced(text: str, quote: Callable[[str], str]) -> str:
        return _PLACEHOLDER.sub(
            lambda found: quote(words[found[1]]) if found[1] in words else found[0], text
        )

    if isinstance(command, str):
        return ("sh", "-c", replaced(command, shlex.quote))
    return tuple(replaced(word, str).replace("\0", "") for word in command)


def _last_words(done: process.Completed) -> str:
    lines = (done.stderr.strip() or done.stdout.strip()).splitlines()[-_LAST_LINES:]
    return f": {' | '.join(lines)[-_LAST_CHARACTERS:]}" if lines else ""
