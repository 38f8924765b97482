"""promptfoo: the file that `promptfoo eval --output` writes.

**Ids** are computed from one run alone, and are the same on head and base unless the question is
another one. A test is its description (promptfoo's own `Row #1` is none), with a digest of its
variables where several tests have that description; a test without one is the beginning of its
first variable, and the digest. What `defaultTest` gives to all tests does not count. Where a suite
has several prompts or providers, their names follow in brackets: of a prompt the configured label,
or its file, or `prompt 1`, `prompt 2` for texts without a name; of a provider the label, or
`provider 1`. The numbers count those without a name in the order of the configuration, because the
text or the model that a change edits must keep its id: it is what is tested.

**Running again**: `--filter-failing` matches tests by their variables alone, and drops all but the
first with the same ones: then all tests run. Of a result that matches none, as one value of a list
of variables, it makes a test from the result, which has no threshold of its own.
"""

import csv
import io
import json
import re
from collections import defaultdict
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from pydantic import AliasPath, Field

from agentevals_action.formatting import cut_line
from agentevals_action.model.diagnostic import Location
from agentevals_action.model.result import Record
from agentevals_action.model.suite import Suite
from agentevals_action.model.usage import Usage
from agentevals_action.runners.formats.base import (
    MAX_BYTES,
    Check,
    Format,
    ResultsError,
    Row,
    Selection,
    read_file,
)
from agentevals_action.suites.diagnostics import Unreadable
from agentevals_action.suites.yaml_reader import read_settings_file
from agentevals_action.system.files.paths import Folder
from agentevals_action.system.files.regular_files import read_regular
from agentevals_action.targets.calls.description import FileDigests, digest

_FILE = "results.json"
_VERSION = 3
_ERROR = 2  # the `failureReason` of a result without a score
#: Variables that promptfoo adds to those of a test.
_ADDED = re.compile(r"_|sessionId$")
_ROW_NUMBER = re.compile(r"Row #\d+")
_NAMED_FILE = re.compile(r"file://(.+?)(:\w+)?")
#: What precedes the text in the label of a prompt without a name.
_NO_NAME = re.compile(r"(Prompt \d+ - )?")
_COLON = re.compile(": ")
_MAX_NAME = 4096  # characters of a prompt's name
#: An escape in JSON; group 1 is half of a surrogate pair, as of an answer that was cut.
_ESCAPE = re.compile(rb"\\(?:u[dD][89abAB]..\\u[dD][c-fC-F]..|u([dD][89a-fA-F]..)|.)", re.DOTALL)
#: Fields of a test that decide how an answer is scored.
_GRADING = ("assert", "threshold", "assertScoringFunction", "options")
#: What decides a verdict and is not in a test that is made of a result.
_NOT_MADE = ("threshold", "assertScoringFunction", "provider")
_LONGEST = 200  # characters of a description in an id
_SHOWN = 40  # characters of a variable in an id, and of an assertion's value in its name


def _inside(*path: str) -> Any:
    """A field of an object in the data; None where there is none."""
    return Field(default=None, validation_alias=AliasPath(*path))


class _Component(Record):
    passed: bool = Field(validation_alias="pass")
    score: float | None = None
    reason: str | None = None
    type: str | None = _inside("assertion", "type")
    metric: str | None = _inside("assertion", "metric")
    value: Any = _inside("assertion", "value")
    grader_error: Any = _inside("metadata", "graderError")
    component_results: list[Any] | None = None

    @property
    def name(self) -> str:
        """What it asserts, for readers."""
        value = cut_line(self.value, _SHOWN) if isinstance(self.value, str) else ""
        return self.metric or ": ".join(filter(None, (self.type or "assert-set", value)))


