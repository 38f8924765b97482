"""The files of the data branch: one for each run of the default branch, gzipped rows of a results
file, and the badge (https://shields.io/badges/endpoint-badge). The file of a run is never changed;
the commit that adds a file removes the files that nothing needs."""

import gzip
import re
import zlib
from collections import Counter
from collections.abc import Callable, Collection, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from datetime import UTC, datetime
from io import BytesIO

from pydantic import ValidationError
from pydantic_core import to_json

from agentevals_action.formatting import counted, percent
from agentevals_action.model.baseline import StoredRun
from agentevals_action.model.comparison import Outcome
from agentevals_action.model.result import EvaluatorResult, SampleResult, TestResult
from agentevals_action.results.jsonl import ROW_ADAPTER, encode_row, parse_results

FOLDER = "runs"
#: Runs of a suite whose files are kept.
RUNS = 50
#: Bytes of JSON of the answer that a row keeps, at most.
ANSWER_BYTES = 64 * 1024
#: Bytes of the rows of a file, at most, and the number above which rows get no answer.
_FILE_BYTES = 256 * 1024 * 1024
_BYTES_WITH_ANSWERS = _FILE_BYTES // 2
_NAME = re.compile(rf"{FOLDER}/(\d{{8}}T\d{{9}})Z-([0-9a-f]{{40}}|[0-9a-f]{{64}})-(\d+)\.jsonl\.gz")
_TIME = "%Y%m%dT%H%M%S%f"
#: The name of the badge's file.
BADGE = "badge.json"
#: Colours from the best; all but the last need a share of all tests, where errors do not pass.
_COLORS, _SHARES = ("brightgreen", "green", "yellow", "red"), (1.0, 0.9, 0.7)
#: The best colour of each outcome: what a run could not decide, or did not read, is not green.
_BEST = {Outcome.PASSED: 0, Outcome.INCONCLUSIVE: 2, Outcome.FAILED: 3, Outcome.INVALID: 3}


def file_name(time: datetime, commit: str, run_id: int) -> str:
    """The name of the file of a run at a time (with a zone); names sort by time."""
    moment = time.astimezone(UTC).strftime(_TIME)[:-3]  # microseconds to milliseconds
    return f"{FOLDER}/{moment}Z-{commit}-{run_id}.jsonl.gz"


def write_run(results: Iterable[TestResult]) -> bytes:
    """The content of the file of a run: its rows, each with one answer that is small enough to be
    scored again, and with the results of its evaluators."""
    rows = BytesIO()
    for result in results:
        answer = None
        if rows.tell() < _BYTES_WITH_ANSWERS:
            answer = latest_answer(result.main_samples, _is_storable)
        rows.write(_row(result, answer) + b"\n")
    return gzip.compress(rows.getvalue(), mtime=0)


def latest_answer(
    samples: Sequence[SampleResult], is_usable: Callable[[SampleResult], bool]
) -> int | None:
    """The index of the latest usable answer, a cached answer only if there is no other."""
    usable = [
        index
        for index, sample in enumerate(samples)
        if sample.output_messages and is_usable(sample)
    ]
    return max(usable, key=lambda index: (not samples[index].cached, index), default=None)


def _is_storable(sample: SampleResult) -> bool:
    try:
        return len(to_json([sample.output_messages, sample.file_changes])) <= ANSWER_BYTES
    except ValueError:  # data of an agent that JSON cannot hold
        return False


def _row(result: TestResult, answer: int | None) -> bytes:
    row = encode_row(_reduced(result, answer))
    if answer is None:
        return row
    try:
        ROW_ADAPTER.validate_json(row)
    except ValidationError:  # an answer that is nested too deeply to be read
        return _row(result, None)
    return row


def without_messages(sample: SampleResult) -> SampleResult:
    """A sample without its answer."""
    return replace(sample, candidate_answer="", output_messages=(), file_changes=None)


def _reduced(result: TestResult, keep: int | None) -> TestResult:
    """A result without its answers, its pictures and the reasons of its evaluators; `keep` is the
    index of the sample whose answer stays."""
    samples = tuple(
        replace(sample, evaluator_results=tuple(map(_without_reasons, sample.evaluator_results)))
        if index == keep
        else replace(without_messages(sample), evaluator_results=_judged(sample))
        for index, sample in enumerate(result.samples)
    )
    asked = result.input_messages
    asked = asked if all(isinstance(message.get("content"), str) for message in asked) else ()
    return replace(
        result,
        candidate_answer="",
        evaluator_results=(),
        samples=samples,
        declared=(),
        suite_samples=(),
        pairs=(),
        input_messages=asked,
    )


