"""Which way the code leans: who may import whom, who owns which library, how large a module and a
function may grow."""

import ast
import sys
import tomllib
from collections.abc import Iterator
from functools import cache
from importlib import metadata
from pathlib import Path

import pytest
from packaging.requirements import Requirement
from packaging.utils import canonicalize_name

from tests.support.source_tree import Import, Module, cycles, paths, read_package

ROOT = Path(__file__).resolve().parents[2]
PACKAGE = ROOT / "src" / "agentevals_action"

#: The folders of plug-ins, and the files in each that its plug-ins share.
PLUGINS = {
    "evaluators": ("base",),
    "providers": ("base",),
    "baselines": ("base",),
    "reports": ("base", "view", "annotations"),
    "hosts": (
        "base",
        "limits",
        "workflow_commands",
        "github_api",
        "github_check",
        "github_comment",
        "github_data",
        "github_labels",
        "github_marker",
        "github_past",
        "github_words",
    ),
}
BASES = tuple(f"{folder}.base" for folder in PLUGINS)
#: Who builds the adapters, or writes through them, and so knows the concrete plug-ins.
COMPOSITION = ("cli", "wiring", "sources", "bench", "workshop", "publish", "commands")
#: No clock, no I/O, no environment, no log. `watch` and `globs` are patterns over texts.
PURE = {
    "entries.entry",
    "entries.readers",
    "entries.reading",
    "entries.refusals",
    "scoring",
    "grading.aggregation",
    "statistics",
    "suspects",
    "flakiness",
    "compare",
    "waivers",
    "gate",
    "discover",
    "untouched",
    "activity",
    "stored.history",
}
PURE_MAY_IMPORT = {"errors", "model", "watch", "globs"} | PURE
#: What pure modules hand on and do not look into: they may name its types.
HANDED_ON = {"paths"}
IMPURE = {
    "os",
    "sys",
    "io",
    "time",
    "random",
    "secrets",
    "logging",
    "asyncio",
    "socket",
    "subprocess",
    "shutil",
    "tempfile",
    "urllib",
}
OWNERS = {
    "yaml": ("suites",),
    "jsonschema": ("suites",),
    "github": ("hosts",),
    "h11": ("apis.connection",),
    "certifi": ("apis.transport",),
    "jinja2": ("rendering",),
    "rich": ("console", "terminal"),
    "subprocess": ("system.process",),
    "click": ("cli", "options"),
    "sqlite3": ("targets.cache.store",),
    "wcmatch": ("globs",),
}
#: What `validate` must not wait for.
HEAVY = {"github", "h11", "jinja2", "jsonschema", "rich", "wcmatch"}

MOST_LINES, MOST_FUNCTION_LINES, MOST_ARGUMENTS = 320, 50, 8
#: `module` or `module.function`: why it may be larger.
LARGER: dict[str, str] = {
    "grading.judge_payload.judge_payload": "one flat object: each field of every wire form in use stands in it once",
}


@cache
def modules() -> dict[str, Module]:
    return read_package(PACKAGE)


def inside(name: str, *places: str) -> bool:
    return any(name == place or name.startswith(f"{place}.") for place in places)


def own_imports(module: Module) -> Iterator[tuple[Import, str]]:
    return ((found, found.name[1:]) for found in module.imports if found.name.startswith("."))


def foreign_imports(module: Module) -> Iterator[tuple[Import, str]]:
    return (
        (found, found.name.partition(".")[0])
        for found in module.imports
        if not found.name.startswith(".")
    )


def told(module: Module, found: Import) -> str:
    return f"{module.name}:{found.line} imports {found.name}"


def at_start(name: str) -> set[str]:
    """Our modules and foreign packages that importing a module brings along, packages' own files
    included."""
    reached, waiting = set(), [name]
    while waiting:
        current = waiting.pop()
        if current in reached:
            continue
        reached.add(current)
        if current not in modules():
            continue
        waiting += [current.rpartition(".")[0]] if "." in current else []
        for found in modules()[current].imports:
            if not found.late and not found.typing:
                waiting.append(
                    found.name.removeprefix(".")
                    if found.name.startswith(".")
                    else found.name.partition(".")[0]
                )
    return reached


