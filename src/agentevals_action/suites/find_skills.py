"""Skills in a repository: their folders, and the files with their tests.

A skill's folder is the agent, its `evals/` is the question."""

import json
from collections.abc import Callable, Collection, Mapping, Sequence
from dataclasses import dataclass, field
from itertools import pairwise
from pathlib import Path, PurePosixPath
from typing import Any

from pydantic import Field

from agentevals_action.model.diagnostic import Diagnostic, Location
from agentevals_action.model.path_patterns import Glob
from agentevals_action.model.skill import EVALS, SKILL_FILE, TESTS
from agentevals_action.model.suite import make_name
from agentevals_action.model.variant import Variants
from agentevals_action.suites.find import is_chosen, is_searched
from agentevals_action.suites.skill_evals import find_skill_name, has_skill_tests
from agentevals_action.system.files.paths import Folder
from agentevals_action.system.files.regular_files import is_present, read_regular
from agentevals_action.validation.file_model import FileModel, ListOf, NonEmpty

#: Other tests of skills by their names, and folders with copies that skill-creator writes.
TRIGGERS = ("trigger*.json", "eval_queries.json")
_COPIES = ("*-workspace", "iteration-*", "outputs", "fixtures", "archive")
_PATTERNS = (
    *(f"**/{EVALS}/{name}" for name in (TESTS, *TRIGGERS)),
    *(f"!**/{folder}/**" for folder in _COPIES),
)
_MAX_BYTES = 10_000_000
#: Why tests do not run, each with the advice. There is one warning for each file: if base runs it,
#: the warning is an error.
_OFF = "`skills: {suites: []}` in `.agentevals.yaml` leaves them out"
_NO_AGENT = "no agent answers these tests of a skill: they are not run"
_ADD_AGENT = (
    "run `agentevals-action init`, or declare a target `default` in `.agentv/targets.yaml` whose "
    f"provider is a coding agent or `cli`; {_OFF}"
)
_NO_SKILL = f"no {SKILL_FILE} belongs to these tests: they are not run"
_MOVE_TESTS = f"put them into `{EVALS}/` of the skill, or correct `skill_name`; {_OFF}"
#: The hidden folders in which agents find skills.
_AGENTS = frozenset({".agents", ".claude", ".codex", ".cursor", ".gemini", ".github"})


class SkillSettings(FileModel):
    """Which skills are tested, and by which target."""

    noun = "`skills`"

    suites: ListOf[Glob] | None = Field(
        default=None,
        description="Globs of the files with their tests; `!glob` excludes, `[]` finds none. By "
        "default `**/evals/evals.json` and the lists of triggers beside it.",
    )
    target: NonEmpty | None = Field(
        default=None, description="The target that answers the tests; `default` otherwise."
    )
    variants: Variants = Field(
        default=(), description="Other arms of the tests of all skills, as `variants` of a suite."
    )


@dataclass(frozen=True)
class SkillSuites:
    """The suites of skills in a checkout: `folders` of skills by the path of the tests, `settings`
    for all, `paths` of the tests that run, `warnings` about tests that do not run."""

    folders: Mapping[str, str] = field(default_factory=dict)
    settings: SkillSettings = field(default_factory=SkillSettings)
    paths: tuple[str, ...] = ()
    warnings: tuple[Diagnostic, ...] = ()

    def suite_data(self, path: str) -> dict[str, Any]:
        """The suite of the tests at a path, as it would stand in an EVAL.yaml beside them."""
        folder, file = self.folders[path], PurePosixPath(path)
        kind = "" if file.name == TESTS else "-triggers"
        data = {
            "name": make_name(PurePosixPath(folder).name or "skill", kind),
            "workspace": {"skills": [f"/{folder}"]},
            "tests": file.name,
            "variants": [*self.settings.variants],
        }
        target = self.settings.target
        return data | ({"execution": {"target": target}} if target else {})


def find_skill_suites(
    root: Path,
    below: Path,
    files: Sequence[str],
    missing: Collection[str],
    settings: SkillSettings | None,
    answers: Callable[[Folder], bool],
) -> SkillSuites:
    """The suites of the skills below a folder; `files` and `missing` are those of the checkout.
    Without settings, a suite runs if a target that works with skills `answers` its tests."""
    patterns = (settings or SkillSettings()).suites
    if patterns == ():
        return SkillSuites()
    chosen = list(patterns or ())
    if all(pattern.startswith("!") for pattern in chosen):
        chosen = [*_PATTERNS, *chosen]
    named = [path for path in files if path.endswith((".json", SKILL_FILE)) and _is_searched(path)]
    searched = [path for path in named if path in missing or is_present(root / path)]
    skills = {_parent(path) for path in searched if PurePosixPath(path).name == SKILL_FILE}
    start = "" if below == root else f"{below.relative_to(root).as_posix()}/"
    folders, alone = dict[str, str](), list[str]()
    for path in sorted(searched):
        is_inside = path.startswith(start) and path.endswith(".json")
        if not is_inside or not is_chosen(path, path.removeprefix(start), chosen):
            continue
        folder = _folder_of(root / path, path, skills)
        if folder is not None:
            folders[path] = folder
        elif (data := _read(root / path)) is None or has_skill_tests(data):
            alone.append(path)
    if settings:
        return SkillSuites(folders, settings, tuple(folders), _without_skill(alone))
    off = [path for path in folders if not answers(Folder(root, (root / path).parent))]
    paths = tuple(path for path in folders if path not in off)
    without_agent = (Diagnostic(Location(path), _NO_AGENT, _ADD_AGENT) for path in off)
    return SkillSuites(folders, SkillSettings(), paths, (*without_agent, *_without_skill(alone)))


def _without_skill(paths: Sequence[str]) -> tuple[Diagnostic, ...]:
    return tuple(Diagnostic(Location(path), _NO_SKILL, _MOVE_TESTS) for path in paths)


def _is_searched(path: str) -> bool:
    """Whether skills are searched at a path: in hidden folders only where agents find them."""
    parts = PurePosixPath(path).parts
    allowed = {first for first, second in pairwise(parts) if second == "skills"} & _AGENTS
    return is_searched("/".join(part for part in parts if part not in allowed))


def _folder_of(file: Path, path: str, skills: Collection[str]) -> str | None:
    """The folder of the skill that a file tests: the folder above, else the only skill of the name
    that the file states, or that the tests beside it state."""
    above = _parent(_parent(path))
    if above in skills and PurePosixPath(path).parent.name:
        return above
    name = find_skill_name(_read(file)) or find_skill_name(_read(file.with_name(TESTS)))
    named = [folder for folder in skills if name and PurePosixPath(folder).name == name]
    return named[0] if len(named) == 1 else None


def _read(file: Path) -> Any:
    try:
        return json.loads(read_regular(file, _MAX_BYTES))
    except (OSError, ValueError, RecursionError):
        return None


def _parent(path: str) -> str:
    parent = PurePosixPath(path).parent.as_posix()
    return "" if parent == "." else parent
