"""Reads the workspaces of a suite and its tests, merges them, and collects the files in them."""

import shlex
from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import Any, TypeVar, get_args

from agentevals_action.model.files import NamedFile
from agentevals_action.model.validation.field_errors import describe_value
from agentevals_action.model.validation.file_model import FileModel
from agentevals_action.model.workspace import Hook, HookName, Hooks, Workspace
from agentevals_action.suites.diagnostics import Unreadable
from agentevals_action.suites.reading import FileReader
from agentevals_action.suites.yaml_reader import read_yaml_object
from agentevals_action.system.files.paths import Folder
from agentevals_action.system.files.tree_files import files_below, leads_out
from agentevals_action.system.program import all_words

_HOOKS: tuple[HookName, ...] = get_args(HookName)
#: The fields that come with the command of a hook.
_BY_LOADER = {"location", "home", "files"}
_OBJECT = "write an object with `template`, `repos` or `hooks`"
_OBJECT_OR_PATH = "write an object, or the path of a YAML file that contains one"

AModel = TypeVar("AModel", bound=FileModel)


class WorkspaceReader:
    """Reads the workspaces of one suite; a template that many tests name is searched once."""

    def __init__(self) -> None:
        self._templates: dict[Path, tuple[tuple[NamedFile, ...], str]] = {}
        self._suite: Workspace | None = None
        self._shared: Workspace | None = None

    def read_suite(self, data: dict[str, Any], reader: FileReader) -> tuple[NamedFile, ...]:
        """Reads the workspace of the suite, for all its tests; the files that it names."""
        self._suite = self._read(data, reader)
        self._shared = self._suite and _complete(self._suite, reader)
        return self._shared.files if self._shared else ()

    def of_test(self, data: dict[str, Any], reader: FileReader) -> Workspace | None:
        """The effective workspace of a test: its fields replace those of the suite."""
        own = self._read(data, reader)
        if own is None:
            return self._shared
        merged = own if self._suite is None else _merged(own, self._suite)
        files = (*own.files, *(self._suite.files if self._suite else ()))
        return _complete(merged.model_copy(update={"own": True, "files": files}), reader)

    def _read(self, owner: dict[str, Any], reader: FileReader) -> Workspace | None:
        if "workspace" not in owner:
            return None
        data, files = owner["workspace"], list[NamedFile]()
        location = reader.positions.value(owner, "workspace")
        if isinstance(data, str) and data:
            try:
                path = reader.file(data)
                document = read_yaml_object(path, reader.relative(path), "workspace", _OBJECT)
            except Unreadable as error:
                reader.diagnostics.unreadable(error)
                return None
            except ValueError as error:
                advice = "name a YAML file of the repository, or write the workspace here"
                reader.error(location, f"`workspace`: {error}", advice)
                return None
            files.append(NamedFile(reader.relative(path), "workspace"))
            data, reader = document.data, reader.of(document, path.parent)
        elif not isinstance(data, dict):
            problem = f"`workspace` is {describe_value(data)}"
            reader.error(location, problem, _OBJECT_OR_PATH)
            return None
        workspace = reader.validate(Workspace, data)
        if workspace is None:
            return None
        if workspace.template:
            files += self._template_files(workspace.template, data, reader)
        files += _repository_files(workspace, reader)
        return workspace.model_copy(update={"files": tuple(files)})

    def _template_files(
        self, path: Path, data: dict[str, Any], reader: FileReader
    ) -> tuple[NamedFile, ...]:
        location = reader.positions.value(data, "template")
        try:
            if path not in self._templates:
                self._templates[path] = _search(path, reader)
        except OSError as error:
            reader.error(location, f"`template`: {error}", "make it readable")
            return ()
        files, problem = self._templates[path]
        if problem:
            advice = "put the target of the link into the template"
            reader.error(location, f"`template`: {problem}", advice)
        return files


def _search(path: Path, folder: Folder) -> tuple[tuple[NamedFile, ...], str]:
    """The files of a template, and the problem of one of its links. OSError."""
    found = tuple(files_below(path))
    outside = (file for file in found if file.is_symlink() and leads_out(path, file))
    names = (link.relative_to(path).as_posix() for link in outside)
    problem = next((f"the link {name!r} in it leads out of it" for name in names), "")
    return tuple(NamedFile(folder.relative(file), "workspace template") for file in found), problem


def _repository_files(workspace: Workspace, folder: Folder) -> Iterator[NamedFile]:
    """The files of committed bare repositories, and the folders of submodules."""
    for repository in workspace.repos:
        source = repository.source
        if isinstance(source, str) or source == folder.root:
            continue
        names = [source]
        if (source / "HEAD").is_file() and (source / "objects").is_dir():
            found = files_below(source)
            names = [file for file in found if file.is_file() and not file.is_symlink()]
        for name in names:
            yield NamedFile(folder.relative(name), "workspace repository")


def _merged(own: AModel, other: AModel) -> AModel:
    """The fields that a model sets, over those of another; hooks field by field."""
    update: dict[str, Any] = {}
    for name in own.model_fields_set - _BY_LOADER:
        value, known = getattr(own, name), getattr(other, name)
        both = isinstance(value, Hooks | Hook) and isinstance(known, Hooks | Hook)
        if value is not None:
            update[name] = _merged(value, known) if both else value
    if isinstance(own, Hook) and own.command:
        update |= {"location": own.location, "home": own.home}
    return other.model_copy(update=update)


def _complete(workspace: Workspace, reader: FileReader) -> Workspace:
    """The effective workspace with the files of its hooks; a hook without effect is reported."""
    update: dict[str, Any] = {}
    for name in _HOOKS:
        declared: Hook | None = getattr(workspace.hooks, name)
        if declared is None or workspace.hooks.enabled is False:
            continue
        if declared.command:
            files = tuple(dict.fromkeys(_named_files(declared.command, declared.cwd, reader)))
            update[name] = declared.model_copy(update={"files": files})
        elif getattr(declared, "reset", None) is None:
            problem = f"the hook `{name}` has no `command`"
            reader.error(declared.location, problem, "write the command that it runs")
    if workspace.per_test and workspace.reset != "none" and workspace.hooks.after_each:
        problem = "`reset` has no effect where each test has a fresh folder"
        location = workspace.hooks.after_each.location
        reader.warn(location, problem, "remove it, or `isolation`")
    hooks = workspace.hooks.model_copy(update=update)
    of_hooks = (file for hook in update.values() for file in hook.files)
    files = tuple(dict.fromkeys((*workspace.files, *of_hooks)))
    return workspace.model_copy(update={"hooks": hooks, "files": files})


def _named_files(command: str | tuple[str, ...], cwd: Path, folder: Folder) -> Iterator[NamedFile]:
    """The files of the repository that the words of a command name."""
    words: Sequence[str] = command
    if isinstance(command, str):
        try:
            words = shlex.split(command)
        except ValueError:  # a script in which a quote has another meaning
            words = command.split()
    for path in folder.files_among(all_words(words), cwd):
        yield NamedFile(folder.relative(path), "workspace hook")
