"""The architecture as the imports show it: the order of the folders, and the owner of each
library."""

import ast
import re
import subprocess
import sys
import tomllib
from functools import cache
from importlib import metadata
from pathlib import Path

import pytest
from packaging.requirements import Requirement
from packaging.utils import canonicalize_name

from tests.support.source_tree import Import, Module, find_cycles, read_package

ROOT = Path(__file__).resolve().parents[2]

#: The folders, and the modules of the root that stand for one. Each imports only those before it.
ORDER = (
    "__init__",
    "errors",
    "formatting",
    "escaping",
    "templating",
    "system",
    "validation",
    "model",
    "settings",
    "results",
    "tools",
    "targets",
    "evaluators",
    "suites",
    "execution",
    "judges",
    "runners",
    "baselines",
    "reports",
    "github",
    "review",
    "cli",
    "__main__",
)
MAX_ROOT_MODULES = 7
MAX_LATE_IMPORTS = 5

#: The folders that may import a library.
OWNERS = {
    "click": ("cli",),
    "github": ("github",),
    "httpx": ("targets.models", "github"),
    "jinja2": ("templating",),
    "rich": ("reports", "cli"),
    "scipy": ("judges.statistics",),
    "statsmodels": ("judges.statistics",),
    "wcmatch": ("model",),
    "yaml": ("suites",),
}

#: Folders without clock, I/O, environment and log.
PURE = ("model", "review.comparison")
IMPURE = {
    "asyncio",
    "io",
    "logging",
    "os",
    "secrets",
    "shutil",
    "socket",
    "subprocess",
    "sys",
    "tempfile",
    "time",
    "urllib.request",
}


@cache
def modules() -> tuple[Module, ...]:
    return read_package(ROOT / "src" / "agentevals_action")


def is_in(name: str, *folders: str) -> bool:
    return any(name == folder or name.startswith(f"{folder}.") for folder in folders)


def show(module: Module, found: Import) -> str:
    return f"{module.name}:{found.line} imports {found.target}"


def position(name: str) -> int:
    folder = name.partition(".")[0]
    return ORDER.index(folder) if folder in ORDER else len(ORDER)


@cache
def attributes() -> tuple[tuple[Module, ast.Attribute], ...]:
    return tuple(
        (module, node)
        for module in modules()
        for node in ast.walk(module.tree)
        if isinstance(node, ast.Attribute)
    )


@pytest.mark.slow
def test_folders__are_all_in_the_order() -> None:
    assert {module.name.partition(".")[0] for module in modules()} - set(ORDER) == set()


def test_folders__import_only_those_before_them() -> None:
    wrong = [
        show(module, found)
        for module in modules()
        for found, name in module.own()
        if position(name) > position(module.name)
    ]
    assert wrong == []


def test_folders__have_no_cycle() -> None:
    """A registry, the `__init__` of a folder, stands apart: it imports the plug-ins, and these the
    base in its folder."""
    graph: dict[str, set[str]] = {}
    for module in modules():
        for _, name in module.own():
            ends = [
                end if end.endswith("__init__") or "." not in end else end.rpartition(".")[0]
                for end in (module.name, name)
            ]
            if ends[0] != ends[1]:
                graph.setdefault(ends[0], set()).add(ends[1])
    assert find_cycles(graph) == []


def test_root__has_few_modules() -> None:
    root = [module.name for module in modules() if not module.folder]
    assert len(root) <= MAX_ROOT_MODULES, root


def test_imports__are_at_the_top_of_the_module() -> None:
    late = [(module, found) for module in modules() for found in module.imports if found.late]
    assert len(late) <= MAX_LATE_IMPORTS, [show(*found) for found in late]
    assert [show(*found) for found in late if not found[1].comment.strip()] == []


@pytest.mark.parametrize("library", sorted(OWNERS))
def test_library__is_imported_by_its_owners(library: str) -> None:
    users = {
        show(module, found): is_in(module.name, *OWNERS[library])
        for module in modules()
        for found, name in module.foreign()
        if name == library
    }
    assert [user for user, is_owner in users.items() if not is_owner] == []
    assert users


