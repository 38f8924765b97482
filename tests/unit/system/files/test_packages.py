"""The packages that manifests declare, and what a program searches first."""

from pathlib import Path

import pytest

from agentevals_action.system.files.packages import find_packages, own_packages
from tests.support import suites

NAMED = '[project]\nname = "my-shop"\n'
#: A manifest, the files of its project, and the folders with the modules that it declares.
LAYOUTS: dict[str, tuple[str, str, dict[str, set[str]]]] = {
    "src": (
        NAMED,
        "src/shop/__init__.py src/shop/agent.py shop_tests/__init__.py",
        {"src": {"shop"}},
    ),
    "src, modules and namespaces": (
        NAMED,
        "src/one.py src/acme/shop/__init__.py src/acme/tool.py src/data/x.txt",
        {"src": {"one", "acme.shop", "acme.tool"}},
    ),
    "flat": (
        NAMED,
        "shop/__init__.py tests/__init__.py setup.py conftest.py app.py",
        {".": {"shop"}},
    ),
    "flat, one module": (NAMED, "agent.py setup.py noxfile.py", {".": {"agent"}}),
    "src of another language": (NAMED, "src/index.ts shop/__init__.py", {".": {"shop"}}),
    "setuptools, package-dir": (
        f'{NAMED}[tool.setuptools]\npackage-dir = {{"" = "lib"}}\n',
        "lib/shop/__init__.py src/other.py",
        {"lib": {"shop"}},
    ),
    "setuptools, where": (
        f'{NAMED}[tool.setuptools.packages.find]\nwhere = ["one", "two"]\n',
        "one/a/__init__.py two/b/__init__.py",
        {"one": {"a"}, "two": {"b"}},
    ),
    "hatch": (
        f'{NAMED}[tool.hatch.build.targets.wheel]\npackages = ["python/shop"]\n',
        "python/shop/__init__.py",
        {"python": {"shop"}},
    ),
    "poetry": (
        '[tool.poetry]\nname = "shop"\npackages = [{include = "shop", from = "lib"}]\n',
        "lib/shop/__init__.py",
        {"lib": {"shop"}},
    ),
    "uv, flat": (
        f'{NAMED}[tool.uv.build-backend]\nmodule-root = ""\n',
        "shop/__init__.py src/x.py",
        {".": {"shop"}},
    ),
    "maturin": (
        f'{NAMED}[tool.maturin]\npython-source = "python"\n',
        "python/shop/__init__.py src/lib.rs",
        {"python": {"shop"}},
    ),
    "only setup.py": ("", "setup.py src/shop/__init__.py", {"src": {"shop"}}),
    "not TOML": ("<<<<<<< HEAD\n", "src/shop/__init__.py", {"src": {"shop"}}),
    "fields of other types": ("tool = 1\n", "src/shop/__init__.py", {"src": {"shop"}}),
    "a folder outside": (
        f'{NAMED}[tool.setuptools.packages.find]\nwhere = ["../../.."]\n',
        "shop/__init__.py",
        {".": {"shop"}},
    ),
    "no distribution": ("[tool.ruff]\n", "src/shop/__init__.py", {}),
    "no package": (NAMED, "README.md", {}),
}


@pytest.mark.parametrize("layout", LAYOUTS)
@pytest.mark.parametrize("project", [".", "services/shop"])
def test_find_packages(tmp_path: Path, layout: str, project: str) -> None:
    manifest, files, expected = LAYOUTS[layout]
    written = dict.fromkeys(files.split(), "") | {"pyproject.toml": manifest}
    suites.write(tmp_path / project, written)
    found = find_packages(tmp_path, [f"{project}/{name}" for name in written], ())
    assert {each.path: set(each.modules) for each in found} == {
        Path(project) / path: modules for path, modules in expected.items()
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


SITE = "lib/python3.12/site-packages"
RECORD = f"{SITE}/my_shop-1.0.dist-info/RECORD"
#: Files of an environment, the words of a command, and what is searched first for it.
PROGRAMS: dict[str, tuple[dict[str, str], str, list[str], list[str]]] = {
    "nothing installed": ({}, "env/bin/python -m shop", [".", "src"], ["agents", "shop"]),
    "its own copy": (
        {f"env/{RECORD}": "shop/__init__.py,,\n", f"env/{SITE}/shop/__init__.py": ""},
        "env/bin/python",
        [".", "src"],
        ["agents", "shop"],
    ),
    "another module of the name": (
        {f"env/{SITE}/agents/__init__.py": ""},
        "env/bin/python",
        ["src"],
        ["shop"],
    ),
    "another module of the name, not in this environment": (
        {f"env/{SITE}/agents/__init__.py": "", "other/pyvenv.cfg": ""},
        "other/bin/shop",
        [".", "src"],
        ["agents", "shop"],
    ),
    "in a shell": (
        {f"env/{SITE}/agents/__init__.py": ""},
        "sh -c 'cd x && env/bin/shop'",
        ["src"],
        ["shop"],
    ),
    "mistakes of others": (
        {f"env/{SITE}/tests/__init__.py": ""},
        "env/bin/python",
        [".", "src"],
        ["agents", "shop"],
    ),
    "built in this tree": (
        {
            "tree/.venv/pyvenv.cfg": "",
            f"tree/.venv/{RECORD}": "shop/_built.py,,\nshop/__init__.py,,\n",
        },
        "tree/.venv/bin/shop",
        ["."],
        ["agents", "shop"],
    ),
    "built in this tree, for uv": (
        {"tree/.venv/pyvenv.cfg": "", f"tree/.venv/{RECORD}": "shop/_built.so,,\n"},
        "uv run shop",
        ["."],
        ["agents", "shop"],
    ),
    "built elsewhere": (
        {f"env/{RECORD}": "shop/_built.py,,\n"},
        "env/bin/python",
        [".", "src"],
        ["agents", "shop"],
    ),
    "an old copy in this tree": (
        {"tree/.venv/pyvenv.cfg": "", f"tree/.venv/{RECORD}": "shop/__init__.py,,\n"},
        "tree/.venv/bin/shop",
        [".", "src"],
        ["agents", "shop"],
    ),
}


@pytest.mark.parametrize("case", PROGRAMS)
def test_own_packages(tmp_path: Path, case: str) -> None:
    files, command, folders, modules = PROGRAMS[case]
    tree = tmp_path / "tree"
    declared = {
        "pyproject.toml": f'{NAMED}[tool.setuptools.packages.find]\nwhere = [".", "src"]\n',
        "src/shop/__init__.py": "",
        "agents/__init__.py": "",
        "tests/__init__.py": "",
    }
    suites.write(tree, declared)
    suites.write(tmp_path, {"env/pyvenv.cfg": "", **files})
    found = find_packages(tree, ["pyproject.toml"], ())
    words = [str(tmp_path / word.strip("'")) if "/" in word else word for word in command.split()]
    searched, own = own_packages(found, tree, tree / "evals", words, "/nowhere")
    assert searched == [tree / folder for folder in folders]
    assert own == modules


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
