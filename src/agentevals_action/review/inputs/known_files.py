"""Files that no suite covers and that are known to be no part of an agent: documentation, the files
of GitHub, labels of answers, and what the action itself reads and writes. Whatever else changes may
be the agent's."""

import asyncio
import re
from collections import defaultdict
from collections.abc import Collection, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from pathlib import PurePosixPath
from posixpath import normpath

from agentevals_action.judges.calibration_file import parse_calibration, read_calibration
from agentevals_action.model.judge import CALIBRATION_FILE, is_label_file
from agentevals_action.model.quarantine import FILE
from agentevals_action.settings import Settings
from agentevals_action.system.git import GitRepository

#: Documentation at the root or beside the manifest of a package: names, and a folder.
_DOCUMENT = re.compile(
    r"(?i:readme|changelog|licen[cs]e)(\.\w+)?|(README|CHANGELOG|LICEN[CS]E)[._-][\w.-]*"
)
_OF_GIT = re.compile(r"codeowners|\.gitignore|(issue|pull_request)_template(\.\w+)?", re.IGNORECASE)
_TEXTS = frozenset({"", ".adoc", ".html", ".md", ".mdx", ".rst", ".txt"})
_DOCS, _GITHUB = "docs", ".github"
_MANIFESTS = frozenset(
    {"pyproject.toml", "setup.py", "setup.cfg", "package.json", "go.mod", "Cargo.toml", "pom.xml"}
    | {"build.gradle", "build.gradle.kts", "composer.json", "Gemfile", "mix.exs", "deno.json"}
)
#: Files that name documentation for a program that is no agent, by their names.
_OF_TOOLS = re.compile(
    r"\.(docker|editorconfig|eslint|git(attributes|ignore)|lint|markdownlint|pre-commit|prettier|readthedocs|vale).*"
    rf"|mkdocs\.ya?ml|MANIFEST\.in|{re.escape(FILE)}"
)
#: Files that coding agents read, in any folder and in `.github`.
_OF_AGENTS = re.compile(
    r"(.*/)?((SKILL|AGENTS|CLAUDE|GEMINI)\.md|(\.claude|\.agents|prompts)/.*)"
    r"|\.github/(copilot-instructions\.md|(agents|chatmodes|hooks|instructions|skills)/.*)",
    re.DOTALL,
)
#: The name of the action in a workflow.
_ACTION = "agentevals"
#: The lines that may name documents, and the files in which none is named.
_NAMES = f"{_DOCS}|readme|changelog|licen[cs]e|{re.escape(_GITHUB)}"
_GLOBS = (
    r"rglob|\*\*/|-i?name |--include|--glob|ls-files|walk|recursive"
    r"|[\"'`]\.(md|mdx|rst|txt|adoc|html)[\"'`]"
)
_DATA = ("*.lock", "*-lock.*", "*.map", "*.min.js", "*.svg")
_WORD = re.compile(r"[^\s:\"'`()<>,;|*?{}$&=\[\]]+")
_NAME = re.compile(_NAMES, re.IGNORECASE)
_URL = re.compile(r"\b(?!file:)[a-zA-Z][\w+]*://\S*")
#: A glob for files in all folders below the current one, and its suffixes.
_GLOB = re.compile(
    r"(?:rglob\(\s*f?[\"']|(?:^|[\s\"'`(=,\[])(?:\./)?\*\*/|-i?name\s+[\"']?|ls-files\s+[\"']?"
    r"|--(?:include|glob)[= ][\"']?)[^/\s\"'`]*?\*\.(\w+|\{[\w,]+\})"
)
#: What goes through all folders, and a suffix that it may look for.
_WALK = re.compile(r"walk\w*\(|recursive\W+true", re.IGNORECASE)
_SUFFIX = re.compile(r"[\"'`](\.\w+)[\"'`]")
#: Where the word `docs` alone is a path: in quotes, as a value, after a command or an option, in a
#: list of words, or in a script. Elsewhere it is prose, or the name of a variable.
_QUOTED = re.compile(r"[\"'`]\0[\"'`]")
_VALUE = re.compile(r"[:=-] *[\"'`]?\0[\"'`]?\s*(#|$)")
_AFTER_COMMAND = re.compile(
    r"(^|[\s\"'`(;:&|])(cd|cp|embed|find|ls|tar|tree|cat|grep|rg|COPY|ADD|-[-\w]+)(\s+-\S+)*\s+\0"
)
_ITEM = re.compile(r"[\[,] *\0")
_SCRIPTS = frozenset({"", ".sh", ".bash", ".zsh", ".fish", ".mk", ".ps1", ".bat", ".cmd"})
_SETTINGS = frozenset({".yaml", ".yml", ".json", ".toml", ".ini", ".cfg", ".conf", ".env"})
#: Files of which only whole paths and values count.
_LISTS = frozenset({".csv", ".jsonl", ".tsv"})


