"""Merges the workspace of a suite with that of a test, and collects the files in them."""

import os
import shlex
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import TypeVar

from agentevals_action.model.diagnostic import Location
from agentevals_action.model.suite import Hook, NamedFile, Repo, Reset, Workspace
from agentevals_action.suites import dialects
from agentevals_action.suites.files.diagnostics import Findings, Unreadable
from agentevals_action.suites.files.positions import Map
from agentevals_action.suites.files.yaml_reader import read_yaml_map
from agentevals_action.suites.models import workspace_models
from agentevals_action.system.files.paths import Folder
from agentevals_action.system.files.tree_files import leads_out, walk

#: Default limits of hooks in seconds, as in AgentV.
_SECONDS = {"before_all": 60.0, "before_each": 60.0, "after_each": 30.0, "after_all": 30.0}
_HOOKS = tuple(_SECONDS)
_OBJECT = "write an object with `template`, `repos` or `hooks`"

Value = TypeVar("Value")
WorkspaceOrPath = str | workspace_models.Workspace | None


@dataclass(frozen=True)
class _Hook:
    """A hook of the suite or of a test; `home` is the folder of the declaring file."""

    location: Location
    home: Path
    model: workspace_models.Hook
    reset: Reset | None


@dataclass(frozen=True)
class _Declared:
    """The workspace of the suite or of a test."""

    location: Location
    model: workspace_models.Workspace
    hooks: Mapping[str, _Hook]
    files: tuple[NamedFile, ...]


class WorkspaceReader:
    """Reads the workspaces of one suite in `folder`; a template that many tests name is searched
    once."""

    def __init__(self, folder: Folder) -> None:
        self._folder = folder
        self._templates: dict[Path, tuple[tuple[NamedFile, ...], str]] = {}
        self._suite: _Declared | None = None
        self._shared: Workspace | None = None

    def read_suite(
        self, workspace: WorkspaceOrPath, data: Map, findings: Findings
    ) -> tuple[NamedFile, ...]:
        """Reads the workspace of the suite, for all its tests; the files that it names."""
        self._suite = self._read(workspace, data, self._folder, findings)
        self._shared = _merge(self._suite, None, self._folder, findings)
        return self._shared.files if self._shared else ()

    def of_test(
        self, workspace: WorkspaceOrPath, data: Map, folder: Folder, findings: Findings
    ) -> Workspace | None:
        """The effective workspace of a test; `folder` is that of its file."""
        own = self._read(workspace, data, folder, findings)
        return _merge(self._suite, own, folder, findings) if own else self._shared

    def _read(
        self, workspace: WorkspaceOrPath, owner: Map, folder: Folder, findings: Findings
    ) -> _Declared | None:
        if workspace is None:
            return None
        data: Map = owner["workspace"]
        files: list[NamedFile] = []
        model: WorkspaceOrPath = workspace
        if isinstance(workspace, str):
            location = owner.value_location("workspace")
            read, folder = _read_file(workspace, location, folder, findings)
            if read is None:
                return None
            data = read
            files.append(NamedFile(data.source, "workspace"))
            model = findings.read(workspace_models.Workspace, data, "workspace", folder)
        if not isinstance(model, workspace_models.Workspace):
            return None
        if model.template:
            files += self._template_files(model.template, data, folder, findings)
        return _Declared(
            location=data.location,
            model=model,
            hooks={
                name: _Hook(
                    data["hooks"][name].location, folder.path, hook, getattr(hook, "reset", None)
                )
                for name in _HOOKS
                if (hook := getattr(model.hooks, name, None)) is not None
            },
            files=(*files, *_repository_files(model, folder)),
        )

    def _template_files(
        self, path: Path, data: Map, folder: Folder, findings: Findings
    ) -> tuple[NamedFile, ...]:
        location = data.value_location("template")
        try:
            if path not in self._templates:
                self._templates[path] = _search(path, folder)
        except OSError as error:
            findings.error(location, f"`template`: {error}", "make it readable")
            return ()
        files, problem = self._templates[path]
        if problem:
            advice = "put the target of the link into the template"
            findings.error(location, f"`template`: {problem}", advice)
        return files


def _read_file(
    text: str, location: Location, folder: Folder, findings: Findings
) -> tuple[Map | None, Folder]:
    try:
        path = folder.file(text)
        source = folder.relative(path)
        value = read_yaml_map(path, source, "workspace", _OBJECT)
    except Unreadable as error:
        findings.unreadable(error)
        return None, folder
    except ValueError as error:
        advice = "name a YAML file of the repository, or write the workspace here"
        findings.error(location, f"`workspace`: {error}", advice)
        return None, folder
    return dialects.fold(value, dialects.WORKSPACE, findings), Folder(folder.root, path.parent)


def _search(path: Path, folder: Folder) -> tuple[tuple[NamedFile, ...], str]:
    """The files of a template, and the problem of one of its links. OSError."""
    found = [entry for entry in walk(path) if not entry.is_folder]
    outside = (entry.path for entry in found if entry.is_link and leads_out(path, entry.path))
    problem = next((f"the link {link!r} in it leads out of it" for link in outside), "")
    named = (folder.relative(path / entry.path) for entry in found)
    return tuple(NamedFile(name, "workspace template") for name in named), problem


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


def _first(values: Iterable[Value | None]) -> Value | None:
    return next((value for value in values if value is not None), None)


def _merge(
    suite: _Declared | None, test: _Declared | None, folder: Folder, findings: Findings
) -> Workspace | None:
    """The effective workspace: the fields of the test replace those of the suite."""
    declared = [one for one in (test, suite) if one is not None]
    if not declared:
        return None
    models = [one.model for one in declared]
    own = {name: [one.hooks[name] for one in declared if name in one.hooks] for name in _HOOKS}
    if _first(one.hooks.enabled for one in models if one.hooks) is False:
        own = {name: [] for name in _HOOKS}
    hooks = {name: _merge_hook(name, parts, folder, findings) for name, parts in own.items()}
    per_test = _first(one.per_test for one in models) or False
    resetting = next((one for one in own["after_each"] if one.reset not in (None, "none")), None)
    if per_test and resetting:
        problem = "`reset` has no effect where each test has a fresh folder"
        findings.warn_once(resetting.location, problem, "remove it, or `isolation`")
    files = [
        *(file for one in declared for file in one.files),
        *(file for hook in hooks.values() if hook for file in hook.files),
    ]
    repos = _first(one.repos for one in models) or ()
    return Workspace(
        location=declared[0].location,
        own=test is not None,
        template=_first(one.template for one in models),
        per_test=per_test,
        repos=tuple(Repo(one.path, one.repo, one.commit) for one in repos),
        **hooks,
        reset=_first(hook.reset for hook in own["after_each"]) or "none",
        reset_before=_first(hook.reset for hook in own["before_each"]) or "none",
        files=tuple(dict.fromkeys(files)),
    )


def _merge_hook(
    name: str, declared: Sequence[_Hook], folder: Folder, findings: Findings
) -> Hook | None:
    """A hook of the test's declaration and then the suite's; None where there is only a reset."""
    owner = next((one for one in declared if one.model.command is not None), None)
    if owner is None or owner.model.command is None:
        if declared and not any(one.reset for one in declared):
            problem = f"the hook `{name}` has no `command`"
            findings.error(declared[0].location, problem, "write the command that it runs")
        return None
    cwd = _first(one.model.cwd for one in declared) or owner.home
    milliseconds = _first(one.model.timeout_ms for one in declared)
    return Hook(
        owner.model.command,
        owner.location,
        cwd,
        milliseconds / 1000 if milliseconds else _SECONDS[name],
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
