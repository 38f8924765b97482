"""What a Python program imported of its own repository. The worker of `provider: python` uses it,
and it is a plug-in of pytest. Any Python from 3.9 runs it. PYTEST_DONT_REWRITE

The variable AGENTEVALS_PACKAGES is JSON: the `trees` in which the modules of the side are, the
names of these `modules`, and the folder for what the plug-in finds (`results`)."""

from __future__ import annotations

import json
import os
import re
import sys
from importlib.machinery import PathFinder
from pathlib import Path
from typing import Any

_FACTS = json.loads(os.environ.get("AGENTEVALS_PACKAGES") or "{}")
_MODULES = tuple(_FACTS.get("modules", ()))
_TREES = tuple(map(os.path.realpath, _FACTS.get("trees", ())))
_END = (
    f"and its tree is {_FACTS.get('trees', [''])[0]}; in the input `prepare`, make an environment "
    "for each tree (`python3 -m venv .venv`), install the package there, and start the program "
    "with `.venv/bin/python`"
)


def foreign_import() -> dict[str, str]:
    """The error of a program that imported a module of its repository from outside of its tree."""
    for name, module in list(sys.modules.items()):
        file = getattr(module, "__file__", None) if _is_own(name) else None
        if file and not _is_inside(file):
            return {"error": f"the module {name} was imported from {file}, {_END}"}
    return {}


def missing_import(error: BaseException | None) -> str:
    """The sentence about a module that only an installed copy has, if that is why this error was
    raised; otherwise empty."""
    while error is not None:
        if isinstance(error, ImportError) and _is_own(error.name or ""):
            imported = re.search(r"cannot import name '(\w+)'", str(error))
            name = f"{error.name}.{imported[1]}" if imported else str(error.name)
            if file := _installed(name):
                return f"the module {name} exists only as {file}, {_END}"
        error = error.__cause__ or error.__context__
    return ""


def _is_own(name: str) -> bool:
    return any(name == module or name.startswith(f"{module}.") for module in _MODULES)


def _is_inside(file: str) -> bool:
    return any(Path(os.path.realpath(file)).is_relative_to(tree) for tree in _TREES)


def _installed(name: str) -> str:
    """The file of a module in what is installed outside of the tree."""
    steps, file = name.split("."), ""
    folders = [folder for folder in sys.path if not _is_inside(folder)]
    for end in range(1, len(steps) + 1):
        spec = PathFinder.find_spec(".".join(steps[:end]), folders)
        if spec is None:
            return ""
        folders, file = list(spec.submodule_search_locations or ()), spec.origin or ""
    return file


def _report(sentence: str) -> None:
    if sentence:
        path = Path(_FACTS["results"], f"imports-{os.getpid()}")
        path.write_text(sentence, encoding="utf-8")


def pytest_exception_interact(call: Any) -> None:
    """After an error of a test, of a fixture, or of the import of a test file."""
    _report(missing_import(call.excinfo.value))


def pytest_runtest_teardown() -> None:
    """After each test."""
    _report(foreign_import().get("error", ""))


def pytest_sessionfinish() -> None:
    """After all tests, or where none could be collected."""
    _report(foreign_import().get("error", ""))
