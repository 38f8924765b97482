"""The results that an untrusted run left as an archive. Every byte of it may be an attack."""

import io
import stat
import zipfile
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from functools import cache
from typing import Any

from jsonschema import Draft202012Validator
from pydantic import ValidationError

from agentevals_action.errors import InvalidInput
from agentevals_action.model.edits import Edit
from agentevals_action.model.result import SuiteRun, TestResult
from agentevals_action.model.review import Outcome
from agentevals_action.model.validation.json_values import parse_json
from agentevals_action.reports import REPORTS
from agentevals_action.reports.summary_json import EDIT_KINDS, read_edit
from agentevals_action.results.jsonl import RESULT
from agentevals_action.results.summary import suite_run
from agentevals_action.review.change.workspace import BASE_RESULTS, HEAD_RESULTS
from agentevals_action.settings import MAX_SAMPLES
from agentevals_action.system.files.archives import DAMAGED

_SUMMARY = "summary.json"
#: All names that the archive of a report folder has. Only three of the files are read.
_NAMES = frozenset({HEAD_RESULTS, BASE_RESULTS, *REPORTS})
_READ = (HEAD_RESULTS, BASE_RESULTS, _SUMMARY)
#: Bytes of the archive, which also bound the list of its members, and of all members unpacked.
_PACKED, _UNPACKED = 16 << 20, 64 << 20
#: Unpacked bytes per packed one. Results reach 50.
_RATIO = 200
_MAX_TESTS = 20_000
_MAX_EDITS = 2_000
#: Samples of a test: those of the run and of its confirmation. Base's judges score each again.
_MAX_SCORED = 2 * MAX_SAMPLES
_MAX_TEXT, _MAX_ITEMS, _MAX_DEPTH = 1_000_000, 100_000, 100
#: The errors that a damaged ZIP, or text that is nested too deep, raises.
_UNREADABLE = (*DAMAGED, OSError, ValueError)
_TEXT: Mapping[str, Any] = {"type": "string", "maxLength": 10_000}
_VALUE: Mapping[str, Any] = {"type": ["string", "null"], "maxLength": 10_000}


def _list(items: Mapping[str, Any], most: int) -> Mapping[str, Any]:
    return {"type": "array", "maxItems": most, "items": items}


def _object(**properties: Any) -> Mapping[str, Any]:
    return {"type": "object", "required": [*properties], "properties": properties}


_EDIT = _object(
    kind={"enum": [*EDIT_KINDS]},
    name=_TEXT,
    action={"enum": ["changed", "added", "removed"]},
    path=_TEXT,
    line={"type": "integer", "minimum": 1, "maximum": 10**9},
    fields=_list(_object(name=_TEXT, before=_VALUE, after=_VALUE), 100),
    # Attack: millions of names, each of which takes jsonschema 30 µs. All are read as texts.
    files={"type": "array", "maxItems": 1_000},
    tests={"type": "array", "maxItems": _MAX_TESTS},
)
_SUMMARY_SCHEMA: Mapping[str, Any] = {
    **_object(
        outcome={"enum": [outcome.value for outcome in Outcome]},
        headSha={"type": "string", "pattern": "^[0-9a-f]{40}([0-9a-f]{24})?$"},
        suites=_list(_object(path=_TEXT, edits={"type": "array"}), 1_000),
    ),
    "required": ["outcome", "headSha"],
}


@dataclass(frozen=True)
class Claims:
    """What a run claims: its outcome, and by the path of the suite its results of head and of base,
    and what the change edits."""

    outcome: Outcome
    head: Mapping[str, SuiteRun]
    base: Mapping[str, SuiteRun]
    edits: Mapping[str, tuple[Edit, ...]]


def read_claims(content: bytes, commit: str) -> Claims:
    """The claims in a ZIP about a commit. InvalidInput states why it is refused; the sentence
    contains no text of the archive."""
    try:
        files = _unpack(content)
    except _UNREADABLE as error:
        raise _refused(f"it is not a valid archive ({type(error).__name__})") from error
    summary = _valid(files[_SUMMARY], _SUMMARY, Draft202012Validator(_SUMMARY_SCHEMA))
    if summary["headSha"] != commit:
        raise _refused("its results are of another commit than the run")
    return Claims(
        Outcome(summary["outcome"]),
        _runs(files[HEAD_RESULTS], HEAD_RESULTS),
        _runs(files[BASE_RESULTS], BASE_RESULTS),
        _edits(summary.get("suites", ())),
    )


def _edits(suites: Sequence[Mapping[str, Any]]) -> dict[str, tuple[Edit, ...]]:
    """The first edits by suite: a report shows no more.

    Attack: 100,000 edits, whose validation takes minutes."""
    found: dict[str, tuple[Edit, ...]] = {}
    validator, left = Draft202012Validator(_EDIT), _MAX_EDITS
    for suite in suites:
        some = suite["edits"][:left]
        left -= len(some)
        for one in some:
            _require_valid(one, _SUMMARY, validator)
        found[suite["path"]] = tuple(map(read_edit, some))
    return found


