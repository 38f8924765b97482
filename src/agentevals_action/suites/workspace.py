"""The workspace of a suite and of its tests: what each says of it, and what comes out of both."""

import os
import shlex
from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, cast

from agentevals_action.model.diagnostic import Location
from agentevals_action.model.suite import Hook, NamedFile, Repo, Reset, Workspace
from agentevals_action.suites import dialects
from agentevals_action.suites.files.diagnostics import Findings, Unreadable, kind
from agentevals_action.suites.files.positions import Items, Map
from agentevals_action.suites.files.yaml_reader import read_yaml_file
from agentevals_action.suites.repo_sources import read_place, read_source, source_files
from agentevals_action.suites.workspace_entries import (
    HookEntry,
    RepoEntry,
    ResettingHookEntry,
    WorkspaceEntry,
)
from agentevals_action.system.paths import Folder
from agentevals_action.system.tree_files import leads_out, walk

_HOOKS = ("before_all", "before_each", "after_each", "after_all")
#: Seconds of a hook that says nothing itself, as in AgentV.
_BEFORE_SECONDS, _AFTER_SECONDS = 60.0, 30.0


@dataclass(frozen=True)
class HookPart:
    """What one place says of a hook; `home` is the folder of the file that says it."""

    location: Location
    home: Path
    command: str | tuple[str, ...] | None = None
    cwd: Path | None = None
    seconds: float | None = None
    reset: Reset | None = None


@dataclass(frozen=True)
class Part:
    """What one place, the suite or a test, says of the workspace; None and missing hooks are what
    it does not speak of."""

    location: Location
    template: Path | None = None
    per_test: bool | None = None
    repos: tuple[Repo, ...] | None = None
    enabled: bool | None = None
    hooks: Mapping[str, HookPart] = field(default_factory=dict)
    files: tuple[NamedFile, ...] = ()


class WorkspaceReader:
    """Reads the workspaces of one suite in `folder`; a template that many tests name is looked
    through once."""

    def __init__(self, folder: Folder) -> None:
        self._folder = folder
        self._templates: dict[Path, tuple[tuple[NamedFile, ...], str]] = {}
        self._suite: Part | None = None
        self._shared: Workspace | None = None

    def read_suite(self, data: Map, findings: Findings) -> tuple[NamedFile, ...]:
        """Reads what the root of the suite says, for all its tests; the files that it names."""
        self._suite = self._read(data, self._folder, findings)
        self._shared = _effective(self._suite, None, self._folder, findings)
        return self._shared.files if self._shared else ()

    def of_test(self, data: Map, folder: Folder, findings: Findings) -> Workspace | None:
        """The workspace of a test, effective; `folder` is that of the file which holds the test."""
        own = self._read(data, folder, findings)
        return _effective(self._suite, own, folder, findings) if own else self._shared

    def _read(self, data: Map, folder: Folder, findings: Findings) -> Part | None:
        if "workspace" not in data:
            return None
        value, place = data["workspace"], data.value_location("workspace")
        files: tuple[NamedFile, ...] = ()
        if isinstance(value, str):
            value, folder, files = _from_file(value, place, folder, findings)
            if value is None:
                return None
        if not isinstance(value, Map):
            findings.error(
                place,
                f"`workspace` is {kind(value)}",
                "write an object, or the path of a YAML file that holds one",
            )
            return None
        folded = _folded(value, findings)
        entry = findings.read(WorkspaceEntry, folded, "workspace")
        if entry is None:
            return None
        template, inside = self._template(entry.template, folded, folder, findings)
        repos, sources = _repos(entry.repos, folded, folder, findings)
        return Part(
            location=value.location,
            template=template,
            per_test=_per_test(entry, folded, findings),
            repos=repos,
            enabled=entry.hooks.enabled if entry.hooks else None,
            hooks=_hooks(entry, folded, folder, findings),
            files=(*files, *inside, *sources),
        )

    def _template(
        self, text: str | None, data: Map, folder: Folder, findings: Findings
    ) -> tuple[Path | None, tuple[NamedFile, ...]]:
        if text is None:
            return None, ()
        place = data.value_location("template")
        try:
            path = folder.resolve(text)
            if not path.is_dir():
                raise ValueError(
                    f"there is no folder {text!r} (looked for {folder.relative(path)})"
                )
            if path not in self._templates:
                self._templates[path] = _looked_through(path, folder)
            files, problem = self._templates[path]
        except (OSError, ValueError) as error:
            findings.error(
                place,
                f"`template`: {error}",
                "name a folder of the repository, from the folder of this file",
            )
            return None, ()
        if problem:
            findings.error(
                place, f"`template`: {problem}", "put what it leads to into the template"
            )
        return path, files