class _Result(Record):
    test_idx: int
    prompt_idx: int = Field(ge=0)
    success: bool
    failure_reason: int
    score: float | None = None
    error: str | None = None
    latency_ms: float | None = None
    vars: dict[str, Any]
    test_case: dict[str, Any]
    provider_id: str | None = _inside("provider", "id")
    provider_label: str | None = _inside("provider", "label")
    rendered: str | None = _inside("prompt", "raw")
    answer: Any = _inside("response", "output")
    reply_cost: float | None = _inside("response", "cost")
    prompt_tokens: float | None = _inside("response", "tokenUsage", "prompt")
    completion_tokens: float | None = _inside("response", "tokenUsage", "completion")
    reason: str | None = _inside("gradingResult", "reason")
    components: list[_Component] | None = _inside("gradingResult", "componentResults")

    @property
    def outage(self) -> str:
        """The error of the provider, or that of a judge if nothing else failed; or empty."""
        if self.failure_reason == _ERROR:
            reason = (self.error or "").partition("\n    at ")[0].strip()
            return reason or "promptfoo gives no reason"
        failed = [part for part in self.components or () if not part.passed]
        single = [part for part in failed if part.component_results is None]
        if self.success or not single or any(part.grader_error is not True for part in single):
            return ""
        return f"{single[0].name}: {single[0].reason or 'the judge gave no verdict'}"

    @property
    def usage(self) -> Usage:
        """Of the reply. promptfoo writes 0 for tokens that a provider does not count."""
        is_known = bool(self.prompt_tokens or self.completion_tokens)
        return Usage(
            input_tokens=int(self.prompt_tokens or 0) if is_known else None,
            output_tokens=int(self.completion_tokens or 0) if is_known else None,
            cost_usd=self.reply_cost,
        )

    def position(self) -> tuple[int, int]:
        """Its place in the run; the file has the order of completion."""
        return self.test_idx, self.prompt_idx


class _Column(Record):
    """A provider with a prompt. The `label` of a prompt contains its text, `raw`."""

    provider: str
    label: str
    raw: str


class _Document(Record):
    columns: list[_Column] = Field(validation_alias=AliasPath("results", "prompts"))
    rows: list[_Result] = Field(validation_alias=AliasPath("results", "results"))
    default: Any = _inside("config", "defaultTest")


class _Versioned(Record):
    version: Any = _inside("results", "version")


@dataclass(frozen=True)
class _Test:
    """The test of a result. `description` is the configured one; `variables` are those of
    `defaultTest`, too, and `own` the others. `failure` is the result that selects it, None if
    that cannot, because others have its variables."""

    description: str | None
    variables: Mapping[str, Any]
    own: Mapping[str, Any]
    failure: Mapping[str, Any] | None

    @property
    def name(self) -> str:
        """The id, if no other test has the same."""
        if self.description:
            return cut_line(self.description, _LONGEST)
        return cut_line(_text(next(iter(self.own.values()), "test")), _SHOWN)

    @property
    def key(self) -> str:
        """The same for all its samples, of which no other test has some."""
        return _digest([self.description, self.own])


class PromptfooResults(Format):
    """The results of `promptfoo eval`."""

    name = "promptfoo"
    version = f"promptfoo 0.123 (results version {_VERSION})"
    program = "promptfoo"
    command = (
        *("eval", "--config", "{SUITE}", "--output", f"{{RESULTS}}/{_FILE}"),
        *("--repeat", "{SAMPLES}", "--no-cache", "--no-write", "--no-share"),
        *("--no-table", "--no-progress-bar"),
    )
    again = (*command, "--filter-failing", "{SELECTION}")
    variables = {  # noqa: RUF012  # a constant of the base class
        "PROMPTFOO_CONFIG_DIR": "{STATE}",
        "PROMPTFOO_DISABLE_TELEMETRY": "1",
        "PROMPTFOO_DISABLE_UPDATE": "1",
    }
    exit_codes = frozenset({0, 1, 100})

    def read(self, folder: Path, suite: Suite) -> Sequence[Row]:
        """The rows in the order of the configuration."""
        content = read_file(folder, _FILE)
        if b"\\ud" in content:
            content = _ESCAPE.sub(lambda escape: rb"\ufffd" if escape[1] else escape[0], content)
        if _Versioned.model_validate_json(content).version != _VERSION:
            raise ResultsError(f"its {_FILE} is not one of {self.version}")
        document = _Document.model_validate_json(content)
        results = sorted(document.rows, key=_Result.position)
        columns = _columns(document.columns, results)
        if any(result.prompt_idx >= len(columns) for result in results):
            raise ResultsError(f"its {_FILE} lacks the prompt of a result")
        texts = _Texts(suite)
        tests = _tests(results, _object(document.default), texts)
        keys: defaultdict[str, set[str]] = defaultdict(set)
        for test in tests:
            keys[test.name].add(test.key)
        places = _places(suite)
        rows = []
        for result, test in zip(results, tests, strict=True):
            is_named = len(keys[test.name]) == 1 and (test.description or not test.own)
            name = test.name if is_named else f"{test.name} ({_digest(test.own)[:8]})"
            column = columns[result.prompt_idx]
            place = places.get(test.description or _place_key(test.own))
            rows.append(_row(result, test, name + column, test.key + column, place, texts))
        return rows

    def select(self, rows: Sequence[Row], suite: Suite) -> Sequence[Selection]:
        """One start with all tests of the rows, each with all prompts and providers."""
        failures = [row.source for row in rows]
        if None in failures:
            return ()
        return (Selection(json.dumps({"results": {"results": failures}})),)


