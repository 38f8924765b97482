"""Agents that are packages: each side runs its own code, wherever a package is installed, or its
tests could not be scored."""

import json
import os
import subprocess
import sys
from collections.abc import Mapping
from pathlib import Path

import pytest

from tests.support import command
from tests.support.repositories import Repository

AGENT = """\
from shop.words import GREETING

def answer(messages):
    return GREETING + ", " + messages[-1]["content"]
"""
SERVER = """\
import http.server, json, sys
from shop.agent import answer

class Handler(http.server.BaseHTTPRequestHandler):
    def do_POST(self):
        body = json.loads(self.rfile.read(int(self.headers["Content-Length"])))
        text = answer([{"content": body["prompt"]}]).encode()
        self.send_response(200)
        self.send_header("Content-Length", str(len(text)))
        self.end_headers()
        self.wfile.write(text)

http.server.HTTPServer(("127.0.0.1", int(sys.argv[1])), Handler).serve_forever()
"""
CLI = """\
import sys
from shop.agent import answer
print(answer([{"content": sys.argv[1]}]))
"""
CHECK = """\
def test_greeting():
    from shop.agent import answer
    assert answer([{"content": "Ada"}]) == "Good day, Ada"
"""
SUITE = """\
name: shop
tests:
  - {id: greets, input: Ada, assert: [{type: contains, value: Good day}]}
"""
TARGETS = """\
targets:
  - {name: python, provider: python, target: "shop.agent:answer", python: PYTHON}
  - {name: cli, provider: cli, command: [PYTHON, -m, shop.cli, "{PROMPT}"], cwd: /}
  - name: http
    provider: http
    url: http://127.0.0.1:{PORT}/
    start: PYTHON -m shop.server {PORT}
    cwd: /
"""
CONFIGURATION = """\
watch: ["**/*.py"]
suites: ["evals/*.yaml"]
"""
RUNNER = """\
watch: ["**/*.py"]
runners: [{name: pytest, results: junit, suites: ["checks/test_*.py"], program: PYTHON -m pytest}]
"""
MANIFEST = """\
[project]
name = "shop"
[tool.setuptools.packages.find]
where = ["src", "lib"]
"""
#: The function of an agent, the manifest of a package, and a file of it that the agent imports.
IMPORTED = {
    "src": ("shop.agent:answer", "pyproject.toml", "src/shop/words.py"),
    "a declared folder": ("shop.agent:answer", "pyproject.toml", "lib/shop/words.py"),
    "one of several": ("shop.agent:answer", "apps/shop/setup.py", "apps/shop/src/shop/words.py"),
    "another package": ("bot:answer", "apps/shop/setup.py", "apps/shop/src/shop/words.py"),
}
PROJECT = """\
[build-system]
requires = ["setuptools"]
build-backend = "setuptools.build_meta"
[project]
name = "the-shop"
version = "1.0"
[tool.setuptools]
packages = ["shop"]
"""
#: Installs the package of a tree into the environment of the interpreter: as a copy, with what only
#: a build makes, or editable, as backends do it.
INSTALL = """\
import pathlib, shutil, sys, sysconfig
kind, site = sys.argv[1], pathlib.Path(sysconfig.get_path("purelib"))
(package,) = (path.parent for path in pathlib.Path.cwd().glob("[!.]*/**/words.py"))
info = site / "the_shop-1.0.dist-info"
info.mkdir(exist_ok=True)
(info / "METADATA").write_text("Metadata-Version: 2.1\\nName: the-shop\\nVersion: 1.0\\n")
names = ["the_shop-1.0.dist-info/METADATA"]
if kind == "copy":
    shutil.rmtree(site / "shop", ignore_errors=True)
    shutil.copytree(package, site / "shop")
    (site / "shop" / "_built.py").write_text("")
    names += [path.relative_to(site).as_posix() for path in (site / "shop").glob("*.py")]
elif kind == "path":
    (site / "shop.pth").write_text(str(package.parent))
else:
    (site / "shop_finder.py").write_text('''
import importlib.util, sys
class Finder:
    @classmethod
    def find_spec(cls, name, path=None, target=None):
        if name == "shop":
            return importlib.util.spec_from_file_location(name, "%s/__init__.py")
sys.meta_path.append(Finder)
''' % package)
    (site / "shop.pth").write_text("import shop_finder")
(info / "RECORD").write_text("".join(name + ",,\\n" for name in names))
"""
KINDS = ("python", "cli", "http", "pytest")
SITE = Path("lib", f"python{sys.version_info.major}.{sys.version_info.minor}", "site-packages")
#: What makes an environment, in which pytest is installed, with no access to the network.
OWN_SITE = next(path for path in map(Path, sys.path) if path.name == "site-packages")
VENV = f"{sys.executable} -m venv --without-pip {{0}} && echo {OWN_SITE} > {{0}}/{SITE}/tests.pth"