def _effective(
    suite: Part | None, test: Part | None, folder: Folder, findings: Findings
) -> Workspace | None:
    parts = [part for part in (test, suite) if part is not None]
    if not parts:
        return None
    enabled = next((part.enabled for part in parts if part.enabled is not None), True)
    own = {name: [part.hooks[name] for part in parts if name in part.hooks] for name in _HOOKS}
    hooks = {
        name: _hook(name, said, folder, findings) for name, said in own.items() if said and enabled
    }
    resets = {
        name: next((part.reset for part in said if part.reset is not None), "none")
        for name, said in own.items()
    }
    per_test = next((part.per_test for part in parts if part.per_test is not None), False)
    said = next((part for part in own["after_each"] if part.reset not in (None, "none")), None)
    if per_test and enabled and said:
        findings.warn_once(
            said.location,
            "`reset` is for nothing where each test has a fresh folder",
            "remove it, or `isolation`",
        )
    named = [
        *(file for part in parts for file in part.files),
        *(file for hook in hooks.values() if hook for file in hook.files),
    ]
    return Workspace(
        location=parts[0].location,
        own=test is not None,
        template=next((part.template for part in parts if part.template), None),
        per_test=per_test,
        repos=next((part.repos for part in parts if part.repos is not None), ()),
        before_all=hooks.get("before_all"),
        before_each=hooks.get("before_each"),
        after_each=hooks.get("after_each"),
        after_all=hooks.get("after_all"),
        reset=cast(Reset, resets["after_each"] if enabled else "none"),
        reset_before=cast(Reset, resets["before_each"] if enabled else "none"),
        files=tuple(dict.fromkeys(named)),
    )


def _from_file(
    text: str, place: Location, folder: Folder, findings: Findings
) -> tuple[Any, Folder, tuple[NamedFile, ...]]:
    try:
        path = folder.file(text)
        source = folder.relative(path)
        value = read_yaml_file(path, source)
    except Unreadable as error:
        findings.unreadable(error)
        return None, folder, ()
    except (OSError, ValueError) as error:
        findings.error(
            place,
            f"`workspace`: {error}",
            "name a YAML file of the repository, or write the workspace here",
        )
        return None, folder, ()
    if not isinstance(value, Map):
        told = value.location if isinstance(value, Items) else Location(source)
        findings.error(
            told,
            f"this workspace is {kind(value)}",
            "write an object with `template`, `repos` or `hooks`",
        )
        return None, folder, ()
    return value, Folder(folder.root, path.parent), (NamedFile(source, "workspace"),)


def _folded(value: Map, findings: Findings) -> Map:
    folded = dialects.fold(value, dialects.WORKSPACE, findings)
    if isinstance(hooks := folded.get("hooks"), Map):
        inside = dialects.fold(hooks, dialects.HOOKS, findings)
        for name in _HOOKS:
            if isinstance(hook := inside.get(name), Map):
                shape = dialects.RESETTING_HOOK if name.endswith("_each") else dialects.HOOK
                inside.replace(name, dialects.fold(hook, shape, findings))
        folded.replace("hooks", inside)
    if isinstance(repos := folded.get("repos"), list):
        place = repos.location if isinstance(repos, Items) else folded.location
        kept = Items(place.path, (place.line, place.column))
        for index, repo in enumerate(repos):
            at = repos.item_location(index) if isinstance(repos, Items) else place
            kept.put(
                dialects.fold(repo, dialects.REPO, findings) if isinstance(repo, Map) else repo,
                (at.line, at.column),
            )
        folded.replace("repos", kept)
    return folded


def _per_test(entry: WorkspaceEntry, data: Map, findings: Findings) -> bool | None:
    by_isolation = None if entry.isolation is None else entry.isolation != "shared"
    by_scope = None if entry.scope is None else entry.scope == "attempt"
    if by_isolation is not None and by_scope is not None and by_isolation != by_scope:
        findings.error(
            data.key_location("scope"),
            "`isolation` and `scope` are the same field and differ",
            "keep one of them",
        )
    return by_scope if by_isolation is None else by_isolation


def _looked_through(path: Path, folder: Folder) -> tuple[tuple[NamedFile, ...], str]:
    """The files of a template, and what is wrong with one of its links. OSError."""
    found = [entry for entry in walk(path) if not entry.is_folder]
    leaving = next(
        (entry.path for entry in found if entry.is_link and leads_out(path, entry.path)), None
    )
    files = tuple(
        NamedFile(folder.relative(path / entry.path), "workspace template") for entry in found
    )
    return files, f"the link {leaving!r} in it leads out of it" if leaving else ""


