"""What a test's workspace comes to, for whoever asks what folder the agent is let into and what is
run around it."""

from pathlib import Path
from typing import Literal

from agentevals_action.model.diagnostic import Location
from agentevals_action.model.result import Record
from agentevals_action.model.suite import Hook, Repo, Reset, Suite, Workspace

_HOOKS = ("before_all", "before_each", "after_each", "after_all")


class ExplainedRepo(Record):
    """A git repository in the workspace: `path` relative to it, `source` a URL, or relative to the
    repository; `ancestor` counts first parents before `commit`."""

    path: str
    source: str
    commit: str | None
    ancestor: int
    sparse: tuple[str, ...]


class ExplainedHook(Record):
    """A command of the workspace's life: words, or a script of `sh`; `cwd` relative to the
    repository, `timeout_seconds` its limit."""

    name: str
    command: str | tuple[str, ...]
    cwd: str
    timeout_seconds: float
    location: Location


class ExplainedWorkspace(Record):
    """The workspace of a test. `isolation` says who shares the folder: nobody (`per_test`), this
    test's samples (`own`), the suite's tests (`shared`). `template` is relative to the repository;
    `reset` is what happens after each test, `reset_before` before each."""

    location: Location
    isolation: Literal["per_test", "own", "shared"]
    template: str | None
    repos: tuple[ExplainedRepo, ...]
    hooks: tuple[ExplainedHook, ...]
    reset: Reset
    reset_before: Reset


def explain_workspace(suite: Suite, workspace: Workspace) -> ExplainedWorkspace:
    """Puts together what the workspace of one of the suite's tests comes to."""
    hooks = ((name, getattr(workspace, name)) for name in _HOOKS)
    return ExplainedWorkspace(
        location=workspace.location,
        isolation="per_test" if workspace.per_test else "own" if workspace.own else "shared",
        template=_shown(workspace.template, suite.root) if workspace.template else None,
        repos=tuple(_repo(repo, suite.root) for repo in workspace.repos),
        hooks=tuple(_hook(name, hook, suite.root) for name, hook in hooks if hook),
        reset=workspace.reset,
        reset_before=workspace.reset_before,
    )


def _repo(repo: Repo, root: Path) -> ExplainedRepo:
    source = _shown(repo.source, root) if isinstance(repo.source, Path) else repo.source
    return ExplainedRepo(
        path=repo.path,
        source=source,
        commit=repo.commit,
        ancestor=repo.ancestor,
        sparse=repo.sparse,
    )


def _hook(name: str, hook: Hook, root: Path) -> ExplainedHook:
    cwd = _shown(hook.cwd, root)
    return ExplainedHook(
        name=name,
        command=hook.command,
        cwd=cwd,
        timeout_seconds=hook.timeout_seconds,
        location=hook.location,
    )


def _shown(path: Path, root: Path) -> str:
    return path.relative_to(root).as_posix() if path.is_relative_to(root) else path.as_posix()