def _judged(sample: SampleResult) -> tuple[EvaluatorResult, ...]:
    """What evaluators decided with a judge, because another judge may decide later."""
    return tuple(map(_without_reasons, sample.evaluator_results)) if sample.is_judged else ()


def _without_reasons(result: EvaluatorResult) -> EvaluatorResult:
    inner = tuple(map(_without_reasons, result.evaluator_results))
    return replace(result, hits=(), misses=(), reasoning="", details={}, evaluator_results=inner)


@dataclass(frozen=True)
class RunFiles:
    """The contents of the files of a data branch, by name."""

    contents: Mapping[str, bytes]

    def runs(
        self, problems: list[str], suites: Collection[str] | None = None
    ) -> Iterator[tuple[str, StoredRun]]:
        """The runs with the names of their files, newest first, each read when it is asked for;
        only the results of `suites` (paths) if these are given. A damaged file is skipped;
        `problems` gets a sentence about it."""
        for name in sorted(self.contents, reverse=True):
            try:
                yield name, read_run(name, self.contents[name], suites)
            except ValueError as error:
                problems.append(f"`{name}` is damaged and does not count: {error}")

    def obsolete(self, added: Iterable[tuple[str, str]]) -> Sequence[str]:
        """The names of the files in which no suite has one of its last runs, when a file with a run
        of the suites `added` (paths, with the variant) is added. A damaged file is obsolete when it
        is older than the files that stay."""
        counts, kept, readable = Counter(set(added)), set[str](), set[str]()
        for name, run in self.runs([]):
            readable.add(name)
            suites = {(result.eval_path, result.variant) for result in run.results}
            if any(counts[suite] < RUNS for suite in suites):
                kept.add(name)
            counts.update(suites)
        damaged = self.contents.keys() - readable
        oldest = min(kept, default="")
        return [*(readable - kept), *(name for name in damaged if name < oldest)]


def read_run(name: str, content: bytes, suites: Collection[str] | None = None) -> StoredRun:
    """The run in a file, or its results of `suites`. ValueError for a damaged file."""
    match = _NAME.fullmatch(name)
    if match is None:
        raise ValueError("its name is not that of a run")
    time = datetime.strptime(f"{match[1]}000", _TIME).replace(tzinfo=UTC)
    rows = _unpacked(content)
    if suites is not None:  # other rows need not be read
        keys = [b'"evalPath":' + to_json(suite) for suite in suites]
        lines = rows.split(b"\n")
        rows = b"\n".join(line for line in lines if any(key in line for key in keys))
    moment = time.isoformat(timespec="milliseconds")
    return StoredRun(parse_results(rows), match[2], moment, match[3])


def _unpacked(content: bytes) -> bytes:
    """The rows. ValueError for a file that is no gzip, is cut off, or unpacks to too much."""
    try:
        with gzip.open(BytesIO(content)) as file:
            rows = file.read(_FILE_BYTES + 1)
    except (OSError, EOFError, zlib.error) as error:
        raise ValueError(f"it is not a complete gzip file ({error})") from error
    if len(rows) > _FILE_BYTES:
        raise ValueError(f"it has more than {_FILE_BYTES >> 20} MiB")
    return rows


def badge(results: Sequence[TestResult], outcome: Outcome, time: datetime) -> bytes:
    """The pass rate of the scored tests of a run, its errors, and its date (of a time in UTC)."""
    verdicts = [result.verdict for result in results]
    passed, errors = verdicts.count("pass"), verdicts.count(None)
    message, color = "unknown", "lightgrey"
    if scored := len(results) - errors:
        parts = (percent(passed / scored), errors and counted(errors, "error"), f"{time:%Y-%m-%d}")
        message = " · ".join(str(part) for part in parts if part)
        missed = sum(passed / len(results) < share for share in _SHARES)
        color = _COLORS[max(missed, _BEST[outcome])]
    return to_json({"schemaVersion": 1, "label": "evals", "message": message, "color": color})