def test_errors_and_model__import_nothing_of_ours() -> None:
    wrong = [
        told(module, found)
        for module in modules().values()
        if inside(module.name, "errors", "model")
        for found, name in own_imports(module)
        if not (inside(module.name, "model") and inside(name, "model"))
    ]
    assert wrong == []


def test_pure_modules__lean_on_the_model_alone() -> None:
    wrong = [
        told(module, found)
        for module in modules().values()
        if module.name in PURE
        for found, name in own_imports(module)
        if not inside(name, *PURE_MAY_IMPORT) and not (found.typing and name in HANDED_ON)
    ]
    assert wrong == []


def test_pure_modules__touch_neither_clock_nor_world() -> None:
    pure = [modules()[name] for name in sorted(PURE & modules().keys())]
    wrong = [
        told(module, found)
        for module in pure
        for found, name in foreign_imports(module)
        if name in IMPURE
    ]
    wrong += [
        f"{module.name}:{node.lineno} calls {ast.unparse(node.func)}"
        for module in pure
        for node in ast.walk(module.tree)
        if isinstance(node, ast.Call)
        and ast.unparse(node.func).rpartition(".")[2]
        in {"open", "read_text", "read_bytes", "now", "print"}
    ]
    assert wrong == []


def shared(folder: str) -> tuple[str, ...]:
    return tuple(f"{folder}.{part}" for part in PLUGINS[folder])


def test_plugins__import_their_base_and_what_stands_beside_the_folders() -> None:
    wrong = []
    for module in modules().values():
        folder, _, own = module.name.partition(".")
        if folder in PLUGINS and own and own != "base":
            # What plug-ins share may know the data of another folder's base; a plug-in knows its
            # own alone.
            known = (
                (*shared(folder), *BASES)
                if inside(module.name, *shared(folder))
                else shared(folder)
            )
            wrong += [
                told(module, found)
                for found, name in own_imports(module)
                if inside(name, *PLUGINS, *COMPOSITION) and not inside(name, *known)
            ]
    assert wrong == []


def test_bases__know_no_plugin() -> None:
    wrong = [
        told(modules()[base], found)
        for base in BASES
        for found, name in own_imports(modules()[base])
        if inside(name, *PLUGINS)
    ]
    assert wrong == []


def test_concrete_plugins__are_known_where_they_are_put_together() -> None:
    wrong = [
        told(module, found)
        for module in modules().values()
        if not inside(module.name, *COMPOSITION, *PLUGINS)
        for found, name in own_imports(module)
        if (folder := name.partition(".")[0]) in PLUGINS
        and name != folder
        and not inside(name, *shared(folder))
    ]
    assert wrong == []


def test_who_is_exempt__exists() -> None:
    named = {part for folder in PLUGINS for part in shared(folder)} | set(COMPOSITION) | PURE
    assert named - modules().keys() == set()


def test_every_library__has_one_owner() -> None:
    wrong = [
        told(module, found)
        for module in modules().values()
        for found, name in foreign_imports(module)
        if name in OWNERS and not inside(module.name, *OWNERS[name])
    ]
    assert wrong == []


def test_every_foreign_package__is_declared() -> None:
    project = tomllib.loads((ROOT / "pyproject.toml").read_text(encoding="utf-8"))["project"]
    declared = {canonicalize_name(Requirement(line).name) for line in project["dependencies"]}
    homes = metadata.packages_distributions()
    wrong = [
        told(module, found)
        for module in modules().values()
        for found, name in foreign_imports(module)
        if name not in sys.stdlib_module_names
        and not declared & {canonicalize_name(home) for home in homes.get(name, ())}
    ]
    assert wrong == []


