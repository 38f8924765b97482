"""The packages that manifests declare, and what a program searches first."""

from pathlib import Path
from typing import Any

import pytest
import yaml

from agentevals_action.system.files.packages import find_packages, own_packages
from tests.support import suites

NAMED = '[project]\nname = "my-shop"\n'
DATA = yaml.safe_load(
    (Path(__file__).resolve().parents[3] / "data/packages.yaml").read_text("utf-8")
)


@pytest.mark.parametrize("layout", DATA["layouts"], ids=lambda layout: layout["case"])
@pytest.mark.parametrize("project", [".", "services/shop"])
def test_find_packages(tmp_path: Path, layout: dict[str, Any], project: str) -> None:
    written = dict.fromkeys(layout["files"].split(), "") | {"pyproject.toml": layout["manifest"]}
    suites.write(tmp_path / project, written)
    found = find_packages(tmp_path, [f"{project}/{name}" for name in written], ())
    assert {each.path: sorted(each.modules) for each in found} == {
        Path(project) / path: modules for path, modules in layout["folders"].items()
    }


@pytest.mark.parametrize(
    ("name", "text"),
    [
        ("setup.py", "setup(package_dir={'': 'lib'}, packages=find_packages('lib'))"),
        ("setup.py", 'setup(packages=find_packages(where="lib"))'),
        ("setup.cfg", "[options]\npackage_dir =\n    = lib\n"),
        ("setup.cfg", "[options.packages.find]\nwhere = lib\n"),
    ],
)
def test_find_packages__of_setuptools_without_a_table(tmp_path: Path, name: str, text: str) -> None:
    suites.write(tmp_path, {"setup.py": "", name: text, "lib/shop/__init__.py": "", "x.py": ""})
    (found,) = find_packages(tmp_path, ["setup.py"], ())
    assert (found.path, *found.modules) == (Path("lib"), "shop")


def test_find_packages__not_those_of_templates(tmp_path: Path) -> None:
    suites.write(tmp_path, {"task/pyproject.toml": NAMED, "task/src/shop/__init__.py": ""})
    assert find_packages(tmp_path, ["task/pyproject.toml"], [tmp_path / "task"]) == ()


@pytest.mark.parametrize("case", DATA["programs"], ids=lambda case: case["case"])
def test_own_packages(tmp_path: Path, case: dict[str, Any]) -> None:
    tree = tmp_path / "tree"
    declared = {
        "pyproject.toml": f'{NAMED}[tool.setuptools.packages.find]\nwhere = [".", "src"]\n',
        "src/shop/__init__.py": "",
        "agents/__init__.py": "",
        "tests/__init__.py": "",
    }
    suites.write(tree, declared)
    suites.write(tmp_path, {"env/pyvenv.cfg": "", **case["files"]})
    found = find_packages(tree, ["pyproject.toml"], ())
    words = [
        str(tmp_path / word.strip("'")) if "/" in word else word for word in case["command"].split()
    ]
    searched, own = own_packages(found, tree, tree / "evals", words, "/nowhere")
    assert searched == [tree / folder for folder in case["folders"]]
    assert own == case["modules"]


def test_own_packages__the_nearest_distribution_comes_first(tmp_path: Path) -> None:
    """Elsewhere nobody knows which of the services is meant, which have modules of one name."""
    manifests = [f"{name}/pyproject.toml" for name in ("a", "b", "common")]
    files = {"a/app/__init__.py": "", "b/app/__init__.py": "", "common/src/lib.py": ""}
    suites.write(tmp_path, {**dict.fromkeys(manifests, NAMED), **files})
    found = find_packages(tmp_path, manifests, ())

    def searched(start: str) -> list[str]:
        folders, _ = own_packages(found, tmp_path, tmp_path / start, (), "/nowhere")
        return [folder.relative_to(tmp_path).as_posix() for folder in folders]

    assert searched("b/evals") == ["b", "common/src"]
    assert searched("evals") == ["common/src"]
