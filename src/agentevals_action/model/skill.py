"""Skills that are installed for an agent, and the fixtures of their tests."""

from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from pathlib import Path, PurePosixPath

from agentevals_action.model.diagnostic import NamedFile

#: The file that makes a folder a skill, the folder in it with its tests, and the file with the
#: tests; the roles of files of skills.
SKILL_FILE, EVALS, TESTS = "SKILL.md", "evals", "evals.json"
SKILL_ROLE, EVALS_ROLE, FIXTURE_ROLE = "skill", "evals of the skill", "fixture"


def find_skill_files(paths: Iterable[str], known: Iterable[str]) -> Mapping[str, str]:
    """The paths in skills below the root, each with the folder of its skill; `known` are all paths
    of the trees. The files of a skill at the root may be any agent's."""
    skills = {str(PurePosixPath(path).parent) for path in known if path.endswith(f"/{SKILL_FILE}")}
    folders = {}
    for path in paths if skills else ():
        parents = map(str, PurePosixPath(path).parents)
        if folder := next((parent for parent in parents if parent in skills), ""):
            folders[path] = folder
    return folders


def name_suite(path: str) -> str:
    """The name of the suite at a path for people: for tests of a skill, the folder of the skill."""
    return path.removesuffix(f"/{EVALS}/{TESTS}")


@dataclass(frozen=True)
class Skill:
    """A folder with `SKILL.md`, relative to the repository (empty for its root). It is a part of
    the agent and not of the question.

    `name` is the name in its front matter. `files` are the files that are installed, and the files
    below `evals/`, which are not. A `manual` skill is invoked by the user alone."""

    folder: str
    name: str
    manual: bool = False
    files: tuple[NamedFile, ...] = ()

    @property
    def installed(self) -> tuple[tuple[str, str], ...]:
        """The paths of the files that are installed, from the repository and in the skill."""
        paths = (file.path for file in self.files if file.role == SKILL_ROLE)
        start = f"{self.folder}/" if self.folder else ""
        return tuple((path, path.removeprefix(start)) for path in paths)


@dataclass(frozen=True)
class Fixture:
    """A file that a test needs, as the test calls it.

    `source` is its path from the repository, None if none of the `candidates` exists; `targets` are
    the paths at which the agent finds it in its folder."""

    name: str
    source: str | None
    targets: tuple[str, ...] = ()
    candidates: tuple[str, ...] = ()

    def exists_in(self, root: Path) -> bool:
        """Whether another tree has the file."""
        return any((root / path).exists() for path in self.candidates)