def _unpack(content: bytes) -> dict[str, bytes]:
    if len(content) > _PACKED:
        raise _refused(f"it is larger than {_PACKED >> 20} MiB")
    with zipfile.ZipFile(io.BytesIO(content)) as archive:
        entries = archive.infolist()
        names = [entry.filename for entry in entries]
        # A path out of the folder, an absolute one and a folder are no names of a report's files.
        if not _NAMES.issuperset(names):
            raise _refused("it contains a file that no report has")
        if len(set(names)) < len(names):
            raise _refused("it contains a file twice")
        if missing := [name for name in _READ if name not in names]:
            raise _refused(f"it contains no `{missing[0]}`")
        if sum(entry.file_size for entry in entries) > _UNPACKED:
            raise _refused(f"its files are larger than {_UNPACKED >> 20} MiB")
        for entry in entries:
            if stat.S_IFMT(entry.external_attr >> 16) not in (0, stat.S_IFREG):
                raise _refused("it contains something else than files")
            if entry.file_size > _RATIO * (entry.compress_size + 1_000):
                raise _refused("a file is compressed more than any report is")
        return {name: _read(archive, name) for name in _READ}


def _read(archive: zipfile.ZipFile, name: str) -> bytes:
    """The content of a member. The size in its header may be false."""
    with archive.open(name) as file:
        content = file.read(_UNPACKED + 1)
    if len(content) > _UNPACKED:
        raise _refused(f"its files are larger than {_UNPACKED >> 20} MiB")
    return content


def _runs(content: bytes, name: str) -> dict[str, SuiteRun]:
    lines = [line for line in content.splitlines() if line.strip()]
    if len(lines) > _MAX_TESTS:
        raise _refused(f"`{name}` has more than {_MAX_TESTS:,} tests")
    by_suite: dict[str, dict[str, TestResult]] = {}
    for line in lines:
        _valid(line, name, _row_validator())
        try:
            result = RESULT.validate_json(line)
        except ValidationError as error:
            raise _refused(f"`{name}` has a row that is no result") from error
        of_suite = by_suite.setdefault(result.eval_path, {})
        if result.eval_id in of_suite:
            raise _refused(f"`{name}` has a test twice")
        if len(result.samples) > _MAX_SCORED:
            # Attack: a process of a judge for each of 100,000 samples holds the job for hours.
            raise _refused(f"`{name}` has a test with more than {_MAX_SCORED} samples")
        of_suite[result.eval_id] = result
    return {
        path: suite_run(path, next(iter(found.values())).dataset, found.values())
        for path, found in by_suite.items()
    }


def _valid(content: bytes, name: str, validator: Draft202012Validator) -> Any:
    try:
        data = parse_json(content)
        if _is_deep(data):
            raise _refused(f"`{name}` is nested more than any report is")
        # Attack: a list of millions of values that are all wrong; the best of their errors takes
        # minutes to find.
        _require_valid(data, name, validator)
    except (ValueError, RecursionError) as problem:
        raise _refused(f"`{name}` is no valid JSON") from problem
    return data


def _require_valid(data: Any, name: str, validator: Draft202012Validator) -> None:
    if error := next(validator.iter_errors(data), None):
        raise _refused(f"`{name}` does not have the schema of a report (`{error.validator}`)")


def _is_deep(data: Any) -> bool:
    """Whether JSON is nested so deep that a report of it cannot be made."""
    level = [data] if isinstance(data, dict | list) else []
    for _ in range(_MAX_DEPTH):
        inside = (one.values() if isinstance(one, dict) else one for one in level)
        level = [child for one in inside for child in one if isinstance(child, dict | list)]
        if not level:
            return False
    return True


@cache
def _row_validator() -> Draft202012Validator:
    schema = _bounded(RESULT.json_schema(by_alias=True))
    return Draft202012Validator(schema)


def _bounded(schema: Any) -> Any:
    """A JSON Schema of pydantic's, without unknown fields and with limits for texts and lists."""
    if isinstance(schema, list):
        return [_bounded(one) for one in schema]
    if not isinstance(schema, dict):
        return schema
    limits: Mapping[str, Mapping[str, Any]] = {
        "string": {"maxLength": _MAX_TEXT},
        "array": {"maxItems": _MAX_ITEMS},
        "number": {"minimum": -1e15, "maximum": 1e15},
        "integer": {"minimum": 0, "maximum": 10**15},
    }
    made = {name: _bounded(value) for name, value in schema.items() if name != "default"}
    kind = schema.get("type")
    if isinstance(kind, str) and "enum" not in schema:
        made = {**limits.get(kind, {}), **made}
    if kind == "object" and "properties" in schema:
        made.setdefault("additionalProperties", False)
    return made


def _refused(reason: str) -> InvalidInput:
    return InvalidInput(f"the artifact of the first phase is refused: {reason}")
