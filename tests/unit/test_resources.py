"""Templates, examples and schemas are found from a checkout and from an installed package."""

import shutil
import subprocess
import sys
from pathlib import Path

import pytest

from agentevals_action import resources

ROOT = Path(__file__).resolve().parents[2]


@pytest.mark.parametrize("name", ["templates", "examples", "schemas"])
def test_folder__of_a_checkout_is_at_its_top(name: str) -> None:
    assert resources.folder(name) == ROOT / name
    assert any(resources.folder(name).iterdir())


def test_folder__of_an_installed_package_is_inside_it(tmp_path: Path) -> None:
    package = tmp_path / "site" / "agentevals_action"
    (package / "_data" / "templates").mkdir(parents=True)
    for name in ("__init__.py", "resources.py"):
        shutil.copy(ROOT / "src" / "agentevals_action" / name, package / name)
    # What lies above an installed package belongs to others.
    (tmp_path / "templates").mkdir()
    code = "import sys; sys.path.insert(0, sys.argv[1]); from agentevals_action import resources; print(resources.folder('templates'))"
    child = subprocess.run(
        [sys.executable, "-I", "-c", code, str(package.parent)],
        capture_output=True,
        text=True,
        check=True,
    )
    assert child.stdout.strip() == str(package / "_data" / "templates")
