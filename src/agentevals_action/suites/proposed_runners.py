"""Suites of other programs in a repository, and the entries of `runners` that would run them."""

import json
import re
import shlex
from collections.abc import Collection, Iterator, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path, PurePosixPath

from agentevals_action.suites.find import FOLDER, is_searched
from agentevals_action.system.child_environment import is_never_passed
from agentevals_action.system.files.regular_files import read_regular

_READ_BYTES = 200_000  # of a file, to recognise it

_PROMPTFOO = re.compile(r"promptfooconfig(\.[\w-]+)*\.(ya?ml|json|[cm]?js|ts)")
_PROMPTFOO_INSTALL = "npm install -g promptfoo@0.123.1"
_TEST = re.compile(r"test_.*\.py|.*_test\.py")
#: Also in a function, on its line, after other modules, and in `pytest.importorskip`.
_LIBRARY = re.compile(
    r"(?:(?:^|[:;])\s*(?:from|import) (?:[\w., ]+, ?)?|\bimportorskip\(['\"])"
    r"(deepeval|pydantic_evals)\b",
    re.MULTILINE,
)
_INSPECT = re.compile(r"^\s*(?:from|import) inspect_ai\b", re.MULTILINE)
_TASK = re.compile(r"^@(inspect_ai\.)?task\b", re.MULTILINE)
#: Providers of promptfoo whose key has the name of the vendor, and names of keys.
_PROVIDER = re.compile(
    r"(?<![\w./:-])(openai|anthropic|google|mistral|cohere|groq|openrouter|deepseek|xai):(?=\w)"
)
_KEY = re.compile(r"\b[A-Z][A-Z0-9_]*_API_KEY\b")
#: The manifest of a plugin of Claude Code, and the files that make a folder a case of its tests.
_PLUGIN, _CASES = ".claude-plugin", frozenset({"prompt.md", "case.yaml"})
_PLUGIN_INSTALL = "npm install -g @anthropic-ai/claude-code@2.1.330"
_REMARK = re.compile(r"(^|\s)(#|//).*$", re.MULTILINE)


@dataclass(frozen=True)
class ProposedRunner:
    """An entry for the suites at `paths`: `suites` are globs of them, `env` the names of the keys
    that they certainly need, `install` is the command that installs the program."""

    name: str
    results: str
    paths: tuple[str, ...]
    suites: tuple[str, ...]
    install: str
    env: tuple[str, ...] = ()

    @property
    def entry(self) -> str:
        """The entry as one object of YAML."""
        suites = json.dumps(self.suites, ensure_ascii=False)
        env = f", env: [{', '.join(self.env)}]" if self.env else ""
        return f"{{name: {self.name}, results: {self.results}, suites: {suites}{env}}}"


def propose_runners(root: Path, files: Collection[str]) -> Sequence[ProposedRunner]:
    """The entries for files of the repository at `root`, of which `files` are the paths."""
    paths = sorted(path for path in files if is_searched(path, (FOLDER, _PLUGIN)))
    texts = {
        path: text
        for path in paths
        if path.endswith(".py") or _PROMPTFOO.fullmatch(PurePosixPath(path).name)
        if (text := _read(root, path))
    }
    return [
        *(*_promptfoo(texts), *_pytest(texts, paths), *_inspect(texts, paths)),
        *_plugins(paths),
    ]


def _read(root: Path, path: str) -> str:
    file = root / path
    try:
        is_inside = file.resolve().is_relative_to(root)
        return read_regular(file, _READ_BYTES).decode("utf-8", "replace") if is_inside else ""
    except OSError:  # deleted, or no regular file
        return ""


def _promptfoo(texts: Mapping[str, str]) -> Iterator[ProposedRunner]:
    configs = {path: _REMARK.sub("", text) for path, text in texts.items() if path[-3:] != ".py"}
    names = dict.fromkeys(PurePosixPath(path).name for path in configs)
    every = "\n".join(configs.values())
    keys = [*(f"{name.upper()}_API_KEY" for name in _PROVIDER.findall(every)), *_KEY.findall(every)]
    env = tuple(key for key in dict.fromkeys(keys) if not is_never_passed(key))
    globs = tuple(f"**/{name}" for name in names)
    if configs:
        yield ProposedRunner("promptfoo", "promptfoo", (*configs,), globs, _PROMPTFOO_INSTALL, env)


def _pytest(texts: Mapping[str, str], paths: Collection[str]) -> Iterator[ProposedRunner]:
    """Tests that use a library of evaluations. A glob names all tests of a folder only if all of
    them do."""
    tests = [path for path in paths if _TEST.fullmatch(PurePosixPath(path).name)]
    used = {path: _LIBRARY.findall(texts.get(path, "")) for path in tests}
    using = [path for path in tests if used[path]]
    others = {PurePosixPath(path).parent for path in tests if not used[path]}
    globs: dict[str, None] = {}
    for path in map(PurePosixPath, using):
        name = "test_*.py" if path.name.startswith("test_") else "*_test.py"
        globs[str(path if path.parent in others else path.with_name(name))] = None
    libraries = {name.replace("_", "-") for names in used.values() for name in names}
    if using:
        install = _pip(using, paths, "pytest>=8.2", *sorted(libraries))
        yield ProposedRunner("pytest", "junit", (*using,), (*globs,), install)


def _inspect(texts: Mapping[str, str], paths: Collection[str]) -> Iterator[ProposedRunner]:
    tasks = tuple(
        path for path, text in texts.items() if _INSPECT.search(text) and _TASK.search(text)
    )
    if tasks:
        yield ProposedRunner("inspect", "inspect", tasks, tasks, _pip(tasks, paths, "inspect-ai"))


def _plugins(paths: Collection[str]) -> Iterator[ProposedRunner]:
    """Plugins of Claude Code with cases. A glob names all plugins only if all of them have some."""
    name = f"{_PLUGIN}/plugin.json"
    every = [path for path in paths if f"/{path}".endswith(f"/{name}")]
    cases = [path for path in map(PurePosixPath, paths) if path.name in _CASES]
    folders = {parent.parent for path in cases for parent in path.parents if parent.name == "evals"}
    tested = tuple(path for path in every if PurePosixPath(path).parents[1] in folders)
    globs = (f"**/{name}",) if len(tested) == len(every) else tested
    if tested:
        env = ("ANTHROPIC_API_KEY",)
        yield ProposedRunner("claude", "claude", tested, globs, _PLUGIN_INSTALL, env)


def _pip(suites: Collection[str], paths: Collection[str], *packages: str) -> str:
    """Installs packages, and the requirements at the root and beside the suites."""
    folders = {PurePosixPath(), *(PurePosixPath(path).parent for path in suites)}
    names = sorted({str(folder / "requirements.txt") for folder in folders}.intersection(paths))
    words = [word for name in names for word in ("-r", name)]
    return f"python3 -m pip install {shlex.join([*words, *packages])}"
