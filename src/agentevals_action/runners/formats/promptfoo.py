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
first with the same ones: then all tests run, as where a test gets the answers of those before it.
Of a result that matches none, as one value of a list of variables, it makes a test from the result,
which has no threshold of its own.
"""

import csv
import io
import json
import re
from collections import Counter, defaultdict
from collections.abc import Iterator, Mapping, Sequence
from contextlib import suppress
from dataclasses import dataclass, replace
from functools import cached_property
from pathlib import Path
from typing import Any, Literal

from pydantic import AliasPath, Field
from pydantic_core import from_json

from agentevals_action.execution.suite_description import compute_digest
from agentevals_action.formatting import cut_line
from agentevals_action.model.diagnostic import Location
from agentevals_action.model.result import Record
from agentevals_action.model.suite import Suite
from agentevals_action.model.trace import Usage
from agentevals_action.runners.formats.base import (
    Amount,
    Check,
    Count,
    Format,
    ResultsError,
    Row,
    Selection,
    get_content,
    inside,
    objects_in,
    read_file,
)
from agentevals_action.system.files.paths import Folder
from agentevals_action.targets.calls.description import FileDigests
from agentevals_action.validation.json_values import as_object

_FILE = "results.json"
_ERROR = 2  # the `failureReason` of a result without a score
#: Variables that promptfoo adds to those of a test while it runs.
_ADDED = re.compile(r"_|sessionId$")
_ROW_NUMBER = re.compile(r"Row #\d+")
_NAMED_FILE = re.compile(r"file://(.+?)(:\w+)?")
#: Fields of a test that decide how an answer is scored.
_GRADING = ("assert", "threshold", "assertScoringFunction", "options")
#: What decides a verdict and is not in a test that is made of a result.
_NOT_MADE = ("threshold", "assertScoringFunction", "provider")
#: What gives a test the answers of the tests before it.
_LINKS = (b"storeOutputAs", b"_conversation")
_LONGEST = 200  # characters of a description in an id
_SHOWN = 40  # characters of a variable in an id, and of an assertion's value in its name


class _Component(Record):
    passed: bool = Field(validation_alias="pass")
    score: float | None = None
    reason: str | None = None
    type: str | None = inside("assertion", "type")
    metric: str | None = inside("assertion", "metric")
    value: Any = inside("assertion", "value")
    grader_error: Any = inside("metadata", "graderError")
    component_results: list[Any] | None = None

    @property
    def check(self) -> Check:
        """This assertion as a check."""
        value = cut_line(self.value, _SHOWN) if isinstance(self.value, str) else ""
        name = self.metric or ": ".join(filter(None, (self.type or "assertion", value)))
        return Check(name, self.passed, self.score, self.reason or "")


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
    provider_id: str | None = inside("provider", "id")
    provider_label: str | None = inside("provider", "label")
    rendered: str | None = inside("prompt", "raw")
    answer: Any = inside("response", "output")
    reply_cost: Amount | None = inside("response", "cost")
    prompt_tokens: Count | None = inside("response", "tokenUsage", "prompt")
    completion_tokens: Count | None = inside("response", "tokenUsage", "completion")
    reason: str | None = inside("gradingResult", "reason")
    components: list[_Component] | None = inside("gradingResult", "componentResults")

    @property
    def single(self) -> Sequence[_Component]:
        """The assertions that are no sets: those inside a set also follow it in the list."""
        return [part for part in self.components or () if not part.component_results]

    @property
    def outage(self) -> str:
        """The error of the provider, or that of a judge if nothing else failed; or empty."""
        if self.failure_reason == _ERROR:
            reason = (self.error or "").partition("\n    at ")[0].strip()
            return reason or "promptfoo gives no reason"
        failed = [part for part in self.single if not part.passed]
        if self.success or not failed or any(part.grader_error is not True for part in failed):
            return ""
        return f"{failed[0].check.name}: {failed[0].reason or 'the judge gave no verdict'}"

    @property
    def usage(self) -> Usage:
        """The usage of the reply. promptfoo writes 0 for tokens that a provider does not count."""
        tokens = self.prompt_tokens or None, self.completion_tokens or None
        return Usage(*tokens, cost_usd=self.reply_cost)


class _Column(Record):
    """A provider with a prompt. The `label` of a prompt contains its text, `raw`."""

    provider: str
    label: str
    raw: str


class _Document(Record):
    version: Literal[3] = Field(validation_alias=AliasPath("results", "version"))
    columns: list[_Column] = Field(validation_alias=AliasPath("results", "prompts"))
    rows: list[_Result] = Field(validation_alias=AliasPath("results", "results"))
    default: Any = inside("config", "defaultTest")


@dataclass(frozen=True)
class _Test:
    """A result as a sample of a test. `written` is that result with the paths of the checkout,
    `default` the configured `defaultTest`."""

    result: _Result
    written: Mapping[str, Any]
    default: Mapping[str, Any]

    @property
    def description(self) -> str:
        """The configured description, or empty."""
        text = self.result.test_case.get("description")
        return text if isinstance(text, str) and not _ROW_NUMBER.fullmatch(text) else ""

    @cached_property
    def variables(self) -> Mapping[str, Any]:
        """The configured variables."""
        return _configured(self.result.vars)

    @cached_property
    def own(self) -> Mapping[str, Any]:
        """The variables that `defaultTest` does not give to all tests."""
        common = as_object(self.default.get("vars"))
        items = self.variables.items()
        return {name: value for name, value in items if value != common.get(name)}

    @property
    def name(self) -> str:
        """The id, if no other test has the same."""
        if self.description:
            return cut_line(self.description, _LONGEST)
        return cut_line(_text(next(iter(self.own.values()), "test")), _SHOWN)

    @cached_property
    def key(self) -> str:
        """The key of all its samples, which no sample of another test has."""
        return compute_digest([self.description, self.own])

    def failure(self) -> Mapping[str, Any]:
        """The result that makes `--filter-failing` run the test again."""
        variables, provider = _configured(self.written["vars"]), self.written.get("provider")
        failed = {"success": False, "vars": variables, "provider": provider or {}}
        test, written = self.result.test_case, self.written["testCase"]
        if any(test.get(name) not in (None, self.default.get(name)) for name in _NOT_MADE):
            return failed
        # The assertions of a result contain the default ones already.
        options = {**as_object(written.get("options")), "disableDefaultAsserts": True}
        return {**failed, "testCase": {**written, "options": options}}


class PromptfooResults(Format):
    """The results of `promptfoo eval`."""

    name = "promptfoo"
    version = "promptfoo 0.123 (results version 3)"
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
    #: With a relative path it looks for globs of prompts in `evals/evals`.
    is_absolute = True
    exit_codes = frozenset({0, 1, 100})
    failed_codes = frozenset({100})

    def read(self, folder: Path, suite: Suite) -> Sequence[Row]:
        """The rows in the order of the configuration."""
        content, root = read_file(folder, _FILE), f"{suite.root}/".encode()
        # The same on both sides: paths from the root of the checkout.
        relative = content.replace(b"file://" + root, b"file:///").replace(root, b"")
        document = _Document.model_validate_json(relative)
        written, default = from_json(content)["results"]["results"], as_object(document.default)
        pairs = zip(document.rows, written, strict=True)  # in the order of completion
        tests = [_Test(*pair, default) for pair in pairs]
        tests.sort(key=lambda test: (test.result.test_idx, test.result.prompt_idx))
        ends = _ends(document.columns, document.rows)
        if any(result.prompt_idx >= len(ends) for result in document.rows):
            raise ResultsError(f"its {_FILE} lacks the prompt of a result")
        keys, alike = defaultdict[str, set[str]](set), defaultdict[str, set[str]](set)
        for test in tests:
            keys[test.name].add(test.key)
            alike[compute_digest(test.variables)].add(compute_digest(test.result.test_case))
        places, files, rows = _places(suite), _Files(suite), []
        is_linked = any(link in content for link in _LINKS)
        for test in tests:
            is_named = len(keys[test.name]) == 1 and (test.description or not test.own)
            name = test.name if is_named else f"{test.name} ({compute_digest(test.own)[:8]})"
            end = ends[test.result.prompt_idx]
            is_alone = len(alike[compute_digest(test.variables)]) == 1
            row = replace(
                _row(test, files),
                id=name + end,
                key=test.key + end,
                location=places.get(test.description or _place_key(test.own)),
                source=test.failure() if is_alone and not is_linked else None,
            )
            rows.append(row)
        return rows

    def select(self, rows: Sequence[Row], suite: Suite) -> Sequence[Selection]:
        """One start with all tests of the rows, each with all prompts and providers."""
        failures = [row.source for row in rows]
        if None in failures:
            return ()
        return (Selection(json.dumps({"results": {"results": failures}})),)


class _Files:
    """The files that data name, in a checkout."""

    def __init__(self, suite: Suite) -> None:
        self._folder, self._digests = Folder(suite.root, suite.folder), FileDigests()

    def described(self, value: Any) -> Any:
        """JSON data with the digest of a file, and the function in it, in place of its name."""
        if isinstance(value, list):
            return [self.described(item) for item in value]
        if isinstance(value, dict):
            return {name: self.described(item) for name, item in value.items()}
        if isinstance(value, str) and (named := _NAMED_FILE.fullmatch(value)):
            try:
                return [self._digests.first(self._folder.file(named[1])), named[2]]
            except ValueError:  # a pattern, or a file outside of the checkout
                pass
        return value


def _configured(variables: Mapping[str, Any]) -> Mapping[str, Any]:
    return {name: value for name, value in variables.items() if not _ADDED.match(name)}


def _ends(columns: Sequence[_Column], results: Sequence[_Result]) -> Sequence[str]:
    """The end of an id for each column: the prompt and the provider, where there are several."""
    labels = {result.provider_label for result in results}
    seen = Counter[_Column]()
    places = []
    for column in columns:
        seen[column] += 1  # providers may have equal names
        places.append(((column.label, column.raw), (column.provider, seen[column])))
    prompts = _numbered({place: _prompt_name(*place) for place, _ in places}, "prompt")
    names = {place: place[0] if place[0] in labels else "" for _, place in places}
    providers = _numbered(names, "provider")
    pairs = [(prompts[prompt], providers[provider]) for prompt, provider in places]
    return [f" [{', '.join(filter(None, pair))}]" if any(pair) else "" for pair in pairs]


def _prompt_name(label: str, text: str) -> str:
    """The configured label of a prompt, or its file; promptfoo appends the text, or its beginning.
    Empty for a text without a name."""
    name, is_named, _ = label.partition(f": {text[:_SHOWN]}")
    if is_named:
        # The label of a text file precedes its path.
        return name.partition(": ")[0] if name.endswith(".txt") else name
    return "" if label.endswith(text) else label


def _numbered(names: Mapping[Any, str], noun: str) -> Mapping[Any, str]:
    """The names, with numbers for equal and empty ones; all empty if there is only one key."""
    counts = Counter[str]()
    numbered = {}
    for key, name in names.items():
        counts[name] += 1
        numbered[key] = f"{name or noun} {counts[name]}" if counts[name] > 1 or not name else name
    return numbered if len(numbered) > 1 else dict.fromkeys(names, "")


def _places(suite: Suite) -> Mapping[str, Location]:
    """Where tests stand in the configuration and in the YAML and CSV files that it names, by their
    descriptions, or by their variables where they have none."""
    places: dict[str, Location] = {}
    for file in suite.files:
        if file.role in ("suite", "named file"):
            read = _csv_tests if file.path.endswith(".csv") else objects_in
            for test, place in read(get_content(suite, file.path), file.path):
                variables = as_object(test.get("vars"))
                if name := _text(test.get("description")) or (variables and _place_key(variables)):
                    places.setdefault(name, place)
    return places


def _csv_tests(content: bytes, path: str) -> Iterator[tuple[Mapping[str, Any], Location]]:
    """The tests in the rows of a CSV file, and where they begin."""
    text = io.StringIO(content.decode("utf-8-sig", "replace"), newline="")
    rows, line = csv.DictReader(text, restkey="__rest"), 2
    with suppress(csv.Error):
        for row in rows:
            variables = {name: cell for name, cell in row.items() if not name.startswith("__")}
            yield {"description": row.get("__description"), "vars": variables}, Location(path, line)
            line = rows.line_num + 1


def _place_key(variables: Mapping[str, Any]) -> str:
    """The variables as texts: a cell of a CSV file has no other type."""
    return compute_digest({name: _text(value).strip() for name, value in variables.items()})


def _row(test: _Test, files: _Files) -> Row:
    """The row without what depends on other tests."""
    result = test.result
    is_scored = bool(result.components or result.test_case.get("assert"))
    grading = {name: result.test_case.get(name) for name in _GRADING}
    values = [f"{name}: {_text(value)}" for name, value in test.variables.items()]
    return Row(
        id=test.name,
        passed=result.success and not result.failure_reason,
        error=result.outage if is_scored else "",
        skipped="" if is_scored else "it has no assertions",
        question="\n".join(values) or result.rendered or "",
        answer=_text(result.answer),
        target=result.provider_label or result.provider_id or "",
        asked=files.described(test.variables),
        graded=files.described(grading),
        checks=tuple(part.check for part in result.single),
        score=result.score,
        reason=result.reason or "",
        usage=result.usage,
        duration_ms=None if result.failure_reason == _ERROR else result.latency_ms,
    )


def _text(value: Any) -> str:
    """A text as it is, other data as JSON, nothing for null."""
    if value is None or isinstance(value, str):
        return value or ""
    return json.dumps(value, ensure_ascii=False)
