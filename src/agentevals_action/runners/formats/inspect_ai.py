"""The logs of inspect: one JSON file for each task."""

import math
import re
from collections import Counter
from collections.abc import Iterator, Mapping, Sequence
from glob import escape
from pathlib import Path
from typing import Any, ClassVar, Literal

from pydantic import AliasPath, Field

from agentevals_action.model.result import Record
from agentevals_action.model.runner import PassRule
from agentevals_action.model.suite import Suite
from agentevals_action.model.trace import Usage, total
from agentevals_action.runners.formats.base import (
    Amount,
    Check,
    Count,
    Format,
    ResultsError,
    Row,
    Selection,
    inside,
    read_file,
)
from agentevals_action.validation.field_errors import describe_value, shorten

_OPTIONS = (
    *("--log-format", "json", "--log-dir", "{RESULTS}", "--epochs", "{SAMPLES}"),
    *("--no-fail-on-error", "--display", "log"),  # `none` gives no reason of its end
)
#: Linux limits a word of a command to 128 KiB.
_MAX_WORD = 100_000
_MAX_FIGURE = 1e300
_SEPARATOR = re.compile(r"[,:\s]")
#: The figures that inspect's metrics make of the letters of its scorers.
_LETTERS = {"C": 1.0, "P": 0.5, "I": 0.0, "N": 0.0}


class _Score(Record):
    value: Any
    explanation: str = ""


class _Usage(Record):
    input_tokens: Count
    output_tokens: Count
    input_tokens_cache_read: Count | None = None
    input_tokens_cache_write: Count | None = None
    total_cost: Amount | None = None

    def convert(self) -> Usage:
        """As our usage, whose input tokens contain the tokens of the cache."""
        read, written = self.input_tokens_cache_read, self.input_tokens_cache_write
        tokens = self.input_tokens + (read or 0) + (written or 0)
        return Usage(tokens, self.output_tokens, read, written, self.total_cost)


class _Error(Record):
    message: str


class _Sample(Record):
    id: int | str
    input: str | list[dict[str, Any]]
    target: Any
    choices: Any = None
    files: Any = None
    setup: Any = None
    answer: str | None = inside("output", "completion")
    scores: dict[str, _Score] | None = None
    model_usage: dict[str, _Usage]
    total_time: Amount | None = None
    error: _Error | None = None
    limit: str | None = inside("limit", "type")


class _Scorer(Record):
    name: str
    options: dict[str, Any] | None = None

    def describe(self) -> Mapping[str, Any]:
        """The scorer; of its models only their names, because mock models have random ids."""
        options = {
            name: value["model"] if isinstance(value, dict) and "model" in value else value
            for name, value in (self.options or {}).items()
        }
        return {"name": self.name, "options": options}


class _Log(Record):
    version: Literal[2]
    status: str
    error: str | None = inside("error", "message")
    task: str = Field(validation_alias=AliasPath("eval", "task"))
    model: str = Field(validation_alias=AliasPath("eval", "model"))
    scorers: tuple[_Scorer, ...] | None = inside("eval", "scorers")
    planned: int | None = inside("results", "total_samples")
    samples: tuple[_Sample, ...] = ()

    def scorer(self, rule: PassRule | None) -> str:
        """The scorer that decides: the rule's where the task has it, otherwise the first."""
        names = [scorer.name.rpartition("/")[2] for scorer in self.scorers or ()]
        names += [name for sample in self.samples for name in sample.scores or ()]
        return rule.scorer if rule and rule.scorer in names else next(iter(names), "")


