"""Reads the folder of a skill."""

import re
from collections.abc import Callable, Iterator
from pathlib import Path

from agentevals_action.model.diagnostic import NamedFile
from agentevals_action.model.judge import is_label_file
from agentevals_action.model.skill import EVALS, EVALS_ROLE, SKILL_FILE, SKILL_ROLE, Skill
from agentevals_action.system.files.paths import Folder
from agentevals_action.system.files.tree_files import files_below

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
    found = _FRONT_MATTER.match(text.replace("\r\n", "\n"))
    front = found[1] if found else ""
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