class _Texts:
    """Changes texts so that they are the same in every checkout."""

    def __init__(self, suite: Suite) -> None:
        self._root = f"{suite.root}/"
        self._folder = Folder(suite.root, suite.folder)
        self._files = FileDigests()

    def relative(self, text: str) -> str:
        """With paths from the root of the checkout."""
        return text.replace(f"file://{self._root}", "file:///").replace(self._root, "")

    def content(self, text: str) -> Any:
        """The digest of the file that the text names, with the function in it; or the text."""
        text = self.relative(text)
        if named := _NAMED_FILE.fullmatch(text):
            try:
                return [self._files.first(self._folder.file(named[1])), named[2]]
            except ValueError:  # a pattern, or a file outside of the checkout
                pass
        return text


def _changed(value: Any, change: Callable[[str], Any]) -> Any:
    """JSON data with all its texts changed."""
    if isinstance(value, str):
        return change(value)
    if isinstance(value, list):
        return [_changed(item, change) for item in value]
    if isinstance(value, dict):
        return {name: _changed(item, change) for name, item in value.items()}
    return value


def _object(value: Any) -> Mapping[str, Any]:
    return value if isinstance(value, dict) else {}


def _columns(columns: Sequence[_Column], results: Sequence[_Result]) -> Sequence[str]:
    """The end of an id for each column: the prompt and the provider, where there are several."""
    labels = {result.prompt_idx: result.provider_label for result in results}
    prompts: dict[tuple[str, str], int] = {}
    providers: list[str] = []
    places: list[tuple[int, int]] = []
    of_provider: set[tuple[str, str]] = set()
    for index, column in enumerate(columns):
        prompt = (column.label, column.raw)
        # The providers come one after the other, each with its prompts; names may be equal.
        if prompt in of_provider or not index or column.provider != columns[index - 1].provider:
            of_provider = set()
            providers.append("")
        of_provider.add(prompt)
        providers[-1] = labels.get(index) or providers[-1]
        places.append((prompts.setdefault(prompt, len(prompts)), len(providers) - 1))
    names = (
        _numbered([_prompt_name(*prompt) for prompt in prompts], "prompt"),
        _numbered(providers, "provider"),
    )
    ends = []
    for place in places:
        parts = [each[index] for each, index in zip(names, place, strict=True) if len(each) > 1]
        ends.append(f" [{', '.join(parts)}]" if parts else "")
    return ends


def _prompt_name(label: str, text: str) -> str:
    """The configured label of a prompt, or its file; promptfoo appends the text, or its beginning.
    Empty for a text without a name."""
    if label.endswith(text) and _NO_NAME.fullmatch(label.removesuffix(text)):
        return ""
    for colon in _COLON.finditer(label, 0, _MAX_NAME):
        if text.startswith(label[colon.end() : colon.end() + _SHOWN].rstrip(".")):
            name = label[: colon.start()]
            # The label of a text file precedes its path.
            return name.partition(": ")[0] if name.endswith(".txt") else name
    return label


def _numbered(names: Sequence[str], noun: str) -> Sequence[str]:
    """Distinct names: equal ones, and those that are empty, get numbers."""
    made: dict[str, None] = {}
    for name in names:
        number, candidate = 1, name or f"{noun} 1"
        while candidate in made:
            number += 1
            candidate = f"{name or noun} {number}"
        made[candidate] = None
    return list(made)


def _tests(
    results: Sequence[_Result], default: Mapping[str, Any], texts: _Texts
) -> Sequence[_Test]:
    """The test of each result; `default` is the configured `defaultTest`."""
    common = _object(default.get("vars"))
    # promptfoo adds variables while it runs.
    variables = [
        {name: value for name, value in result.vars.items() if not _ADDED.match(name)}
        for result in results
    ]
    alike: defaultdict[str, set[str]] = defaultdict(set)
    for result, values in zip(results, variables, strict=True):
        alike[_digest(values)].add(_digest(result.test_case))
    found = []
    for result, values in zip(results, variables, strict=True):
        own = {name: value for name, value in values.items() if value != common.get(name)}
        description = result.test_case.get("description")
        if not isinstance(description, str) or _ROW_NUMBER.fullmatch(description):
            description = None
        is_alone = len(alike[_digest(values)]) == 1
        failure = _failure(result, values, default) if is_alone else None
        found.append(_Test(description, values, _changed(own, texts.relative), failure))
    return found


