"""Reads the tests of a skill: `evals.json` in the shapes of the Agent Skills guide, of
skill-creator and of others in use, and lists of triggers.

What has no meaning here is reported with its position: no test and no criterion is lost."""

import re
from collections.abc import Iterator, Mapping
from pathlib import Path, PurePosixPath
from typing import Any

from agentevals_action.formatting import cut_line, join_choices
from agentevals_action.model.diagnostic import NamedFile
from agentevals_action.model.skill import EVALS, FIXTURE_ROLE, Fixture
from agentevals_action.suites.documents.positions import Document, KeyPositions
from agentevals_action.suites.reading import FileReader, WrittenTest, words
from agentevals_action.system.files.tree_files import files_below
from agentevals_action.validation.field_errors import describe_value

#: The spellings of each field, the guide's first.
_LISTS = ("evals", "cases", "tests", "test_cases", "queries")
_SKILL = ("skill_name", "skill")
_PROMPT = ("prompt", "input", "user_message", "query")
_CRITERIA = (
    *("assertions", "expectations", "expected_behavior", "expect", "checks", "rubric"),
    "assert",
)
_TEXT = ("text", "description", "check")
_READ = {*_PROMPT, *_CRITERIA, "id", "name", "expected_output", "files", "should_trigger"}
#: Fields for readers, which become `metadata`.
_REMARKS = words(
    "category context description difficulty eval_name metadata note notes priority rationale "
    "reason reasoning source tags title type why"
)
#: The types of criteria that a program would check.
_TYPED = words("contains equals exact file_exists not_contains regex script")
_CHARACTERS = 200  # of a prompt that is an id
_ADVICE = "write an object with `evals`, a list of tests"


def read_skill_tests(
    document: Document, reader: FileReader, path: Path, name: str
) -> Iterator[WrittenTest]:
    """The tests of the file at a path, as they would stand in an EVAL.yaml. `name` is the name of
    the skill; if it is empty, the file states the name."""
    data = document.data
    key, listed = _find_list(data)
    if not isinstance(listed, list) or not listed:
        location = reader.positions.value(data, key) if key else document.location
        problem = "this object has no list of tests"
        if key or not isinstance(data, dict):
            problem = f"{f'`{key}`' if key else 'this file'} is {describe_value(listed)}"
        reader.error(location, problem, _ADVICE)
        return
    name = name or find_skill_name(data)
    folder = path.parent.parent if path.parent.name == EVALS else path.parent
    for index, value in enumerate(listed):
        location = reader.positions.value(listed, index)
        errors_before = reader.diagnostics.error_count
        if not isinstance(value, dict):
            problem = f"a test is {describe_value(value)}"
            reader.error(location, problem, "write an object with `id` and `prompt`")
            continue
        test = _Test(value, index, name, folder, reader).written()
        if reader.diagnostics.error_count == errors_before:
            yield test


def find_skill_name(data: Any) -> str:
    """The name of the skill that the content of a file states; empty if it states none."""
    fields = data if isinstance(data, dict) else {}
    return next((fields[key] for key in _SKILL if isinstance(fields.get(key), str)), "")


def has_skill_tests(data: Any) -> bool:
    """Whether the content of a file is tests of a skill, and not of another tool."""
    _, listed = _find_list(data)
    tests = [test for test in listed if isinstance(test, dict)] if isinstance(listed, list) else []
    return bool(find_skill_name(data)) or any(
        isinstance(test.get(key), str) for test in tests for key in _PROMPT
    )


def _find_list(data: Any) -> tuple[str, Any]:
    """The tests in the content of a file, and their key; the content itself without one."""
    key = next((key for key in _LISTS if isinstance(data, dict) and key in data), "")
    return key, data[key] if key else data


