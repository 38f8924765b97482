"""Runs in files: a report folder with `run.json` and the rows of head and of base; or results files
alone, of one run, or of two runs that are compared test by test."""

import io
import zipfile
import zlib
from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass, replace
from pathlib import Path

from pydantic import TypeAdapter, ValidationError

from agentevals_action.errors import InvalidInput
from agentevals_action.formatting import joined
from agentevals_action.model.baseline import BaselineInfo
from agentevals_action.model.result import Key, TestResult, as_declared
from agentevals_action.model.run import Level, Policy, Run, RunSuite, Selection, notes
from agentevals_action.results.jsonl import encode, encode_row, parse_results, read_results
from agentevals_action.validation.field_errors import invalid_json

RUN, HEAD_RESULTS, BASE_RESULTS = "run.json", "results.jsonl", "base.jsonl"
#: In the order in which they are written: `run.json` has the problems of writing the others.
RUN_FILES = (HEAD_RESULTS, BASE_RESULTS, RUN)
#: Of an archive, at most: files, rows of a side, bytes of the rows, and of the file of the run.
_MEMBERS, _ROWS, _ROW_BYTES, _RUN_BYTES = 100, 10_000, 64 << 20, 4 << 20
#: The compressions of `actions/upload-artifact`. Other compressions have errors of their own, and
#: may use any amount of memory.
_COMPRESSIONS = frozenset({zipfile.ZIP_STORED, zipfile.ZIP_DEFLATED})
#: The errors of `zipfile` for an archive that is damaged or encrypted.
_DAMAGED = (zipfile.BadZipFile, zlib.error, EOFError, RuntimeError)
_RUN = TypeAdapter(Run)
#: What the title of the check run begins with.
_CLAIMS = "Claims of an untrusted run, not verified."
_ALONE = BaselineInfo("none", wanted=False, reason="no results of a base were given")
_COMPARED = BaselineInfo("file", wanted=True)


@dataclass(frozen=True)
class RunResults:
    """A run with the rows of head, of base, and of the variants, which are in the file of head."""

    run: Run
    head: tuple[TestResult, ...] = ()
    base: tuple[TestResult, ...] = ()
    variants: tuple[TestResult, ...] = ()

    def content(self, name: str) -> Iterator[bytes]:
        """The content of the file with this name."""
        head = (*self.head, *self.variants)
        if name == RUN:
            rows = (len(head), len(self.base))
            yield encode(_RUN, self.run.model_copy(update={"rows": rows}))
        for row in {HEAD_RESULTS: head, BASE_RESULTS: self.base}.get(name, ()):
            yield encode_row(row) + b"\n"

    def with_notes(self, level: Level, facts: Iterable[str]) -> "RunResults":
        """Adds notes about the run."""
        return replace(self, run=self.run.with_notes(level, facts))

    def as_claims(self) -> "RunResults":
        """The results as claims of the first phase, also results that cannot be used: never green.

        Attack: without an artifact, `on-inconclusive: pass` makes the check run green."""
        policy = replace(self.run.policy, on_inconclusive="fail", asks_person=True)
        run = self.run.model_copy(update={"policy": policy, "claims": _CLAIMS})
        return replace(self, run=run).with_notes(Level.PROBLEM, ["nobody has verified the results"])


def not_run(head_sha: str, reasons: Iterable[str]) -> RunResults:
    """The results of a job with invalid inputs."""
    return RunResults(
        Run(head_sha=head_sha, policy=Policy(frozenset()), notes=notes(Level.REFUSED, reasons))
    )


def not_completed(head_sha: str, reasons: Iterable[str], policy: Policy) -> RunResults:
    """The results of a job that could not be completed."""
    return RunResults(Run(head_sha=head_sha, policy=policy, notes=notes(Level.PROBLEM, reasons)))


def read_folder(folder: Path) -> RunResults:
    """The run in a report folder. Raises InvalidInput."""
    try:
        return _parse({name: (folder / name).read_bytes() for name in RUN_FILES})
    except (OSError, ValueError) as error:
        reason = error.strerror if isinstance(error, OSError) else str(error)
        problem = f"{folder} has no complete results: {reason}"
        raise InvalidInput(problem, "name the report folder of a run that ended") from error


