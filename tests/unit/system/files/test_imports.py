"""The files that a program is made of."""

from pathlib import Path

import pytest

from agentevals_action.system.files.imports import find_imports
from tests.support import suites

FILES = {
    "evals/check.py": "import json\nimport lib.rules\nfrom .near import one\nfrom shared import two\n",
    "evals/lib/__init__.py": "",
    "evals/lib/rules.py": "from lib import deep\nfrom . import own\n",
    "evals/lib/own.py": "",
    "evals/own.py": "",
    "evals/lib/deep.py": '"""Scores what agent.py prints, see ../agent.py."""\n',
    "evals/lib/unused.py": "",
    "evals/near.py": "",
    "evals/tool/__main__.py": "import near\n",
    "src/shared.py": "",
    "agent.py": "",
    "evals/check.js": "import x from './js/score.js';\n// import '../agent.js'\nrequire('./js')\n",
    "evals/js/score.ts": "export { y } from './deep.mjs';\n",
    "evals/js/deep.mjs": "",
    "evals/js/index.js": "import fs from 'fs'; import('./lazy.json')\n",
    "evals/js/lazy.json": "{}",
    "evals/js/unused.js": "",
    "agent.js": "",
}


FORMS = """\
import a.one, b as c  # two
from a import (  # :-)
    two,
    three as four,
)
from a \\
    import five
if True: import six
from .import seven; from . import eight
    from a import *
import nothing in prose
def broken(:
"""


def test_find_imports__all_forms_of_python_also_with_an_error_of_syntax(tmp_path: Path) -> None:
    names = {"a/__init__", "a/one", "a/two", "a/three", "a/five"}
    names |= {"b", "six", "seven", "eight"}
    files = dict.fromkeys((f"{name}.py" for name in {*names, "a/four", "c", "nothing"}), "")
    root = suites.write(tmp_path.resolve(), {**files, "check.py": FORMS})
    found = find_imports([root / "check.py"], [], root, root)
    assert {path.relative_to(root).as_posix().removesuffix(".py") for path in found} == names


@pytest.mark.parametrize(
    ("script", "words", "expected"),
    [
        (
            "check.py",
            ["python3", "check.py"],
            {
                "evals/lib/__init__.py",
                "evals/lib/rules.py",
                "evals/lib/deep.py",
                "evals/lib/own.py",
                "evals/near.py",
                "src/shared.py",
            },
        ),
        (
            "check.js",
            ["node", "check.js"],
            {"evals/js/score.ts", "evals/js/deep.mjs", "evals/js/index.js", "evals/js/lazy.json"},
        ),
        (None, ["python3", "-m", "near"], {"evals/near.py"}),
        (None, ["python3", "-m", "tool"], {"evals/tool/__main__.py", "evals/near.py"}),
        (None, ["python3", "-c", "import near; near.main()"], {"evals/near.py"}),
        (None, ["uvicorn", "near:app", "--port", "{PORT}"], {"evals/near.py"}),
        (None, ["flask", "--app=shared:create(1)", "run"], {"src/shared.py"}),
        (None, ["gunicorn", "absent:app", "http://near:80", "near:80"], set()),
    ],
)
def test_find_imports__at_any_depth(
    tmp_path: Path, script: str | None, words: list[str], expected: set[str]
) -> None:
    root = suites.write(tmp_path.resolve(), FILES)
    files = [root / "evals" / script] if script else []
    found = find_imports(files, words, root / "evals", root)
    assert {path.relative_to(root).as_posix() for path in found} == expected


def test_find_imports__nothing_outside_of_the_repository(tmp_path: Path) -> None:
    (tmp_path / "outside.py").write_text("")
    root = suites.write(tmp_path.resolve() / "root", {"check.py": "import link\n"})
    (root / "link.py").symlink_to(tmp_path / "outside.py")
    assert find_imports([root / "check.py"], [], root, root) == {}