class _Test:
    """One test as written in the file of the skill `name`, which lies in `folder` (absolute)."""

    def __init__(
        self, data: dict[str, Any], index: int, name: str, folder: Path, reader: FileReader
    ) -> None:
        self._data, self._index, self._name = data, index, name
        self._folder, self._reader = folder, reader
        self._test: dict[str, Any] = {}
        self._places: dict[str, KeyPositions] = {}

    def written(self) -> WrittenTest:
        """The test with the fields of an EVAL.yaml."""
        data, reader = self._data, self._reader
        self._add_id()
        prompt = self._text(*_PROMPT)
        if not any(data.get(key) for key in _PROMPT):
            self._error("`prompt` is missing", "write the task as a text")
        criteria = [*self._criteria()]
        if criteria:
            key = next(key for key in _CRITERIA if data.get(key))
            place = reader.positions.value(data, key)
            reader.positions.add(criteria, (place.line, place.column), ())
            self._add("rubrics", criteria, key)
        if output := self._text("expected_output"):
            self._add("criteria", output, "expected_output")
        self._add_trigger(is_scored=bool(criteria or output))
        if description := self._text("name"):
            self._add("description", description, "name")
        remarks = {key: value for key, value in data.items() if key in _REMARKS}
        self._test |= {"metadata": remarks} if remarks else {}
        for key in (key for key in data if key not in _READ | _REMARKS):
            problem = f"the field `{key}` of a skill's test has no effect"
            advice = f"write criteria in `{_CRITERIA[0]}`, as a list of texts"
            reader.warn(reader.positions.key(data, key), problem, advice)
        fixtures = tuple(self._fixtures(prompt or ""))
        text = prompt or ""
        unnamed = [fixture.name for fixture in fixtures if not _places_in(text, fixture.name)]
        if unnamed:
            text += f"\n\nInput files: {', '.join(unnamed)}"
        self._add("input", text, next((key for key in _PROMPT if key in data), ""))
        place = reader.positions.of(data)
        reader.positions.add(self._test, (place.line, place.column), self._places)
        return WrittenTest(self._test, place, reader, fixtures, is_literal=True)

    def _add(self, name: str, value: Any, key: str) -> None:
        self._test[name] = value
        if place := self._reader.positions.keys(self._data).get(key):
            self._places[name] = place

    def _error(self, problem: str, advice: str, key: str = "") -> None:
        self._reader.error(self._reader.locate(self._data, key), problem, advice)

    def _text(self, *keys: str) -> str | None:
        """The text of the first of these fields that the test has."""
        key = next((key for key in keys if self._data.get(key) not in (None, "")), None)
        if key is None:
            return None
        value = self._data[key]
        if isinstance(value, str):
            return value
        self._error(f"`{key}` is {describe_value(value)}", "write a text", key)
        return None

    def _add_id(self) -> None:
        data, location = self._data, self._reader.positions.of(self._data)
        key = next((key for key in ("id", "name") if data.get(key) not in (None, "")), "")
        value = data[key] if key else self._index + 1
        if not key and "query" in data and isinstance(data["query"], str):
            value = cut_line(data["query"], _CHARACTERS)
        elif not key:
            problem, advice = "this test has no `id`", f"write `id: {value}`, which is its id now"
            self._reader.warn(location, problem, advice)
        if isinstance(value, str | int | float):
            self._add("id", str(value), key)
        else:
            self._error(f"`{key}` is {describe_value(value)}", "write a number or a text", key)
            self._add("id", str(self._index + 1), key)

    def _criteria(self) -> Iterator[str]:
        for key in _CRITERIA:
            value = self._data.get(key)
            if isinstance(value, str) and value.strip():
                yield value
            elif isinstance(value, list):
                for index, item in enumerate(value):
                    yield from self._criterion(item, value, index)
            elif isinstance(value, dict):
                for name, item in value.items():
                    for text in self._criterion(item, value, name):
                        yield f"{name}: {text}"
            elif value not in (None, ""):
                self._error(f"`{key}` is {describe_value(value)}", "write a list of texts", key)

    def _criterion(self, item: Any, container: Any, step: str | int) -> Iterator[str]:
        location = self._reader.positions.value(container, step)
        text = item
        if isinstance(item, dict):
            text = next((item[key] for key in _TEXT if item.get(key)), None)
            kind = str(item.get("type", "")).lower().replace("-", "_")
            if kind in _TYPED or "pattern" in item or "patterns" in item:
                problem = "a judge reads the text of this criterion, and no program checks it"
                advice = "write `assert` in an EVAL.yaml beside this file, with `tests: evals.json`"
                self._reader.warn(location, problem, advice)
        if isinstance(text, str) and text.strip():
            yield text
            return
        problem = f"this criterion is {describe_value(item)}"
        if isinstance(item, dict):
            problem = "this criterion has no text"
        advice = f"write a text, or an object with {join_choices(list(_TEXT))}"
        self._reader.error(location, problem, advice)

    def _add_trigger(self, *, is_scored: bool) -> None:
        """The evaluator of `should_trigger`, which counts where nothing else scores."""
        data, key = self._data, "should_trigger"
        value = data.get(key)
        if is_scored:
            if key in data:
                problem = f"`{key}` has no effect beside criteria"
                advice = "move it to a list of triggers, `trigger-evals.json`"
                self._reader.warn(self._reader.positions.key(data, key), problem, advice)
        elif key not in data and any(map(data.get, (*_CRITERIA, "expected_output"))):
            return  # it is reported
        elif key not in data:
            advice = "write `assertions`, a list of texts, or `expected_output`, a text"
            self._error("nothing scores this test", advice)
        elif not isinstance(value, bool):
            self._error(f"`{key}` is {describe_value(value)}", "write `true` or `false`", key)
        elif not self._name:
            advice = f"install one skill in `workspace`, or write `{_SKILL[0]}`"
            self._error("it is not known which skill is to be opened", advice, key)
        else:
            entry = {"type": "skill_trigger", "skill": self._name, "call": "any", key: value}
            self._add("assert", [entry], key)

    def _fixtures(self, prompt: str) -> Iterator[Fixture]:
        """The files of the test, each with the paths at which the prompt expects it."""
        files = self._data.get("files") or []
        if not isinstance(files, list):
            self._error(f"`files` is {describe_value(files)}", "write a list of paths", "files")
            return
        for index, item in enumerate(files):
            name = item.get("path") if isinstance(item, Mapping) else item
            if not isinstance(name, str) or not name.strip():
                location = self._reader.positions.value(files, index)
                self._reader.error(location, f"a file is {describe_value(item)}", "write a path")
                continue
            try:
                yield from self._find(name.strip(), prompt)
            except (OSError, ValueError) as error:
                location = self._reader.positions.value(files, index)
                self._reader.error(location, f"the file {name!r} cannot be used: {error}")

    def _find(self, name: str, prompt: str) -> Iterator[Fixture]:
        reader, written = self._reader, PurePosixPath(name)
        if written.is_absolute() or ".." in written.parts:
            yield Fixture(name, None)
            return
        folders = (self._folder, self._folder / EVALS, self._folder / EVALS / "files", reader.root)
        candidates: dict[str, Path] = {}
        for folder in folders:
            try:
                path = reader.resolve(f"/{reader.relative(folder / written)}")
            except ValueError:  # a link that leaves the repository
                continue
            candidates.setdefault(reader.relative(path), path)
        for source, path in candidates.items():
            if path in (self._folder, self._folder / EVALS, reader.root):
                continue  # the tests are in it
            if path.is_dir() and (files := list(files_below(path))):
                for file in files:
                    below = (written / file.relative_to(path)).as_posix()
                    yield Fixture(below, reader.relative(file.resolve()), (below,))
                return
            if path.is_file():
                targets = dict.fromkeys((written.as_posix(), *_places_in(prompt, name)))
                yield Fixture(name, source, tuple(targets), tuple(candidates))
                return
        yield Fixture(name, None, (), tuple(candidates))


def _places_in(prompt: str, name: str) -> list[str]:
    """The relative paths in a prompt with the name of a file."""
    base = PurePosixPath(name).name
    matches = re.findall(rf"(?<![\w./~-])((?:[\w.-]+/)*{re.escape(base)})(?![\w/-])", prompt)
    paths = (PurePosixPath(path) for path in matches)
    return [path.as_posix() for path in paths if not {"..", ".git"} & {*path.parts}]


def named_fixtures(fixtures: tuple[Fixture, ...]) -> Iterator[NamedFile]:
    """The files of fixtures, and the places of those that are missing: a change that adds or
    deletes one affects the suite."""
    for fixture in fixtures:
        for path in [fixture.source] if fixture.source else fixture.candidates:
            yield NamedFile(path, FIXTURE_ROLE)