def read_archive(content: bytes) -> RunResults:
    """The run in a ZIP, every byte of which may be an attack. The sentence of InvalidInput contains
    no text of the archive."""
    try:
        with zipfile.ZipFile(io.BytesIO(content)) as archive:
            if len(archive.infolist()) > _MEMBERS:
                raise _refused(f"it contains more than {_MEMBERS} files")
            if any(file.compress_type not in _COMPRESSIONS for file in archive.infolist()):
                raise _refused("it is compressed in another way than by `actions/upload-artifact`")
            contents = {name: _member(archive, name) for name in RUN_FILES}
    except (*_DAMAGED, OSError, ValueError) as error:
        raise _refused(f"it is not a valid archive ({type(error).__name__})") from error
    try:
        return _parse(contents)
    except ValueError as error:
        raise _refused("its files are no results of a run") from error


def _member(archive: zipfile.ZipFile, name: str) -> bytes:
    """The content of a member. The size in its header may be false."""
    limit = _RUN_BYTES if name == RUN else _ROW_BYTES
    try:
        with archive.open(name) as file:
            content = file.read(limit + 1)
    except KeyError as error:
        raise _refused(f"it contains no `{name}`") from error
    if len(content) > limit:
        raise _refused(f"`{name}` is larger than {limit >> 20} MiB")
    if name != RUN and content.count(b"\n") > _ROWS:
        raise _refused(f"`{name}` has more than {_ROWS:,} rows")
    return content


def _refused(reason: str) -> InvalidInput:
    return InvalidInput(f"the artifact of the first phase is refused: {reason}")


def _parse(contents: Mapping[str, bytes]) -> RunResults:
    """The run in files. ValueError for files that are invalid, or lack a row."""
    try:
        run = _RUN.validate_json(contents[RUN])
    except ValidationError as error:
        raise ValueError(f"`{RUN}`: {invalid_json(error)}") from error
    head, base = (_rows(name, contents[name]) for name in (HEAD_RESULTS, BASE_RESULTS))
    if run.rows != (len(head), len(base)):
        raise ValueError("rows are missing")
    arms = {(suite.path, arm.variant.name) for suite in run.suites for arm in suite.variants}
    variants = tuple(row for row in head if (row.eval_path, row.variant) in arms)
    head = tuple(row for row in head if (row.eval_path, row.variant) not in arms)
    return RunResults(run, head, base, variants)


def _rows(name: str, content: bytes) -> tuple[TestResult, ...]:
    try:
        rows = parse_results(content)
    except ValueError as error:
        raise ValueError(f"`{name}`, {error}") from error
    if len({(row.key, row.variant) for row in rows}) < len(rows):
        raise ValueError(f"`{name}` has a test twice")
    for number, row in enumerate(rows, 1):
        if row.samples and not row.main_samples:
            raise ValueError(f"`{name}`, row {number}: all its samples are of a confirmation")
    return rows


def read_files(head: Path, base: Path | None, policy: Policy) -> RunResults:
    """The results of head and of base as one run. Raises InvalidInput for a file without results or
    with a test twice, and for files without a common test."""
    on_base = _read_side(base) if base else {}
    on_head = _read_side(head)
    if base and not on_head.keys() & on_base.keys():
        raise InvalidInput(
            f"{base} and {head} have no test in common", "name results of the same suites"
        )
    suites: dict[str, str] = {}
    tests: dict[str, list[str]] = {}
    for (path, _), row in {**on_base, **on_head}.items():
        suites[path] = row.dataset
    for path, name in on_head:
        tests.setdefault(path, []).append(name)
    run = Run(
        head_sha="",
        policy=policy,
        samples=min(
            (len(row.main_samples) or 1 for row in on_head.values() if row.verdict), default=1
        ),
        suites=tuple(
            RunSuite(Selection(path, ()), suites[path], tuple(tests.get(path, ())))
            for path in dict.fromkeys([*tests, *suites])
        ),
        baseline=_COMPARED if base else _ALONE,
    )
    return RunResults(run, tuple(on_head.values()), tuple(on_base.values()))


def _read_side(path: Path) -> Mapping[Key, TestResult]:
    rows: dict[Key, TestResult] = {}
    for result in as_declared(read_results(path, is_complete=True)):
        key = result.key
        if other := rows.get(key):
            targets = joined(
                [f"`{target}`" for target in dict.fromkeys((other.target, result.target))]
            )
            test = f"the test `{result.eval_id}` of `{result.eval_path}`"
            raise InvalidInput(
                f"{path} contains {test} twice (target {targets})",
                "compare the results of one run against one target",
            )
        rows[key] = result
    if not rows:
        raise InvalidInput(
            f"{path} contains no result", "name the results file of a run that finished tests"
        )
    return rows