def _failure(
    result: _Result, variables: Mapping[str, Any], default: Mapping[str, Any]
) -> Mapping[str, Any]:
    """The result that makes `--filter-failing` run a test again."""
    found = {"success": False, "vars": variables, "provider": {"id": result.provider_id or ""}}
    test = result.test_case
    if any(test.get(name) not in (None, default.get(name)) for name in _NOT_MADE):
        return found
    # The assertions of a result contain the default ones already.
    options = {**_object(test.get("options")), "disableDefaultAsserts": True}
    return {**found, "testCase": {**test, "options": options}}


def _places(suite: Suite) -> Mapping[str, Location]:
    """Where tests stand in the configuration and in the YAML and CSV files that it names, by their
    descriptions, or by their variables where they have none."""
    found: dict[str, Location] = {}
    for file in suite.files:
        if file.role not in ("suite", "named file"):
            continue
        try:
            for description, variables, line in _written(suite.root, file.path):
                found.setdefault(description or _place_key(variables), Location(file.path, line))
        except (OSError, Unreadable, ValueError, csv.Error):
            continue  # promptfoo reads more than we do
    return found


def _written(root: Path, path: str) -> Iterator[tuple[str, Mapping[str, Any], int]]:
    """The description, the variables and the line of each test in a file."""
    if path.endswith(".csv"):
        content = read_regular(root / path, MAX_BYTES).decode("utf-8-sig", "replace")
        rows = csv.reader(io.StringIO(content, newline=""))
        names, line = [name.strip() for name in next(rows, [])], rows.line_num + 1
        for row in rows:
            cells = dict(zip(names, row, strict=False))
            own = {name: cell for name, cell in cells.items() if not name.startswith("__")}
            yield cells.get("__description", ""), own, line
            line = rows.line_num + 1
    elif path.endswith((".yaml", ".yml", ".json")):
        document = read_settings_file(root / path, root, path)
        data = _object(document.data)
        scenarios = data.get("scenarios")
        parts = [data, *(scenarios if isinstance(scenarios, list) else ())]
        for tests in (document.data, *(_object(part).get("tests") for part in parts)):
            for index, item in enumerate(tests if isinstance(tests, list) else ()):
                test = _object(item)
                line = document.positions.value(tests, index).line
                yield _text(test.get("description")), _object(test.get("vars")), line


def _place_key(variables: Mapping[str, Any]) -> str:
    """The variables as texts: a cell of a CSV file has no other type."""
    return _digest({name: _text(each).strip() for name, each in variables.items()})


def _digest(data: Any) -> str:
    return digest(data, is_ordered=False)


def _row(
    result: _Result, test: _Test, name: str, key: str, place: Location | None, texts: _Texts
) -> Row:
    error = result.outage
    is_scored = bool(result.components or result.test_case.get("assert"))
    grading = {name: result.test_case.get(name) for name in _GRADING}
    values = [f"{name}: {texts.relative(_text(each))}" for name, each in test.variables.items()]
    return Row(
        id=name,
        passed=result.success and not result.failure_reason,
        error=error,
        skipped="" if error or is_scored else "it has no assertions",
        question="\n".join(values) or result.rendered or "",
        answer=_text(result.answer),
        target=texts.relative(result.provider_label or result.provider_id or ""),
        asked=_changed(test.variables, texts.content),
        graded=_changed(grading, texts.content),
        checks=tuple(_checks(result.components or ())),
        score=result.score,
        reason=result.reason or "",
        usage=result.usage,
        duration_ms=None if result.failure_reason == _ERROR else result.latency_ms,
        location=place,
        source=test.failure,
        key=key,
    )


def _checks(components: Sequence[_Component]) -> Iterator[Check]:
    """Each assertion once: those of a set follow it, and are also inside of it."""
    inside = 0
    for component in components:
        name = f"in a set: {component.name}" if inside else component.name
        yield Check(name, component.passed, component.score, component.reason or "")
        inside = max(inside - 1, len(component.component_results or ()))


def _text(value: Any) -> str:
    """A text as it is, other data as JSON, nothing for null."""
    if value is None or isinstance(value, str):
        return value or ""
    return json.dumps(value, ensure_ascii=False)