def test_libraries__are_declared() -> None:
    project = tomllib.loads((ROOT / "pyproject.toml").read_text(encoding="utf-8"))["project"]
    lines = project["dependencies"] + project["optional-dependencies"]["judges"]
    declared = {canonicalize_name(Requirement(line).name) for line in lines}
    homes = metadata.packages_distributions()
    used = {
        name
        for module in modules()
        for _, name in module.foreign()
        if name not in sys.stdlib_module_names
    }
    owners = {name: {canonicalize_name(home) for home in homes.get(name, [name])} for name in used}
    # Parts of the interfaces of PyGithub and pydantic, which bring them along.
    undeclared = {name for name in used if not owners[name] & declared}
    assert undeclared - {"pydantic_core", "urllib3"} == set()
    unused = declared - set().union(*owners.values())
    assert unused == set(), "a dependency that nothing imports"


def test_environment_and_exit_codes__belong_to_the_command_line() -> None:
    used = re.compile(r"os\.(environ|getenv|_exit)|sys\.(argv|exit)")
    wrong = [
        f"{module.name}:{node.lineno} uses {ast.unparse(node)}"
        for module, node in attributes()
        # A second SIGINT ends the process wherever it is; the others run in programs of their own.
        if not is_in(module.name, "cli", "__main__", "system.signals", "system.observer")
        and not is_in(module.name, "targets.programs.python_worker", "tools.command_stub")
        and isinstance(node.value, ast.Name)
        and used.fullmatch(f"{node.value.id}.{node.attr}")
    ]
    assert wrong == []


def test_child_processes__are_started_in_one_folder() -> None:
    wrong = [
        f"{module.name}:{node.lineno} uses {node.attr}"
        for module, node in attributes()
        if not is_in(module.name, "system")
        and re.fullmatch(r"(create_)?subprocess_\w+|posix_spawnp?|fork|exec[lv]\w*", node.attr)
    ]
    assert wrong == []


def test_pure_folders__touch_neither_clock_nor_world() -> None:
    wrong = [
        show(module, found)
        for module in modules()
        if is_in(module.name, *PURE)
        for found, name in module.foreign()
        if {name, found.target.partition(":")[0]} & IMPURE
    ]
    assert wrong == []


def test_pure_folders__draw_random_numbers_with_a_seed_alone() -> None:
    """`from random import Random` and `Random(0)`: the same results give the same decision."""
    nodes = [
        node for module in modules() if is_in(module.name, *PURE) for node in ast.walk(module.tree)
    ]
    imported = [node for node in nodes if isinstance(node, ast.Import | ast.ImportFrom)]
    names = {
        alias.name
        for node in imported
        for alias in node.names
        if "random" in (alias.name, getattr(node, "module", None))
    }
    calls = [
        node.args
        for node in nodes
        if isinstance(node, ast.Call) and getattr(node.func, "id", None) == "Random"
    ]
    assert names == {"Random"}
    assert calls
    assert all(len(call) == 1 and isinstance(call[0], ast.Constant) for call in calls)


@pytest.mark.parametrize(
    ("command", "library"),
    [("run", "github"), ("validate", "github"), ("validate", "rich"), ("explain", "rich")],
)
def test_commands__do_not_wait_for_a_library_that_they_do_not_use(
    command: str, library: str
) -> None:
    """The import of PyGithub takes longer than all others together."""
    module = f"agentevals_action.cli.commands.{command}"
    script = f"import sys, {module}; sys.exit({library!r} in sys.modules)"
    assert subprocess.run([sys.executable, "-c", script], check=False).returncode == 0


def test_help__waits_for_no_command() -> None:
    script = (
        "import sys; from agentevals_action.cli.app import app;"
        "app.main(['--help'], standalone_mode=False);"
        "sys.exit(any(name.startswith('agentevals_action.cli.commands.') for name in sys.modules))"
    )
    assert subprocess.run([sys.executable, "-c", script], check=False).returncode == 0
