"""Merges the workspaces of a suite and a test, and collects the files in them, and the skills that
they install."""

import re
import shlex
from collections.abc import Callable, Iterator, Sequence
from pathlib import Path
from typing import Any, TypeVar, get_args

from agentevals_action.model.diagnostic import NamedFile
from agentevals_action.model.judge import is_label_file
from agentevals_action.model.skill import EVALS, EVALS_ROLE, SKILL_FILE, SKILL_ROLE, Skill
from agentevals_action.model.workspace import Hook, HookName, Hooks, Workspace
from agentevals_action.suites.reading import FileReader
from agentevals_action.system.files.paths import Folder
from agentevals_action.system.files.tree_files import files_below
from agentevals_action.system.program import all_words
from agentevals_action.validation.file_model import FileModel

_HOOKS: tuple[HookName, ...] = get_args(HookName)
#: The fields that come with the command of a hook.
_BY_LOADER = {"location", "home", "files"}

AModel = TypeVar("AModel", bound=FileModel)


def effective_workspace(
    of_test: Workspace | None, of_suite: Workspace | None, reader: FileReader
) -> Workspace | None:
    """The workspace of a test, whose fields replace those of the suite, with the files in it; a
    hook without effect is reported."""
    declared = [space for space in (of_test, of_suite) if space]
    if not declared:
        return None
    workspace = _merged(of_test, of_suite) if of_test and of_suite else declared[0]
    named = [file for space in declared for file in _named_files(space, reader)]
    installed = []
    for folder in workspace.skills:
        try:
            installed.append(read_skill(folder, reader, reader.is_known))
        except (OSError, ValueError) as error:
            name = reader.relative(folder)
            reader.error(reader.positions.start, f"the skill {name!r} cannot be used: {error}")
    hooks: dict[str, Hook] = {}
    for name in _HOOKS if workspace.hooks.enabled is not False else ():
        hook: Hook | None = getattr(workspace.hooks, name)
        if hook and hook.command:
            of_hook = tuple(dict.fromkeys(_files_of_hook(hook, reader)))
            hooks[name] = hook.model_copy(update={"files": of_hook})
            named += of_hook
        elif hook and getattr(hook, "reset", None) is None:
            problem = f"the hook `{name}` has no `command`"
            reader.error(hook.location, problem, "write the command that it runs")
    if workspace.per_test and workspace.reset != "none" and workspace.hooks.after_each:
        problem = "`reset` has no effect where each test has a fresh folder"
        location = workspace.hooks.after_each.location
        reader.warn(location, problem, "remove it, or `isolation`")
    return workspace.model_copy(
        update={
            "hooks": workspace.hooks.model_copy(update=hooks),
            "own": of_test is not None,
            "installed": tuple(installed),
            "files": tuple(dict.fromkeys(named)),
        }
    )


def _merged(own: AModel, other: AModel) -> AModel:
    """The `other` model with the fields that `own` sets; hooks are merged field by field."""
    update: dict[str, Any] = {}
    for name in own.model_fields_set - _BY_LOADER:
        value, other_value = getattr(own, name), getattr(other, name)
        both = isinstance(value, Hooks | Hook) and isinstance(other_value, Hooks | Hook)
        if value is not None:
            update[name] = _merged(value, other_value) if both else value
    if isinstance(own, Hook) and own.command:
        update |= {"location": own.location, "home": own.home}
    return other.model_copy(update=update)


def _named_files(workspace: Workspace, folder: Folder) -> Iterator[NamedFile]:
    """The file of a workspace, the files of its template, of committed bare repositories, and the
    folders of submodules."""
    yield from workspace.files
    for path in folder.tree(workspace.template) if workspace.template else ():
        yield NamedFile(folder.relative(path), "workspace template")
    for repository in workspace.repos:
        source = repository.source
        if isinstance(source, str) or source == folder.root:
            continue
        names = [source]
        if (source / "HEAD").is_file() and (source / "objects").is_dir():
            files = files_below(source)
            names = [file for file in files if file.is_file() and not file.is_symlink()]
        for path in names:
            yield NamedFile(folder.relative(path), "workspace repository")


def _files_of_hook(hook: Hook, folder: Folder) -> Iterator[NamedFile]:
    """The files of the repository that the words of a command name."""
    command = hook.command
    words: Sequence[str] = command
    if isinstance(command, str):
        try:
            words = shlex.split(command)
        except ValueError:  # a script in which a quote has another meaning
            words = command.split()
    for path in folder.files_among(all_words(words), hook.cwd):
        yield NamedFile(folder.relative(path), "workspace hook")


#: The front matter of a skill, and its fields that count.
_FRONT_MATTER = re.compile(r"\ufeff?---[ \t]*\n(.*?\n)---", re.DOTALL)
_NAME = re.compile(r"^name:[ \t]*[\"']?([\w][\w .-]*?)[\"']?[ \t]*(?:#.*)?$", re.MULTILINE)
_MANUAL = re.compile(r"^disable-model-invocation:[ \t]*[\"']?true\b", re.MULTILINE)
_READ = 1_000_000
#: What an agent at the root of a repository does not get.
_NOT_INSTALLED = frozenset({".git", ".github", ".agentv", ".agentevals.yaml"})


def read_skill(folder: Path, within: Folder, is_known: Callable[[str], bool]) -> Skill:
    """The skill in a folder (absolute), with the files in it that git knows. ValueError if a link
    leaves the repository."""
    path = "" if folder == within.root else within.relative(folder)
    text = within.read(folder / SKILL_FILE, SKILL_FILE, _READ).decode("utf-8", "replace")
    match = _FRONT_MATTER.match(text.replace("\r\n", "\n"))
    front = match[1] if match else ""
    name = _NAME.search(front)
    return Skill(
        path,
        name[1] if name else folder.name if path else "skill",
        manual=bool(_MANUAL.search(front)),
        files=tuple(_files_of(folder, within, is_known)),
    )


def _files_of(folder: Path, within: Folder, is_known: Callable[[str], bool]) -> Iterator[NamedFile]:
    for file in files_below(folder):
        inside, path = file.relative_to(folder), within.relative(file)
        if inside.parts[0] == EVALS and inside.parts[1:]:
            if not is_label_file(path):
                yield NamedFile(path, EVALS_ROLE)
        elif inside.parts[0] not in _NOT_INSTALLED and is_known(path):
            if not within.resolve(f"/{path}").is_file():
                problem = f"the link {path!r} of the skill leads to no file"
                raise ValueError(f"{problem}; put the file into the skill")
            yield NamedFile(path, SKILL_ROLE)
