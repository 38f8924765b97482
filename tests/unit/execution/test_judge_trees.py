"""The trees that judges run from: what `prepare` makes is linked, and modules among it are named."""

import asyncio
from pathlib import Path

import pytest

from agentevals_action.execution.judge_trees import JudgeTrees
from tests.support import suites
from tests.support.repositories import Repository

#: What `prepare` makes beside tracked files; of these, what a judge may import by its name.
MADE = {
    ".env": False,
    ".venv/lib/yaml.py": False,
    "build/agent.js": False,
    "data.json": False,
    "judges/__pycache__/check.pyc": False,
    "judges/json.py": True,
    "judges/lodash/index.js": False,
    "judges/node_modules/lodash/index.js": False,
    "judges/yaml/__init__.py": True,
    "src/agent/_version.py": True,
    "src/helper.js": True,
}


def linked(folder: Path, made: list[str]) -> tuple[JudgeTrees, Path]:
    """The judge tree of a repository in which `prepare` made these files."""
    files = {"judges/check.py": "", "src/helper.json": "", "src/agent/__init__.py": ""}
    repository = Repository.create(folder / "checkout", files)
    tree = folder / "judges"
    repository.git("worktree", "add", "--detach", str(tree))
    suites.write(repository.path, dict.fromkeys(made, "made"))
    trees = JudgeTrees({repository.path: tree})
    asyncio.run(trees.link_rest(repository.path))
    return trees, tree


@pytest.mark.parametrize(("path", "is_named"), MADE.items())
def test_notices__name_a_module_beside_tracked_files(
    tmp_path: Path, path: str, is_named: bool
) -> None:
    trees, tree = linked(tmp_path, [path])
    assert (tree / path).is_file() is not any(name in path for name in (".env", "__pycache__"))
    (name,) = [path.removesuffix("/__init__.py")] if is_named else [""]
    assert [f"can change: `{name}`;" in notice for notice in trees.notices()] == [True] * is_named


def test_notices__are_one_sentence_for_both_sides_and_all_modules(tmp_path: Path) -> None:
    trees, _ = linked(tmp_path, list(MADE))
    (notice,) = trees.notices()
    assert "`judges/json.py`, `judges/yaml`, `src/agent/_version.py` and `src/helper.js`;" in notice
    assert JudgeTrees({}).notices() == ()
