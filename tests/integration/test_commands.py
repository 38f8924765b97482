"""What commands say in a repository, after changes of its files. The cases are in
`tests/data/commands`."""

import json
import re
import shlex
from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import pytest
import yaml

from tests.support import command
from tests.support.repositories import Files, Repository

ROOT = Path(__file__).resolve().parents[2]
FOLDER = ROOT / "tests/data/commands"


class Reader(yaml.SafeLoader):
    """Reads cases, in which `!link` is a symbolic link."""


Reader.add_constructor("!link", lambda reader, node: Path(str(node.value)))


@dataclass(frozen=True)
class Step:
    """Files that are committed and written in the working tree, the commands that then run, and
    what is expected of each. `says`, `out`, `err`, `once` and `never` are texts in both or one of
    its streams, `prints` is its whole output, `hidden` is in no file of the report either. `errors`
    are the beginnings of all lines with a position, `ids` those of the tests with results. The rest
    are parts of its document, of the summary, and of the results on head and base by ids. `made` has
    texts in files, parts of YAML files, or null for what is not there."""

    run: str | list[str]
    code: int = 0
    change: Mapping[str, Any] = field(default_factory=dict)
    written: Mapping[str, Any] = field(default_factory=dict)
    folder: str = "."
    env: Mapping[str, str] | None = None
    says: str | list[str] = field(default_factory=list)
    out: str | list[str] = field(default_factory=list)
    err: str | list[str] = field(default_factory=list)
    never: str | list[str] = field(default_factory=list)
    once: str | list[str] = field(default_factory=list)
    hidden: str = ""
    errors: list[str] | None = None
    ids: list[str] | None = None
    prints: str | None = None
    document: Any = None
    summary: Any = None
    rows: Any = None
    base: Any = None
    made: Mapping[str, Any] = field(default_factory=dict)


def cases() -> Iterator[Any]:
    for file in sorted(FOLDER.glob("*.yaml")):
        document = yaml.load(file.read_text("utf-8"), Reader)
        for case in document["cases"]:
            name = case.pop("case")
            files = {**contents(document.get("folder")), **document["files"]}
            files |= edited(files, case.pop("files", {}))
            usual = {"run": document["run"]} if "run" in document else {}
            several = case.pop("steps", [])
            assert not several or not case, f"{name}: {[*case]} belong to a step"
            steps = [Step(**{**usual, **step}) for step in several or [case]]
            yield pytest.param(files, steps, id=f"{file.stem}: {name}")


def contents(folder: str | None) -> dict[str, str]:
    """The texts of all files in a folder of this repository."""
    if folder is None:
        return {}
    root = ROOT / folder
    files = (path for path in root.rglob("*") if path.is_file() and path.suffix != ".pyc")
    return {path.relative_to(root).as_posix(): path.read_text("utf-8") for path in files}


def edited(files: Mapping[str, Any], changes: Mapping[str, Any]) -> dict[str, Any]:
    """The contents after changes; a mapping replaces parts of a file's text."""
    made = dict(changes)
    for path, change in changes.items():
        if isinstance(change, Mapping):
            made[path] = files[path]
            for old, new in change.items():
                assert old in made[path], (path, old)
                made[path] = made[path].replace(old, new)
    return made


def is_part(expected: Any, found: Any) -> bool:
    """Whether data have all that a case expects; lists have the same length."""
    if isinstance(expected, Mapping):
        return isinstance(found, Mapping) and all(
            key in found and is_part(value, found[key]) for key, value in expected.items()
        )
    if isinstance(expected, list):
        return len(expected) == len(found) and all(map(is_part, expected, found))
    return bool(expected == found)


def texts(expected: str | list[str]) -> list[str]:
    return [expected] if isinstance(expected, str) else expected


def check(step: Step, done: command.Done, root: Path) -> None:
    shown, report = done.out + done.err, root / "agentevals-report"
    assert done.code == step.code, shown
    for expected, text in ((step.says, shown), (step.out, done.out), (step.err, done.err)):
        assert [each for each in texts(expected) if each not in text] == [], shown
    assert [each for each in texts(step.never) if each in shown] == [], shown
    assert [shown.count(each) for each in texts(step.once)] == [1] * len(texts(step.once)), shown
    assert step.prints in (None, done.out), shown
    if step.errors is not None:
        found = re.findall(r"^\S+?:\d+:\d+: .*", shown, re.MULTILINE)
        assert len(found) == len(step.errors), shown
        assert all(map(str.startswith, found, step.errors)), shown
    if step.ids is not None:
        assert sorted(rows(report / "results.jsonl")) == step.ids
    if step.hidden:
        written = [file.read_text("utf-8") for file in report.iterdir()]
        assert [text for text in (shown, *written) if step.hidden in text] == []
    documents: dict[str, Callable[[], Any]] = {
        "document": lambda: next(yaml.safe_load_all(done.out)),
        "summary": lambda: json.loads((report / "summary.json").read_text("utf-8")),
        "rows": lambda: rows(report / "results.jsonl"),
        "base": lambda: rows(report / "base.jsonl"),
    }
    for name, read in documents.items():
        if (part := getattr(step, name)) is not None:
            assert is_part(part, read()), (name, read())
    for path, part in step.made.items():
        if part is None:
            assert not (root / path).exists(), path
        elif isinstance(part, Mapping):
            assert is_part(part, yaml.safe_load((root / path).read_text("utf-8"))), path
        else:
            text = (root / path).read_text("utf-8")
            assert [each for each in texts(part) if each not in text] == [], text


def rows(path: Path) -> dict[str, Any]:
    """Results by the ids of tests."""
    lines = path.read_text("utf-8").splitlines()
    return {row["evalId"]: row for row in map(json.loads, lines)}


@pytest.mark.parametrize(("files", "steps"), [*cases()])
def test_command__says_what_is_expected(tmp_path: Path, files: Files, steps: list[Step]) -> None:
    first = {path: text for path, text in files.items() if text is not None}
    made = Repository.create(tmp_path / "repository", first)
    made.git("checkout", "--quiet", "-b", "change")
    for step in steps:
        for changes in (step.change, step.written):
            changed = edited(files, changes)
            files = {**files, **changed}
            made.write(changed)
            if changes is step.change and changes:
                made.commit("change")
        for words in texts(step.run):
            done = command.run(made.path / step.folder, *shlex.split(words), env=step.env)
            check(step, done, made.path)
