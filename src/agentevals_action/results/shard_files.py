"""The files of a review on several machines: written by its jobs, and read back with limits.

A job is trusted as far as its own run: what is read must be of this plan, commit and run."""

import hashlib
import json
import re
from collections.abc import Iterator, Mapping, Sequence
from pathlib import PurePosixPath
from typing import TypeVar

from pydantic import BaseModel, TypeAdapter, ValidationError

from agentevals_action.errors import InvalidInput
from agentevals_action.formatting import counted, quoted
from agentevals_action.model.baseline import BaseRun
from agentevals_action.model.result import TestResult
from agentevals_action.model.shards import (
    Fragment,
    FragmentEnd,
    FragmentHeader,
    FragmentRow,
    Fragments,
    Shard,
    ShardPlan,
    Side,
    TestKey,
)
from agentevals_action.model.validation.field_errors import invalid_json
from agentevals_action.results.jsonl import encode_row
from agentevals_action.results.shard_sources import ShardFiles
from agentevals_action.system.files.tree_files import OutputFolder

PLAN, BASE_RESULTS = "plan.json", "base.json"
#: Bytes of a plan, of the stored results of base, of a fragment and of one of its lines, at most.
_PLAN_BYTES = 64 * 1024 * 1024
_BASE_BYTES = 1024 * 1024 * 1024
_FRAGMENT_BYTES = 1024 * 1024 * 1024
_LINE_BYTES = 64 * 1024 * 1024
_FRAGMENT_NAME = re.compile(r"shard-.*\.jsonl")
M = TypeVar("M", bound=BaseModel)
_BASE_RUNS = TypeAdapter(dict[str, BaseRun])
_PLAN_ADVICE = (
    "make the plan first (`mode: plan`, or the command `shards`), and copy its files here"
)


def digest_of(content: bytes) -> str:
    """The SHA-256, hexadecimal."""
    return hashlib.sha256(content).hexdigest()


def fragment_name(shard: Shard, attempt: int) -> str:
    """The name of a shard's file: files of several attempts fit into one folder."""
    return f"shard-{shard.number}-of-{shard.total}-attempt-{attempt}.jsonl"


def encode_base_results(runs: Mapping[str, BaseRun]) -> bytes:
    """The results of the stores of base, by the name of the store."""
    return _BASE_RUNS.dump_json(dict(runs))


def write_plan(folder: OutputFolder, plan: ShardPlan, base_results: bytes) -> str:
    """Writes the plan and the stored results of base; the digest of the plan. OutputError."""
    content = _encode(plan)
    folder.write(BASE_RESULTS, [base_results])
    folder.write(PLAN, [content])
    return digest_of(content)


def read_plan(files: ShardFiles) -> tuple[ShardPlan, str]:
    """The plan and its digest. Raises InvalidInput."""
    content = _read(files, PLAN, _PLAN_BYTES)
    try:
        return ShardPlan.model_validate_json(content), digest_of(content)
    except ValidationError as error:
        reason = invalid_json(error, content)
        problem = f"{files.describe(PLAN)} is not a valid plan: {reason}"
        raise InvalidInput(problem, "make the plan again") from error


def read_base_results(files: ShardFiles, plan: ShardPlan) -> Mapping[str, BaseRun]:
    """The stored results of base, by the name of their source. Raises InvalidInput."""
    content = _read(files, BASE_RESULTS, _BASE_BYTES)
    try:
        if digest_of(content) == plan.base_results:
            return _BASE_RUNS.validate_json(content)
        problem = "it is of another plan"
    except ValidationError as error:
        problem = invalid_json(error, content)
    raise InvalidInput(
        f"{files.describe(BASE_RESULTS)} is not valid: {problem}", "copy both files of one plan"
    )


def _read(files: ShardFiles, name: str, limit: int) -> bytes:
    described = files.describe(name)
    try:
        with files.open(name) as file:
            content = file.read(limit + 1)
    except OSError as error:
        raise InvalidInput(f"{described} cannot be read: {error.strerror}", _PLAN_ADVICE) from error
    if len(content) > limit:
        raise InvalidInput(f"{described} is larger than {limit >> 20} MiB", _PLAN_ADVICE)
    return content


def write_fragment(folder: OutputFolder, fragment: Fragment) -> str:
    """Writes the results of a shard; the name of the file. OutputError."""
    header = fragment.header
    name = fragment_name(Shard(header.shard, header.shards), header.run_attempt)
    folder.write(name, _lines(fragment))
    return name


def _lines(fragment: Fragment) -> Iterator[bytes]:
    yield _encode(fragment.header) + b"\n"
    for side, results in fragment.results.items():
        for (suite, _), result in results.items():
            start = json.dumps({"side": side, "suite": suite})[:-1]
            yield start.encode() + b', "result": ' + encode_row(result) + b"}\n"
    yield _encode(fragment.end) + b"\n"


def _encode(model: BaseModel) -> bytes:
    """JSON on one line; a name that is not valid Unicode is replaced."""
    data = model.model_dump(mode="json")
    return json.dumps(data, ensure_ascii=False).encode("utf-8", "replace")


class _Unusable(ValueError):
    """A fragment that cannot be used; the text continues a sentence about it."""


