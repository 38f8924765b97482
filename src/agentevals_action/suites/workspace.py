"""Merges the workspace of a suite with that of a test, and collects the files in them."""

import os
import shlex
from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from agentevals_action.model.diagnostic import Location
from agentevals_action.model.suite import Hook, NamedFile, Repo, Reset, Workspace
from agentevals_action.suites import dialects, workspace_models
from agentevals_action.suites.files.diagnostics import Findings, Unreadable
from agentevals_action.suites.files.positions import Items, Map
from agentevals_action.suites.files.validation_errors import describe_value
from agentevals_action.suites.files.yaml_reader import read_yaml_file
from agentevals_action.system.paths import Folder
from agentevals_action.system.tree_files import leads_out, walk

_HOOKS = ("before_all", "before_each", "after_each", "after_all")
#: Default limits of hooks in seconds, as in AgentV.
_BEFORE_SECONDS, _AFTER_SECONDS = 60.0, 30.0


@dataclass(frozen=True)
class _DeclaredHook:
    """A hook as the suite or the test declares it; `home` is the folder of the declaring file."""

    location: Location
    home: Path
    model: workspace_models.Hook

    @property
    def reset(self) -> Reset | None:
        """The state to which the folder is reset."""
        if isinstance(self.model, workspace_models.ResettingHook):
            return self.model.reset
        return None


@dataclass(frozen=True)
class _DeclaredWorkspace:
    """The workspace as the suite or the test declares it."""

    location: Location
    model: workspace_models.Workspace
    repos: tuple[Repo, ...] | None
    hooks: Mapping[str, _DeclaredHook] = field(default_factory=dict)
    files: tuple[NamedFile, ...] = ()


class WorkspaceReader:
    """Reads the workspaces of one suite in `folder`; a template that many tests name is searched
    once."""

    def __init__(self, folder: Folder) -> None:
        self._folder = folder
        self._templates: dict[Path, tuple[tuple[NamedFile, ...], str]] = {}
        self._suite: _DeclaredWorkspace | None = None
        self._shared: Workspace | None = None

    def read_suite(
        self, workspace: str | workspace_models.Workspace | None, data: Map, findings: Findings
    ) -> tuple[NamedFile, ...]:
        """Reads the workspace of the suite, for all its tests; the files that it names."""
        self._suite = self._read(workspace, data, self._folder, findings)
        self._shared = _merge(self._suite, None, self._folder, findings)
        return self._shared.files if self._shared else ()

    def of_test(
        self,
        workspace: str | workspace_models.Workspace | None,
        data: Map,
        folder: Folder,
        findings: Findings,
    ) -> Workspace | None:
        """The effective workspace of a test; `folder` is that of its file."""
        own = self._read(workspace, data, folder, findings)
        return _merge(self._suite, own, folder, findings) if own else self._shared

    def _read(
        self,
        workspace: str | workspace_models.Workspace | None,
        owner: Map,
        folder: Folder,
        findings: Findings,
    ) -> _DeclaredWorkspace | None:
        if workspace is None:
            return None
        data: Map | None = owner["workspace"] if isinstance(owner["workspace"], Map) else None
        files: tuple[NamedFile, ...] = ()
        if isinstance(workspace, str):
            location = owner.value_location("workspace")
            data, folder, files = _read_file(workspace, location, folder, findings)
            if data is None:
                return None
            read = findings.read(workspace_models.Workspace, data, "workspace", folder)
            if read is None:
                return None
            workspace = read
        if data is None:
            raise TypeError("a workspace that is not a path is an object of the file")
        return _DeclaredWorkspace(
            location=data.location,
            model=workspace,
            repos=_repos(workspace),
            hooks=_declared_hooks(workspace.hooks, data, folder),
            files=(
                *files,
                *self._template_files(workspace.template, data, folder, findings),
                *_repository_files(workspace, folder),
            ),
        )

    def _template_files(
        self, path: Path | None, data: Map, folder: Folder, findings: Findings
    ) -> tuple[NamedFile, ...]:
        if path is None:
            return ()
        location = data.value_location("template")
        try:
            if path not in self._templates:
                self._templates[path] = _search(path, folder)
            files, problem = self._templates[path]
        except OSError as error:
            findings.error(location, f"`template`: {error}", "make it readable")
            return ()
        if problem:
            advice = "put the target of the link into the template"
            findings.error(location, f"`template`: {problem}", advice)
        return files


def _read_file(
    text: str, location: Location, folder: Folder, findings: Findings
) -> tuple[Map | None, Folder, tuple[NamedFile, ...]]:
    try:
        path = folder.file(text)
        source = folder.relative(path)
        value: Any = read_yaml_file(path, source)
    except Unreadable as error:
        findings.unreadable(error)
        return None, folder, ()
    except (OSError, ValueError) as error:
        advice = "name a YAML file of the repository, or write the workspace here"
        findings.error(location, f"`workspace`: {error}", advice)
        return None, folder, ()
    if not isinstance(value, Map):
        start = value.location if isinstance(value, Items) else Location(source)
        advice = "write an object with `template`, `repos` or `hooks`"
        findings.error(start, f"this workspace is {describe_value(value)}", advice)
        return None, folder, ()
    data = dialects.fold(value, dialects.WORKSPACE, findings)
    return data, Folder(folder.root, path.parent), (NamedFile(source, "workspace"),)