class InspectResults(Format):
    """Logs of version 2. The id of a test is its task and the id of its sample, and the model where
    a task has several logs. The metadata of a sample is not in `graded`: solvers change it."""

    name = "inspect"
    version = "version 2 of the logs of inspect"
    program = "inspect"
    command = ("eval", "{SUITE}", *_OPTIONS)
    again = ("eval", "{SELECTION}", *_OPTIONS)
    #: With one cache for all starts, their samples would be the same.
    variables: ClassVar[Mapping[str, str]] = {"INSPECT_CACHE_DIR": "{RESULTS}/cache"}
    has_scores = True

    def read(self, folder: Path, suite: Suite) -> Sequence[Row]:
        """One row for each sample and epoch."""
        logs = [self._read_log(folder, file.name, suite) for file in sorted(folder.glob("*.json"))]
        counts = Counter(log.task for log in logs)
        rule = suite.runner.passes if suite.runner else None
        if rule and logs and all(log.scorer(rule) != rule.scorer for log in logs):
            raise ResultsError(f"no task has the scorer {shorten(rule.scorer)} of `pass`")
        return [row for log in logs for row in _rows(log, counts[log.task] > 1, rule)]

    def select(self, rows: Sequence[Row], suite: Suite) -> Sequence[Selection]:
        """One start: `--sample-id` takes patterns, with the task before a colon. `?` stands for the
        comma that separates them, and may select more."""
        tests = dict.fromkeys(row.source for row in rows)
        ids = (f"{task}:{_SEPARATOR.sub('?', escape(sample))}" for task, sample in tests)
        word = ",".join(ids)
        if len(word) > _MAX_WORD or any(_SEPARATOR.search(task) for task, _ in tests):
            return (Selection(words=(suite.path,)),)
        return (Selection(words=(suite.path, "--sample-id", word)),)

    def _read_log(self, folder: Path, name: str, suite: Suite) -> _Log:
        # Without the paths of the checkout, the digests of both sides are equal.
        content = read_file(folder, name).replace(f"{suite.root}/".encode(), b"")
        log = _Log.model_validate_json(content)
        task = f"the task {shorten(log.task)}"
        if log.status != "success":
            words = f": {log.error}" if log.error else ""
            raise ResultsError(f"{task} ended with the status {shorten(log.status)}{words}")
        # There is no number in the log of a task of which nothing is selected, or all samples err.
        is_empty = log.planned is None and all(sample.error for sample in log.samples)
        if not is_empty and log.planned != len(log.samples):
            present, planned = len(log.samples), log.planned or "unknown"
            raise ResultsError(f"the log of {task} has {present} of {planned} samples")
        return log


def _rows(log: _Log, has_models: bool, rule: PassRule | None) -> Iterator[Row]:
    name = log.scorer(rule)
    rule = rule if rule and rule.scorer == name else None
    scorers = [scorer.describe() for scorer in log.scorers or ()]
    model = f" [{log.model}]" if has_models else ""
    for sample in log.samples:
        scores = sample.scores or {}
        decisive = scores.get(name)
        error = sample.error.message if sample.error else ""
        figure = None if decisive is None else _figure(decisive.value, name, rule)
        if decisive and figure is None:
            error = error or f"{name} has no value for it: {decisive.explanation or 'unscored'}"
        passed = figure is not None and figure >= (rule.at_least if rule else 1)
        limit = f"stopped by its {sample.limit} limit" if sample.limit else ""
        messages, question = _question(sample.input)
        yield Row(
            id=f"{log.task}/{sample.id}{model}",
            passed=passed and not error,
            error=error,
            skipped="" if decisive or error else "it has no score",
            question=question,
            answer=sample.answer or "",
            target=log.model,
            # The log has only the names of files.
            asked=None if sample.files else [messages, sample.choices, sample.setup],
            graded={"target": sample.target, "scorers": scorers},
            checks=tuple(
                Check(scorer, {name: passed}.get(scorer), _number(score.value), score.explanation)
                for scorer, score in scores.items()
            ),
            score=figure,
            reason="; ".join(filter(None, (limit, decisive.explanation if decisive else ""))),
            usage=total(usage.convert() for usage in sample.model_usage.values()),
            duration_ms=None if sample.total_time is None else sample.total_time * 1000,
            source=(log.task, str(sample.id)),
        )


def _figure(value: Any, name: str, rule: PassRule | None) -> float | None:
    """The number of a score, None for `Score.unscored`. ResultsError if it takes a rule to decide
    whether it passes."""
    if rule and isinstance(value, dict) and rule.key in value:
        value = value[rule.key]
    if value is None or (isinstance(value, float) and not math.isfinite(value)):
        return None
    number = _number(value)
    if number is not None and (rule or isinstance(value, str) or number in (0, 1)):
        return number
    key = f"key: {next(iter(value))}, " if isinstance(value, dict) and value else ""
    raise ResultsError(
        f"the scorer {name} gives {describe_value(value)}, which neither passes nor fails; write "
        f"into the runner what passes: `pass: {{scorer: {name}, {key}at_least: 1}}`"
    )


def _number(value: Any) -> float | None:
    if isinstance(value, str):
        return _LETTERS.get(value)
    is_figure = isinstance(value, int | float) and abs(value) < _MAX_FIGURE
    return float(value) if is_figure else None


def _question(given: str | list[dict[str, Any]]) -> tuple[Sequence[Mapping[str, Any]], str]:
    """The messages of an input without their random ids, and their texts."""
    if isinstance(given, str):
        return [{"role": "user", "content": given}], given
    messages = [{key: message[key] for key in message if key != "id"} for message in given]
    texts: list[Any] = []
    for content in (message.get("content") for message in messages):
        parts = content if isinstance(content, list) else [{"text": content}]
        texts += [part.get("text") for part in parts if isinstance(part, dict)]
    return messages, "\n\n".join(text for text in texts if isinstance(text, str))