@pytest.fixture
def venv(tmp_path: Path) -> Path:
    """The environment of the job, which both sides use."""
    subprocess.run(VENV.format(tmp_path / "venv"), shell=True, check=True)
    return tmp_path / "venv"


def repository(
    path: Path,
    kind: str,
    python: str = "python3",
    files: Mapping[str, str] | None = None,
    folder: str = "src/",
) -> Repository:
    """A repository with an agent in a package, on a branch for a change."""
    made = Repository.create(
        path,
        {
            "pyproject.toml": PROJECT,
            f"{folder}shop/__init__.py": "",
            f"{folder}shop/words.py": 'GREETING = "Good day"\n',
            f"{folder}shop/agent.py": AGENT,
            f"{folder}shop/cli.py": CLI,
            f"{folder}shop/server.py": SERVER,
            "install.py": INSTALL,
            "evals/EVAL.yaml": SUITE,
            "checks/test_shop.py": CHECK,
            ".agentv/targets.yaml": TARGETS.replace("PYTHON", python),
            ".agentevals.yaml": (RUNNER if kind == "pytest" else CONFIGURATION).replace(
                "PYTHON", python
            ),
            ".gitignore": "/agentevals-report/\n__pycache__/\n.venv/\nbuild/\n*.egg-info/\n",
            **(files or {}),
        },
    )
    if kind == "pytest":
        made.commit("only the runner", {"evals/EVAL.yaml": None})
    made.git("checkout", "--quiet", "-b", "change")
    return made


def review(made: Repository, kind: str, venv: Path, *options: str) -> command.Done:
    target = () if kind == "pytest" else ("--target", kind)
    path = f"{venv / 'bin'}{os.pathsep}{os.environ['PATH']}"
    return command.run(made.path, "review", "--base", "main", *target, *options, env={"PATH": path})


def error(made: Repository) -> str:
    """That of the test on head, or of the suite of a runner."""
    (row,) = (made.path / "agentevals-report/results.jsonl").read_text().splitlines()
    return str(json.loads(row)["error"]["message"])


def install(made: Repository, venv: Path, how: str) -> None:
    subprocess.run([venv / "bin/python", "install.py", how], cwd=made.path, check=True)


#: Where the package of the tests is installed, and with which options the review runs.
LAYOUTS: Mapping[str, tuple[str, str, tuple[str, ...]]] = {
    "editable": ("path", "python3", ()),
    "finder": ("finder", "python3", ()),
    "setup": ("", "python3", ("--setup", "python3 install.py copy")),
    "prepare": ("", "python3", ("--prepare", "python3 install.py path")),
    "venv": (
        "path",
        ".venv/bin/python",
        ("--prepare", f"{VENV.format('.venv')} && .venv/bin/python install.py copy"),
    ),
}


@pytest.mark.slow
@pytest.mark.parametrize("layout", LAYOUTS)
@pytest.mark.parametrize("kind", KINDS)
def test_review__each_side_runs_its_own_code(
    tmp_path: Path, venv: Path, kind: str, layout: str
) -> None:
    how, python, options = LAYOUTS[layout]
    folder = "" if layout == "finder" else "src/"
    made = repository(tmp_path / "repository", kind, python, folder=folder)
    if how:
        install(made, venv, how)
    made.commit("the same", {f"{folder}shop/agent.py": f"# greets\n{AGENT}"})
    done = review(made, kind, venv, *options)
    assert done.code == 0, done.out + done.err
    made.commit("impolite", {f"{folder}shop/words.py": 'GREETING = "Yo"\n'})
    done = review(made, kind, venv, *options)
    assert done.code == 1, done.out + done.err
    assert "1 test regressed" in done.out