def _repos(
    listed: tuple[RepoEntry, ...] | None, data: Map, folder: Folder, findings: Findings
) -> tuple[tuple[Repo, ...] | None, tuple[NamedFile, ...]]:
    if listed is None:
        return None, ()
    repos: list[Repo] = []
    files: list[NamedFile] = []
    for index, entry in enumerate(listed):
        said = cast(Map, data["repos"][index])
        repo = _repo(entry, said, folder, findings)
        if repo is None:
            continue
        if repo.path in (other.path for other in repos):
            findings.error(
                said.value_location("path"),
                f"the path {entry.path!r} is taken already",
                "give each repository its own",
            )
        repos.append(repo)
        files += source_files(repo.source, folder)
    return tuple(repos), tuple(files)


def _repo(entry: RepoEntry, data: Map, folder: Folder, findings: Findings) -> Repo | None:
    before = findings.error_count
    path = ""
    source: str | Path = ""
    try:
        path = read_place(entry.path)
    except ValueError as error:
        findings.error(
            data.value_location("path"),
            f"`path`: {error}",
            "write a folder below the workspace, as `./app`",
        )
    try:
        source = read_source(entry.repo, folder)
    except ValueError as error:
        advice = "write `owner/name`, a URL that begins with https://, or a folder of this repository that begins with ./ or /"
        findings.error(data.value_location("repo"), f"`repo`: {error}", advice)
    if entry.commit and (
        entry.commit.startswith("-") or any(sign in entry.commit for sign in "\0 :")
    ):
        findings.error(
            data.value_location("commit"),
            f"`{data.written('commit')}` is no revision",
            "write a branch, a tag or a commit",
        )
    for name in entry.sparse:
        try:
            read_place(name)
        except ValueError as error:
            findings.error(
                data.value_location("sparse"),
                f"`sparse`: {error}",
                "write folders of the repository, as `packages/core`",
            )
    sparse = tuple(name.strip("/").removeprefix("./") for name in entry.sparse)
    return (
        Repo(path, source, entry.commit, entry.ancestor, sparse)
        if findings.error_count == before
        else None
    )


def _hooks(
    entry: WorkspaceEntry, data: Map, folder: Folder, findings: Findings
) -> Mapping[str, HookPart]:
    said = (
        {name: cast(HookEntry | None, getattr(entry.hooks, name)) for name in _HOOKS}
        if entry.hooks
        else {}
    )
    return {
        name: _part(hook, data["hooks"][name], folder, findings)
        for name, hook in said.items()
        if hook is not None
    }


def _part(hook: HookEntry, data: Map, folder: Folder, findings: Findings) -> HookPart:
    cwd = None
    if hook.cwd is not None:
        try:
            cwd = folder.resolve(hook.cwd)
        except ValueError as error:
            findings.error(
                data.value_location("cwd"), f"`cwd`: {error}", "name a folder of the repository"
            )
    reset = hook.reset if isinstance(hook, ResettingHookEntry) else None
    seconds = hook.timeout_ms / 1000 if hook.timeout_ms is not None else None
    return HookPart(data.location, folder.path, hook.command, cwd, seconds, reset)


def _hook(name: str, said: list[HookPart], folder: Folder, findings: Findings) -> Hook | None:
    """A hook, of what the test says of it and then the suite; None where only a reset is asked
    for."""
    declared = next((part for part in said if part.command is not None), None)
    if declared is None or declared.command is None:
        if not any(part.reset for part in said):
            findings.error(
                said[0].location,
                f"the hook `{name}` has no `command`",
                "write the command that it runs",
            )
        return None
    cwd = next((part.cwd for part in said if part.cwd is not None), declared.home)
    seconds = next((part.seconds for part in said if part.seconds is not None), None)
    limit = seconds or (_BEFORE_SECONDS if name.startswith("before") else _AFTER_SECONDS)
    return Hook(
        declared.command,
        declared.location,
        cwd,
        limit,
        tuple(_named(declared.command, cwd, folder)),
    )


def _named(command: str | tuple[str, ...], cwd: Path, folder: Folder) -> Iterable[NamedFile]:
    """The files of the repository that the words of a command name."""
    try:
        words = shlex.split(command) if isinstance(command, str) else command
    except ValueError:  # a script in which a quote means something else
        words = command.split() if isinstance(command, str) else command
    for word in words:
        try:
            path = Path(os.path.normpath(cwd / word))
            if (
                path.is_relative_to(folder.root)
                and path.is_file()
                and path.resolve().is_relative_to(folder.root)
            ):
                yield NamedFile(folder.relative(path), "workspace hook")
        except (OSError, RuntimeError, ValueError):
            continue  # no word that could be a path
