"""The trees that judges run from, in which no program of a change can write."""

import asyncio
import os
from collections.abc import Mapping
from pathlib import Path

from agentevals_action.errors import AttemptError
from agentevals_action.formatting import list_paths
from agentevals_action.model.evaluator import Evaluator
from agentevals_action.model.suite import Suite, Test
from agentevals_action.system.files.tree_files import copy_tree
from agentevals_action.system.signals import in_thread

_NEVER_LINKED = (".git", "__pycache__")
#: Suffixes of files that a program imports by their names; the first file that exists counts.
_MODULES = (".py", ".pyc", ".so", ".js", ".cjs", ".mjs", ".ts", ".cts", ".mts", ".jsx", ".tsx")


class JudgeTrees:
    """For each tree, the judge tree: a worktree of the same commit (both absolute), in which code
    judges and targets that judge start, and from which templates of workspaces are copied. Without
    isolation there are no judge trees, and judges run in the tree itself.

    Attack: an agent rewrites the script, a module that it imports, or data that it reads."""

    def __init__(self, trees: Mapping[Path, Path] | None = None) -> None:
        self._trees = trees or {}
        self._linked: set[Path] = set()
        self._links: set[Path] = set()
        self._modules: set[str] = set()
        self._lock = asyncio.Lock()

    def find_path(self, path: Path) -> Path:
        """The path of a file or folder in its judge tree; the path itself without a judge tree."""
        for root, tree in self._trees.items():
            if path.is_relative_to(root):
                return tree / path.relative_to(root)
        return path

    async def link_rest(self, root: Path) -> None:
        """Links what the prepared tree `root` has and its commit has not (`node_modules`, a build,
        submodules) into its judge tree, once: what agents make later is not linked. Files of
        variables (`.env`) are never linked. Raises AttemptError of kind `prepare`."""
        async with self._lock:
            if root not in self._trees or root in self._linked:
                return
            self._linked.add(root)
            try:
                await in_thread(self._link_rest, root)
            except OSError as error:
                problem = f"the tree of the judges cannot be made: {error}"
                raise AttemptError("prepare", problem) from error

    def notices(self) -> tuple[str, ...]:
        """A sentence about linked modules beside tracked files, if such modules exist.

        Attack: `prepare` of head puts `judges/json.py` beside a judge, which imports it."""
        if not self._modules:
            return ()
        modules = list_paths(sorted(self._modules))
        return (
            f"Judges can import modules that git does not track and agents can change: {modules}; "
            "commit what a judge needs, and see what makes the others.",
        )

    def _link_rest(self, root: Path) -> None:
        for folder, folders, files in os.walk(root):
            judge_folder = self.find_path(Path(folder))
            for name in (*folders, *files):
                if name not in _NEVER_LINKED and not name.startswith(".env"):
                    path = Path(folder, name)
                    if not os.path.lexists(judge_folder / name) and _is_module(path):
                        self._modules.add(path.relative_to(root).as_posix())
                    self._link(judge_folder / name, path)
            folders[:] = [name for name in folders if _is_folder(judge_folder / name)]

    def _link(self, link: Path, target: Path) -> None:
        if _is_folder(link) and not any(link.iterdir()):
            link.rmdir()  # a submodule: a commit has no empty folder
        if not os.path.lexists(link):
            link.symlink_to(target)
            self._links.add(link)

    def copy_template(self, template: Path, target: Path) -> None:
        """Copies the template of a workspace as `copy_tree` does, with what is linked in it."""
        links = frozenset(self._links)  # the other side may add links meanwhile
        copy_tree(self.find_path(template), target, followed=links)


def needs_judge_tree(suite: Suite) -> bool:
    """Whether a suite has a program that judges, or a template of a workspace."""
    return any(
        (test.workspace is not None and test.workspace.template is not None)
        or any(
            _runs_program(suite, test, inner) for outer in test.evaluators for inner in outer.walk()
        )
        for test in suite.tests
    )


def _runs_program(suite: Suite, test: Test, evaluator: Evaluator) -> bool:
    if evaluator.runs_programs:
        return True
    return any(
        judge.runs_programs for judge in suite.find_judges(evaluator, suite.find_agent(test))
    )


def _is_module(path: Path) -> bool:
    return path.suffix in _MODULES if path.is_file() else (path / "__init__.py").is_file()


def _is_folder(path: Path) -> bool:
    return path.is_dir() and not path.is_symlink()