@dataclass(frozen=True)
class KnownFiles:
    """The known files of a tree; `path in known` is whether a path (from the root) is one.

    `packages` are the folders with a manifest, and the root. `named` are documents, folders and
    suffixes (`*.md`) of documents (lower case, from `docs` or `.github` on) that other files name:
    an agent may read these. `built` are the documents that manifests name. `workflows` are the
    files of GitHub that name the action. `paths` and `folders` are the action's own files,
    `labelled` the folders of suites, in which labels lie."""

    packages: frozenset[str] = frozenset({""})
    named: frozenset[str] = frozenset()
    built: frozenset[str] = frozenset()
    workflows: frozenset[str] = frozenset()
    paths: frozenset[str] = frozenset({FILE})
    folders: tuple[str, ...] = ()
    labelled: frozenset[str] = frozenset()

    def __contains__(self, path: str) -> bool:
        if path in self.paths or path.startswith(self.folders):
            return True
        if is_label_file(path) and _folder(PurePosixPath(path)) in self.labelled:
            return True
        if path in self.workflows or _OF_AGENTS.fullmatch(path):
            return False
        name = _document(path, self.packages)
        return name is not None and not _is_named(name, self.named)

    def is_built(self, path: str) -> bool:
        """Whether a build may need that a document exists."""
        return _document(path, self.packages) in self.built


async def read_known_files(
    repository: GitRepository,
    tracked: Collection[str],
    covered: Mapping[str, bool],
    links: Mapping[str, Sequence[str]],
    settings: Settings,
    workflow: str,
) -> KnownFiles:
    """The known files of a tree with these `tracked` files. `covered` are the files that suites
    reference, and whether each belongs to suites alone; `links` are symbolic links and where
    they lead. `workflow` is the path of the workflow that runs, empty outside of GitHub."""
    folders = [f"{_GITHUB}/workflows", f"{_GITHUB}/actions"]
    workflows = {*await repository.search(_ACTION, folders), workflow}
    manifests = (PurePosixPath(path) for path in tracked)
    packages = {"", *(_folder(path) for path in manifests if path.name in _MANIFESTS)}
    lines = await repository.search(
        f"{_NAMES}|{_GLOBS}", [".", *(f":(exclude){glob}" for glob in _DATA)]
    )
    named = {name for path in covered for name in _folder_of_program(path, packages)}
    built, by_document = set[str](), defaultdict[str, set[str]](set)
    for path, in_file in lines.items():
        file, document = PurePosixPath(path), _document(path, packages)
        names = {name for line in in_file for name in _named(line, file)}
        if any(map(_WALK.search, in_file)):
            suffixes = (suffix for line in in_file for suffix in _SUFFIX.findall(line))
            names |= {f"*{suffix}" for suffix in suffixes if suffix in _TEXTS}
        if document is not None and path not in workflows and not _OF_AGENTS.fullmatch(path):
            by_document[document] |= names
        elif file.name in _MANIFESTS:
            built |= names
            named |= {name for name in names if name.startswith(_DOCS)}
        elif not _OF_TOOLS.fullmatch(file.name):
            named |= names
    for link, targets in links.items():
        if _document(link, packages) is None:
            named.update(name for to in targets for name in _named(f"'{to}'", PurePosixPath(link)))
    waiting = list(by_document)
    while read_now := [name for name in waiting if _is_named(name, named)]:
        waiting = [name for name in waiting if name not in read_now]
        named.update(name for document in read_now for name in by_document[document])
    of_suites = {PurePosixPath(path) for path, is_own in covered.items() if is_own}
    paths = {FILE, *filter(None, [settings.baseline_file])}
    calibration = normpath(f"{settings.working_directory}/{CALIBRATION_FILE}")
    content = await asyncio.to_thread(read_calibration, repository.root / calibration)
    if content is None or parse_calibration(content).calibration:  # else it may be an agent's data
        paths.add(calibration)
    written = {settings.report_dir, *filter(None, [settings.cache_dir])}
    return KnownFiles(
        frozenset(packages),
        frozenset(named),
        frozenset(built),
        frozenset(workflows),
        frozenset(paths),
        tuple(f"{folder}/" for folder in written),
        frozenset(map(_folder, of_suites)),
    )