def _search(path: Path, folder: Folder) -> tuple[tuple[NamedFile, ...], str]:
    """The files of a template, and the problem of one of its links. OSError."""
    found = [entry for entry in walk(path) if not entry.is_folder]
    outside = (entry.path for entry in found if entry.is_link and leads_out(path, entry.path))
    problem = next((f"the link {link!r} in it leads out of it" for link in outside), "")
    named = (folder.relative(path / entry.path) for entry in found)
    return tuple(NamedFile(name, "workspace template") for name in named), problem


def _repos(workspace: workspace_models.Workspace) -> tuple[Repo, ...] | None:
    if workspace.repos is None:
        return None
    return tuple(
        Repo(one.path, one.repo, one.commit, one.ancestor, one.sparse) for one in workspace.repos
    )


def _repository_files(workspace: workspace_models.Workspace, folder: Folder) -> Iterable[NamedFile]:
    """The files of committed bare repositories, and the folders of submodules."""
    for repository in workspace.repos or ():
        source = repository.repo
        if isinstance(source, str) or source == folder.root:
            continue
        names = [source]
        if (source / "HEAD").is_file() and (source / "objects").is_dir():
            names = [source / entry.path for entry in walk(source) if entry.is_file]
        for name in names:
            yield NamedFile(folder.relative(name), "workspace repository")


def _declared_hooks(
    hooks: workspace_models.Hooks | None, data: Map, folder: Folder
) -> Mapping[str, _DeclaredHook]:
    declared = ((name, getattr(hooks, name, None)) for name in _HOOKS)
    return {
        name: _DeclaredHook(data["hooks"][name].location, folder.path, hook)
        for name, hook in declared
        if hook is not None
    }


def _merge(
    suite: _DeclaredWorkspace | None,
    test: _DeclaredWorkspace | None,
    folder: Folder,
    findings: Findings,
) -> Workspace | None:
    """The effective workspace: the fields of the test replace those of the suite."""
    declared = [one for one in (test, suite) if one is not None]
    if not declared:
        return None
    models = [one.model for one in declared]
    switches = [one.hooks.enabled for one in models if one.hooks and one.hooks.enabled is not None]
    are_enabled = switches[0] if switches else True
    own = {name: [one.hooks[name] for one in declared if name in one.hooks] for name in _HOOKS}
    hooks = {
        name: _merge_hook(name, parts, folder, findings)
        for name, parts in own.items()
        if parts and are_enabled
    }
    per_test = next((one.per_test for one in models if one.per_test is not None), False)
    resetting = next((one for one in own["after_each"] if one.reset not in (None, "none")), None)
    if per_test and are_enabled and resetting:
        problem = "`reset` has no effect where each test has a fresh folder"
        findings.warn_once(resetting.location, problem, "remove it, or `isolation`")
    files = [
        *(file for one in declared for file in one.files),
        *(file for hook in hooks.values() if hook for file in hook.files),
    ]
    return Workspace(
        location=declared[0].location,
        own=test is not None,
        template=next((one.template for one in models if one.template), None),
        per_test=per_test,
        repos=next((one.repos for one in declared if one.repos is not None), ()),
        before_all=hooks.get("before_all"),
        before_each=hooks.get("before_each"),
        after_each=hooks.get("after_each"),
        after_all=hooks.get("after_all"),
        reset=_reset(own["after_each"]) if are_enabled else "none",
        reset_before=_reset(own["before_each"]) if are_enabled else "none",
        files=tuple(dict.fromkeys(files)),
    )


def _reset(hooks: list[_DeclaredHook]) -> Reset:
    return next((hook.reset for hook in hooks if hook.reset is not None), "none")


def _merge_hook(
    name: str, declared: list[_DeclaredHook], folder: Folder, findings: Findings
) -> Hook | None:
    """A hook of the test's declaration and then the suite's; None where there is only a reset."""
    owner = next((one for one in declared if one.model.command is not None), None)
    if owner is None or owner.model.command is None:
        if not any(one.reset for one in declared):
            problem = f"the hook `{name}` has no `command`"
            findings.error(declared[0].location, problem, "write the command that it runs")
        return None
    models = [one.model for one in declared]
    cwd = next((one.cwd for one in models if one.cwd is not None), owner.home)
    milliseconds = next((one.timeout_ms for one in models if one.timeout_ms is not None), None)
    default = _BEFORE_SECONDS if name.startswith("before") else _AFTER_SECONDS
    return Hook(
        owner.model.command,
        owner.location,
        cwd,
        milliseconds / 1000 if milliseconds else default,
        tuple(_named_files(owner.model.command, cwd, folder)),
    )


def _named_files(command: str | tuple[str, ...], cwd: Path, folder: Folder) -> Iterable[NamedFile]:
    """The files of the repository that the words of a command name."""
    words: Iterable[str] = command
    if isinstance(command, str):
        try:
            words = shlex.split(command)
        except ValueError:  # a script in which a quote has another meaning
            words = command.split()
    for word in words:
        try:
            path = Path(os.path.normpath(cwd / word))
            is_inside = path.is_relative_to(folder.root) and path.is_file()
            if is_inside and path.resolve().is_relative_to(folder.root):
                yield NamedFile(folder.relative(path), "workspace hook")
        except (OSError, RuntimeError, ValueError):
            continue  # not a path