def read_fragments(files: ShardFiles, plan: ShardPlan, digest: str, attempt: int) -> Fragments:
    """The fragments that belong to this plan.

    `attempt` is that of this job. Of each shard the newest attempt counts, also if it is damaged:
    an older one was run again because it could not be used. Attempts before the plan's own are of
    an earlier plan. Raises InvalidInput for too many files."""
    found, problems = _find(files, plan, digest, attempt)
    by_shard, missing = {}, {}
    for number, part in enumerate(plan.shards, 1):
        newest = max((one for one, _ in found.get(number, ())), default=0)
        names = [name for one, name in found.get(number, ()) if one == newest]
        if not names:
            missing[number] = "its fragment is missing"
            continue
        if len(names) > 1:
            others = ", ".join(map(quoted, names[1:]))
            problems.append(f"shard {number} has more than one fragment: {others} is not used")
        try:
            by_shard[number] = _read_fragment(files, names[0], part)
        except _Unusable as error:
            problems.append(f"the fragment {quoted(names[0])} is not used: it {error}")
            missing[number] = "its fragment cannot be used"
    return Fragments(by_shard, tuple(problems), missing)


def _find(
    files: ShardFiles, plan: ShardPlan, digest: str, attempt: int
) -> tuple[dict[int, list[tuple[int, str]]], list[str]]:
    """The attempts and names of the fragments of each shard, and a sentence for each fragment that
    cannot be used."""
    found: dict[int, list[tuple[int, str]]] = {}
    problems = list(files.problems)
    for name in sorted(files.names()):
        if not _FRAGMENT_NAME.fullmatch(PurePosixPath(name).name):
            continue
        try:
            header = _validated(FragmentHeader, next(_read_lines(files, name), b""), 1)
            if header.origin == plan.origin and header.run_attempt < plan.run_attempt:
                continue
            _check_header(header, plan, digest, attempt)
        except _Unusable as error:
            problems.append(f"the fragment {quoted(name)} is not used: it {error}")
        else:
            found.setdefault(header.shard, []).append((header.run_attempt, name))
    return found, problems


def _check_header(header: FragmentHeader, plan: ShardPlan, digest: str, attempt: int) -> None:
    """Raises _Unusable for a fragment of something else.

    Attack: a program that could choose the number of a later attempt would win over the real
    one."""
    given, wanted = header.origin, plan.origin
    if (given.repository, given.run_id) != (wanted.repository, wanted.run_id):
        raise _Unusable(f"is of another run ({given.repository} {given.run_id})")
    if (given.head_sha, given.base_sha) != (wanted.head_sha, wanted.base_sha):
        base = f" and base {given.base_sha[:12]}" if given.base_sha else ""
        raise _Unusable(f"is of another commit ({given.head_sha[:12]}{base})")
    if header.plan != digest:
        raise _Unusable("is of another plan")
    if header.shards != len(plan.shards) or header.shard > header.shards:
        raise _Unusable(f"is of shard {header.shard}/{header.shards}, which the plan lacks")
    if header.run_attempt > attempt:
        raise _Unusable(f"is of attempt {header.run_attempt}, and this is attempt {attempt}")


def _read_fragment(files: ShardFiles, name: str, part: Mapping[str, Sequence[str]]) -> Fragment:
    """A fragment with results of its part and nothing else. Raises _Unusable."""
    lines = _read_lines(files, name)
    header = _validated(FragmentHeader, next(lines, b""), 1)
    expected = {(suite, test) for suite, tests in part.items() for test in tests}
    found: dict[Side, dict[TestKey, TestResult]] = {"head": {}, "base": {}}
    number, last = 1, b""
    for line in lines:
        if last:
            number += 1
            row = _validated(FragmentRow, last, number)
            key = (row.suite, row.result.eval_id)
            if key not in expected:
                raise _Unusable(f"contains a test of another shard on line {number}")
            if key in found[row.side]:
                raise _Unusable(f"contains a test twice, on line {number}")
            found[row.side][key] = row.result
        last = line
    end = _validated(FragmentEnd, last, number + 1)
    if end.rows != number - 1:
        raise _Unusable(f"has {number - 1} of {counted(end.rows, 'result')}")
    return Fragment(header, found, end)


def _read_lines(files: ShardFiles, name: str) -> Iterator[bytes]:
    """The lines of a fragment, within limits. Raises _Unusable.

    Attack: a link to a file of the runner, a FIFO that blocks, a file that fills the memory."""
    size = 0
    try:
        with files.open(name) as file:
            while line := file.readline(_LINE_BYTES):
                size += len(line)
                if size > _FRAGMENT_BYTES:
                    raise _Unusable(f"is larger than {_FRAGMENT_BYTES >> 20} MiB")
                if not line.endswith(b"\n"):
                    raise _Unusable("is truncated")
                yield line
    except OSError as error:
        raise _Unusable(f"cannot be read: {error.strerror}") from error
    if not size:
        raise _Unusable("is empty")


def _validated(model: type[M], line: bytes, number: int) -> M:
    try:
        return model.model_validate_json(line)
    except ValidationError as error:
        if not line or (model is FragmentEnd and b'"side"' in line[:20]):
            raise _Unusable("is truncated") from error
        reason = invalid_json(error, line)
        raise _Unusable(f"is not valid on line {number}: {reason}") from error