def test_environment_and_exit__belong_to_the_command_line() -> None:
    wrong = [
        f"{module.name}:{node.lineno} uses {ast.unparse(node)}"
        for module in modules().values()
        if module.name != "cli"
        for node in ast.walk(module.tree)
        if isinstance(node, ast.Attribute)
        and ast.unparse(node) in {"os.environ", "os.getenv", "sys.argv", "sys.exit", "os._exit"}
    ]
    assert wrong == []


def test_imports__have_no_cycle() -> None:
    graph = {
        module.name: {name for found, name in own_imports(module) if not found.typing}
        for module in modules().values()
    }
    assert cycles(graph) == []


#: What a suite brings along: its types and providers are imported when it names them.
NAMED = [name for name in sorted(paths(PACKAGE)) if name.startswith(("evaluators.", "providers."))]


@pytest.mark.parametrize("start", ["cli", "commands.validate", *NAMED])
def test_heavy_libraries__wait_until_they_are_needed(start: str) -> None:
    assert start in modules()
    assert at_start(start) & HEAVY == set()


@pytest.mark.parametrize(
    "start", ["commands.validate", "commands.list", "commands.explain", *NAMED]
)
def test_reading__needs_no_event_loop(start: str) -> None:
    assert "asyncio" not in at_start(start)


#: What a run may come to need, and most runs do not.
SELDOM = {
    "comparing",
    "escaping",
    "hosts",
    "html",
    "joblog",
    "pipeline",
    "rendering",
    "reports.view.making",
    "workspaces.folders",
}


def test_run__waits_with_what_it_seldom_needs() -> None:
    assert SELDOM - {"html"} - modules().keys() == set()
    assert at_start("commands.run") & SELDOM == set()


def test_modules_and_functions__stay_small() -> None:
    large = {
        module.name: f"{module.lines} lines"
        for module in modules().values()
        if module.lines > MOST_LINES
    }
    for module in modules().values():
        for function in module.functions():
            lines = (function.end_lineno or function.lineno) - function.lineno + 1
            arguments = (
                len(function.args.posonlyargs)
                + len(function.args.args)
                + len(function.args.kwonlyargs)
            )
            if lines > MOST_FUNCTION_LINES or arguments > MOST_ARGUMENTS:
                large[f"{module.name}.{function.name}"] = f"{lines} lines, {arguments} arguments"
    assert {name: size for name, size in large.items() if name not in LARGER} == {}
    assert LARGER.keys() - large.keys() == set(), "no longer large: take it out of LARGER"


def test_every_module__says_first_what_it_is_for() -> None:
    assert [
        module.name
        for module in modules().values()
        if not (ast.get_docstring(module.tree) or "").strip()
    ] == []


def test_reading__finds_late_and_typing_imports(tmp_path: Path) -> None:
    package = tmp_path / "house"
    (package / "rooms").mkdir(parents=True)
    (package / "__init__.py").write_text("")
    (package / "rooms" / "__init__.py").write_text("from house.rooms import bed\n")
    (package / "rooms" / "bed.py").write_text(
        "import os.path\ndef sleep():\n    from house import rooms\n"
    )
    (package / "door.py").write_text(
        "from typing import TYPE_CHECKING\nif TYPE_CHECKING:\n    import httpx\nfrom house.rooms.bed import sleep\nfrom house import door\n"
    )
    read = read_package(package)
    assert [(found.name, found.late, found.typing) for found in read["door"].imports] == [
        ("typing", False, False),
        ("httpx", False, True),
        (".rooms.bed", False, False),
        (".door", False, False),
    ]
    assert [(found.name, found.late) for found in read["rooms.bed"].imports] == [
        ("os.path", False),
        (".rooms", True),
    ]


def test_cycles__are_found_once_each() -> None:
    graph = {"a": {"b"}, "b": {"c"}, "c": {"a", "d"}, "d": {"e"}, "e": set(), "f": {"f"}}
    assert cycles(graph) == ["a -> b -> c -> a", "f -> f"]