#: It needs a module that only a build makes.
BUILT = {"src/shop/agent.py": f"import shop._built\n{AGENT}"}
REMEDY = "in the input `prepare`, make an environment for each tree (`python3 -m venv .venv`)"


@pytest.mark.slow
@pytest.mark.parametrize("kind", KINDS)
def test_review__what_only_an_installed_copy_has_is_an_error(
    tmp_path: Path, venv: Path, kind: str
) -> None:
    made = repository(tmp_path / "repository", kind, files=BUILT)
    made.commit("the same", {"src/shop/words.py": 'GREETING = "Good day"  # or night\n'})
    done = review(made, kind, venv, *LAYOUTS["setup"][2])
    assert done.code == 3, done.out + done.err
    if kind in ("python", "pytest"):
        installed = venv / SITE / "shop/_built.py"
        assert (
            f"the module shop._built exists only as {installed}, and its tree is {made.path}"
            in error(made)
        )
        assert REMEDY in error(made)


@pytest.mark.slow
@pytest.mark.parametrize("kind", KINDS)
def test_review__an_environment_for_each_tree_has_what_a_build_makes(
    tmp_path: Path, venv: Path, kind: str
) -> None:
    _, python, options = LAYOUTS["venv"]
    made = repository(tmp_path / "repository", kind, python, files=BUILT)
    made.commit("impolite", {"src/shop/words.py": 'GREETING = "Yo"\n'})
    done = review(made, kind, venv, *options)
    assert done.code == 1, done.out + done.err


@pytest.mark.slow
@pytest.mark.parametrize(("kind", "check"), [("python", ""), ("pytest", CHECK), ("pytest", CLI)])
def test_review__a_module_of_another_tree_is_an_error(
    tmp_path: Path, venv: Path, kind: str, check: str
) -> None:
    """The root is not searched first, because its `agents` hides an installed module; what is
    installed is base's, and head's agent is broken."""
    others = {"agents/__init__.py": "", "checks/test_shop.py": check.replace("sys.argv[1]", "''")}
    python = (
        "python3" if kind == "python" else "python3 -P"
    )  # pytest would search the current folder
    made = repository(tmp_path / "repository", kind, python, others, "")
    (venv / SITE / "agents").mkdir()
    (venv / SITE / "agents/__init__.py").write_text("")
    made.commit("impolite", {"shop/words.py": 'GREETING = "Yo"\n'})
    done = review(made, kind, venv, *LAYOUTS["setup"][2])
    assert done.code == 3, done.out + done.err
    assert f"the module shop was imported from {venv / SITE / 'shop/__init__.py'}" in error(made)
    assert REMEDY in error(made)


@pytest.mark.parametrize("layout", IMPORTED)
def test_package__a_module_that_the_agent_imports_affects_its_suite(
    tmp_path: Path, layout: str
) -> None:
    function, manifest, module = IMPORTED[layout]
    target = {"name": "default", "provider": "python", "target": function, "cwd": "/"}
    files = {
        "evals/EVAL.yaml": SUITE,
        ".agentv/targets.yaml": json.dumps([target]),
        ".agentevals.yaml": "watch: [other.py]",  # the agent's files are not named
        "other.py": "",
        "bot.py": "from shop.agent import answer",
        manifest: "" if manifest.endswith(".py") else MANIFEST,
        str(Path(module).with_name("__init__.py")): "",
        str(Path(module).with_name("agent.py")): AGENT,
        module: "GREETING = 'Good day'",
    }
    repository = Repository.create(tmp_path, files)
    repository.write({module: "GREETING = 'Bad day'"})
    done = command.run(tmp_path, "review", "--base", "HEAD", "--confirm", "0")
    assert done.code == 1, done.out + done.err
