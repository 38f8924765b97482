"""Files that no suite covers and that are known to be no part of an agent: documentation, the files
of GitHub, and what the action itself reads and writes. Whatever else changes may be the agent's."""

import re
from collections.abc import Collection, Iterable, Iterator
from dataclasses import dataclass
from pathlib import PurePosixPath

from agentevals_action.model.quarantine import FILE
from agentevals_action.settings import Settings
from agentevals_action.system.git import GitRepository

#: Documentation at the root or beside the manifest of a package: names, and a folder.
_DOCUMENT = re.compile(r"(readme|changelog|licen[cs]e)([._-][\w.-]*)?", re.IGNORECASE)
_OF_GIT = re.compile(r"codeowners|\.gitignore|(issue|pull_request)_template(\.\w+)?", re.IGNORECASE)
_TEXTS = frozenset({"", ".adoc", ".html", ".md", ".mdx", ".rst", ".txt"})
_DOCS = "docs"
_MANIFESTS = frozenset(
    {"pyproject.toml", "setup.py", "setup.cfg", "package.json", "go.mod", "Cargo.toml", "pom.xml"}
    | {"build.gradle", "build.gradle.kts", "composer.json", "Gemfile", "mix.exs", "deno.json"}
)
#: Files that name documentation for a program that is no agent.
_NO_AGENTS = _MANIFESTS | {FILE, "mkdocs.yml", "MANIFEST.in", ".gitignore", ".dockerignore"}
_GITHUB = ".github/"
#: Files in that folder that coding agents read.
_OF_AGENTS = re.compile(
    r"\.github/(copilot-instructions\.md|(agents|chatmodes|hooks|instructions|prompts|skills)/.*)",
    re.DOTALL,
)
#: The name of the action in a workflow.
_ACTION = "agentevals"
#: The lines that may name documentation, the files in which no agent does, and a word of a line.
_NAMING = f"{_DOCS}|readme|changelog|licen[cs]e"
_DATA = ("*.csv", "*.jsonl", "*.lock", "*.map", "*.min.js", "*.svg", "*.tsv", f"{_GITHUB}**")
_WORD = re.compile(r"""(["'`]|[:=-] *)?([^\s:"'`()<>,;|*?{}$&=\[\]]+)(?=(["'`]| *(?:$|\#))?)""")


@dataclass(frozen=True)
class KnownFiles:
    """The known files of a tree; `path in known` asks for one, by its path from the root.

    `packages` are the folders with a manifest, and the root. `named` are documents and folders of
    documentation (lower case, from `docs/` on) that other files name: an agent may read these.
    `workflows` are the files of GitHub that name the action. `paths` and `folders` are the action's
    own files."""

    packages: frozenset[str] = frozenset({""})
    named: frozenset[str] = frozenset()
    workflows: frozenset[str] = frozenset()
    paths: frozenset[str] = frozenset({FILE})
    folders: tuple[str, ...] = ()

    def __contains__(self, path: str) -> bool:
        if path in self.paths or path.startswith(self.folders):
            return True
        if path.startswith(_GITHUB):
            return path not in self.workflows and not _OF_AGENTS.fullmatch(path)
        name = _document(path, self.packages)
        return name is not None and not any(
            name == each or (each.startswith(f"{_DOCS}/") and name.startswith(each))
            for each in self.named
        )


async def read_known_files(
    repository: GitRepository, tracked: Collection[str], settings: Settings, workflow: str
) -> KnownFiles:
    """The known files of a tree with these `tracked` files; `workflow` is the path of the one that
    runs, empty outside of GitHub."""
    manifests = (PurePosixPath(path) for path in tracked)
    packages = {"", *(_folder(path) for path in manifests if path.name in _MANIFESTS)}
    lines = await repository.search(_NAMING, [".", *(f":(exclude){glob}" for glob in _DATA)])
    naming = (
        line
        for path, found in lines.items()
        if PurePosixPath(path).name not in _NO_AGENTS and _document(path, packages) is None
        for line in found
    )
    workflows = await repository.search(_ACTION, [f"{_GITHUB}workflows", f"{_GITHUB}actions"])
    own = {FILE, *filter(None, [settings.baseline_file])}
    folders = {settings.report_dir, *filter(None, [settings.cache_dir])}
    return KnownFiles(
        frozenset(packages),
        frozenset(name for line in naming for name in _named(line)),
        frozenset({*workflows, workflow}),
        frozenset(own),
        tuple(f"{folder}/" for folder in folders),
    )


def _folder(path: PurePosixPath) -> str:
    return "" if path.parent.name == "" else path.parent.as_posix()


def _document(path: str, packages: Collection[str]) -> str | None:
    """The name of a document by which files may name it: from `docs/` on, else the last part; None
    for any other file."""
    parts = path.split("/")
    for index, part in enumerate(parts[:-1]):
        if part == _DOCS and "/".join(parts[:index]) in packages:
            return "/".join(parts[index:]).lower()
    name = parts[-1]
    is_text = PurePosixPath(name).suffix.lower() in _TEXTS
    is_document = (is_text and _DOCUMENT.fullmatch(name)) or _OF_GIT.fullmatch(name)
    return name.lower() if is_document and "/".join(parts[:-1]) in packages else None


def _named(line: str) -> Iterator[str]:
    """The documents and folders of documentation that a line names; a URL names none."""
    for found in _WORD.finditer(line):
        before, word, after = found.groups()
        parts = [part.lower() for part in re.split(r"[/\\]", word)]
        if before == ":" and word.startswith("//"):
            continue
        if _DOCS in parts:
            rest = parts[parts.index(_DOCS) :]
            # The word alone is prose, unless it is quoted or the value of a key.
            if len(parts) > 1 or (before and after is not None):
                yield "/".join(rest) if rest[1:] else f"{_DOCS}/"
        elif _DOCUMENT.fullmatch(parts[-1]):
            yield parts[-1]


def uncovered(paths: Iterable[str], covered: Collection[str], known: KnownFiles) -> frozenset[str]:
    """The paths that no suite covers and that are not known."""
    return frozenset(path for path in paths if path not in covered and path not in known)
