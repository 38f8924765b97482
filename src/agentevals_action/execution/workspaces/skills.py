"""Skills and fixtures in a workspace: where each file goes, and what the agent is asked."""

import shutil
from collections.abc import Iterator, Sequence
from dataclasses import replace
from pathlib import Path

from agentevals_action.errors import AttemptError
from agentevals_action.formatting import joined
from agentevals_action.model.messages import Message
from agentevals_action.model.suite import Suite, Test

#: The files to copy: absolute, and the path in the workspace.
Copies = Sequence[tuple[Path, str]]


def list_copies(suite: Suite, test: Test) -> Copies:
    """The files of a test's skills (to the folders in which its agent finds skills) and of its
    fixtures, in the suite's own tree. AttemptError if a fixture does not exist."""
    if missing := [f"`{fixture.name}`" for fixture in test.fixtures if fixture.source is None]:
        problem = f"the test needs {joined(missing)}, which the repository does not have"
        raise AttemptError("workspace", problem, "add the file, or correct `files`")
    return [(suite.root / source, target) for source, target in _pairs(suite, test)]


def _pairs(suite: Suite, test: Test) -> Iterator[tuple[str, str]]:
    agent = suite.find_agent(test)
    for folder in agent.skill_folders if agent else ():
        for skill in test.skills:
            for source, inside in skill.installed:
                yield source, f"{folder}/{skill.name}/{inside}"
    for fixture in test.fixtures:
        for target in fixture.targets:
            yield fixture.source or "", target


def copy_files(copies: Copies, folder: Path) -> None:
    """Copies files with their modes; what a template has at a path is replaced. OSError."""
    for source, target in copies:
        copy = folder / target
        copy.parent.mkdir(parents=True, exist_ok=True)
        copy.unlink(missing_ok=True)
        shutil.copy(source, copy)


def asked_messages(test: Test, mark: str) -> Sequence[Message]:
    """The messages to the agent: a skill that only the user invokes is invoked in the first
    question, by `mark` and its name. The command is no part of the question: the skill may change
    its name."""
    manual = next((skill.name for skill in test.skills if skill.manual), None)
    place = next((n for n, message in enumerate(test.input) if message.role == "user"), None)
    if manual is None or place is None:
        return test.input
    question = test.input[place]
    text = question.content
    if not isinstance(text, str) or text.lstrip().startswith(("/", mark)):
        return test.input
    asked = replace(question, content=f"{mark}{manual} {text}")
    return (*test.input[:place], asked, *test.input[place + 1 :])
