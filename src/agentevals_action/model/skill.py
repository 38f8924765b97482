"""Skills that are installed for an agent, and the fixtures of their tests."""

from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from pathlib import Path, PurePosixPath

from agentevals_action.model.diagnostic import NamedFile

#: The file that makes a folder a skill, the folder in it with its tests, the file with these, and
#: the roles of the folders' files.
SKILL_FILE, EVALS, TESTS = "SKILL.md", "evals", "evals.json"
SKILL_ROLE, EVALS_ROLE, FIXTURE_ROLE = "skill", "evals of the skill", "fixture"


def find_skill_files(paths: Iterable[str], known: Iterable[str]) -> Mapping[str, str]:
    """The paths that lie in a skill below the root, each with the folder of the skill; `known` are
    all paths of the trees. What a skill at the root has may be any agent's."""
    skills = {str(PurePosixPath(path).parent) for path in known if path.endswith(f"/{SKILL_FILE}")}
    found = {}
    for path in paths if skills else ():
        folder = next((each for each in PurePosixPath(path).parents if str(each) in skills), None)
        if folder:
            found[path] = str(folder)
    return found


def name_suite(path: str) -> str:
    """How people see the suite at a path: the tests of a skill by the folder of the skill."""
    return path.removesuffix(f"/{EVALS}/{TESTS}")


@dataclass(frozen=True)
class Skill:
    """A folder with `SKILL.md`, relative to the repository (empty for its root). It is a part of
    the agent and not of the question.

    `name` is that of its front matter. `files` are those that are installed, and those below
    `evals/`, which are not. A `manual` one is invoked by the user alone."""

    folder: str
    name: str
    manual: bool = False
    files: tuple[NamedFile, ...] = ()

    @property
    def installed(self) -> tuple[tuple[str, str], ...]:
        """The paths of the files that are installed, from the repository and in the skill."""
        own = (file.path for file in self.files if file.role == SKILL_ROLE)
        start = f"{self.folder}/" if self.folder else ""
        return tuple((path, path.removeprefix(start)) for path in own)


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
        """Whether another tree has it."""
        return any((root / path).exists() for path in self.candidates)