def _folder(path: PurePosixPath) -> str:
    return "" if path.parent.name == "" else path.parent.as_posix()


def _document(path: str, packages: Collection[str]) -> str | None:
    """The name by which files may name a document: its path from `docs` or `.github` on, else the
    last part; None for a file that is no document."""
    parts = path.split("/")
    if parts[0] == _GITHUB:
        return path.lower()
    for index, part in enumerate(parts[:-1]):
        if part == _DOCS and "/".join(parts[:index]) in packages:
            return "/".join(parts[index:]).lower()
    name = parts[-1]
    is_text = PurePosixPath(name).suffix.lower() in _TEXTS
    is_document = (is_text and _DOCUMENT.fullmatch(name)) or _OF_GIT.fullmatch(name)
    return name.lower() if is_document and "/".join(parts[:-1]) in packages else None


def _folder_of_program(path: str, packages: Collection[str]) -> Iterator[str]:
    """The folder of documentation, or the folder in `.github`, in which a program lies: other files
    of the program may be there, too."""
    name = _document(path, packages)
    if name is not None and "/" in name and PurePosixPath(name).suffix not in _TEXTS:
        first, *rest = name.split("/")[:-1]
        yield "/".join([first, *rest[:1]]) if first == _GITHUB else first


def _is_named(name: str, named: Collection[str]) -> bool:
    path = PurePosixPath(name)
    ways = {name, *map(str, path.parents), f"*{path.suffix}", f"{path.name.partition('.')[0]}."}
    return any(way in named for way in ways)


def _named(line: str, file: PurePosixPath) -> Iterator[str]:
    """The documents, and folders and suffixes of documents, that a line of a file names; a URL
    names none."""
    line = _URL.sub("", line)
    for glob in _GLOB.finditer(line) if file.suffix not in _LISTS else ():
        suffixes = (f".{suffix.lower()}" for suffix in re.findall(r"\w+", glob[1]))
        yield from (f"*{suffix}" for suffix in suffixes if suffix in _TEXTS)
    for match in _WORD.finditer(line):
        if not _NAME.search(match[0]):
            continue
        word = match[0].lower().lstrip("@^~#")
        parts = [part for part in re.split(r"[/\\]+", word) if part not in ("", ".", "..")]
        marked = f"{line[: match.start()]}\0{line[match.end() :]}"
        for first in (_DOCS, _GITHUB):
            if first in parts:
                rest = parts[parts.index(first) :]
                if rest[1:] or (first == _DOCS and _is_path(match[0], marked, file)):
                    yield "/".join(rest)
                break
        else:
            name = parts[-1].rstrip(".") if parts and file.suffix not in _LISTS else ""
            if _DOCUMENT.fullmatch(name):  # with a language or format that is computed
                yield f"{name}." if re.match(r"\.[{$%]", line[match.end() - 1 :]) else name


def _is_path(word: str, line: str, file: PurePosixPath) -> bool:
    """Whether a word in a line of a file is the path of a folder and not prose; a null stands for
    the word in the `line`."""
    if file.name in _MANIFESTS or file.suffix in _LISTS:
        return bool(file.name in _MANIFESTS and _VALUE.search(line))
    if _QUOTED.search(line) or "/" in word or "\\" in word or _AFTER_COMMAND.search(line):
        return True
    is_make = file.name.startswith("Makefile") or file.suffix == ".mk"
    if is_make and not line.startswith("\t"):  # a variable, or a target
        return "=" in line and bool(_VALUE.search(line))
    if file.suffix in _SCRIPTS or is_make or file.name.startswith("Dockerfile"):
        return not line.lstrip().startswith("#")
    if file.suffix in _SETTINGS:
        return bool(_VALUE.search(line) or _ITEM.search(line))
    return file.suffix in _TEXTS and bool(_VALUE.search(line))


def uncovered(paths: Iterable[str], covered: Collection[str], known: KnownFiles) -> frozenset[str]:
    """The paths that no suite covers and that are not known."""
    return frozenset(path for path in paths if path not in covered and path not in known)
