"""`judge label`: shows stored answers in the terminal, one after another, and writes what a person
says about each beside its suite."""

import asyncio
import json
import os
import sys
import termios
import tty
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import AbstractContextManager
from pathlib import Path, PurePosixPath
from typing import Literal, Self

import click

from agentevals_action.cli import output
from agentevals_action.cli.loaded_suites import load_suites, paths_argument
from agentevals_action.cli.options import READ_INPUTS, input_options
from agentevals_action.errors import ExitCode, InvalidInput
from agentevals_action.escaping import printable
from agentevals_action.execution.fingerprint import Fingerprints
from agentevals_action.formatting import counted, list_paths
from agentevals_action.judges.labelling import (
    CLASSES,
    Task,
    count_labels,
    list_tasks,
    missing_labels,
)
from agentevals_action.judges.labels import append_label, read_labels, remove_label
from agentevals_action.model.judge import Label, Labels
from agentevals_action.model.judge_rule import Floor
from agentevals_action.model.messages import Message
from agentevals_action.model.result import SampleResult
from agentevals_action.results.jsonl import read_results
from agentevals_action.results.run_folder import HEAD_RESULTS
from agentevals_action.runners.suites import LoadedSuites
from agentevals_action.suites.checkout import require_valid
from agentevals_action.targets.message_texts import prompt_text, reference_text

#: The floor by which missing labels are counted if the repository has none.
_EXAMPLE = Floor("specificity", 0.7)
#: Characters of a title, and of a line, of which a longer one has several.
_TITLE, _LINE = 300, 10_000
_KEYS = "p pass · f fail · s skip · u undo · q quit"
_VERDICTS: Mapping[str, Literal["pass", "fail"]] = {"p": "pass", "f": "fail"}


@click.command("label")
@paths_argument
@click.option(
    "--results",
    type=click.Path(exists=True, path_type=Path),
    help="A file of results, or a report folder. Default: the last `run` here.",
)
@click.option("--all-answers", is_flag=True, help="Ask about all answers, not one of each test.")
@click.option("--show-judge", is_flag=True, help="Show what the judge says, which biases.")
@click.option("--who", metavar="NAME", help="Who labels. Default: `user.name` of git.")
@input_options(*READ_INPUTS, "report-dir", "judge-floor")
async def command(
    paths: tuple[Path, ...],
    results: Path | None,
    all_answers: bool,
    show_judge: bool,
    who: str | None,
    **inputs: str | None,
) -> int:
    """Label stored answers one after another, in the terminal: p(ass), f(ail), s(kip), u(ndo),
    q(uit).

    Answers that a judge fails come first. Each label is written at once, into a file beside the
    suite, and the next call continues."""
    if not (sys.stdin.isatty() and sys.stdout.isatty()):
        problem = "`judge label` asks a person, and this is no terminal"
        raise InvalidInput(problem, "start it in a terminal")
    loaded = await load_suites(inputs, paths)
    suites, checkout = loaded.all_valid(), loaded.checkout
    labels = await asyncio.to_thread(read_labels, checkout, suites)
    require_valid((), labels.errors)
    output.print_warnings(labels.warnings)
    if not who:
        who = await checkout.repository.author() if checkout.repository else ""
    if not who:
        raise InvalidInput("git does not know who labels", "write `--who NAME`")
    file = results or checkout.folder / checkout.settings.report_dir
    file = file / HEAD_RESULTS if file.is_dir() else file
    if not file.is_file():
        advice = "run `agentevals-action run` first, or name results in `--results`"
        raise InvalidInput(f"there are no results in {file}", advice)
    rows = read_results(file)
    tasks, stale = list_tasks(suites, rows, labels, who, every_answer=all_answers)
    if stale:
        tests = counted(stale, "test")
        output.print_warnings([f"{tests} of the results asked another question: run them again"])
    session = _Session(loaded, labels, tasks)
    try:
        await session.ask(who, shows_judge=show_judge)
    finally:
        session.summarize()
    return ExitCode.PASSED


class _Session:
    """One sitting of a person: the tasks, all valid labels, and what was said about the first of
    the tasks, None for one that was skipped."""

    def __init__(self, loaded: LoadedSuites, labels: Labels, tasks: Sequence[Task]) -> None:
        self._suites, self._tasks, self._labels = loaded.all_valid(), tasks, labels
        self._floors = loaded.checkout.settings.judge_floor or (_EXAMPLE,)
        self._given: list[Label | None] = []
        self._fingerprints = Fingerprints()

    async def ask(self, who: str, *, shows_judge: bool) -> None:
        """Asks until all is labelled, or the person quits."""
        with _Keyboard() as keyboard:
            while (number := len(self._given)) < len(self._tasks):
                task = self._tasks[number]
                _show(task, f"{number + 1} of {len(self._tasks)}", shows_judge=shows_judge)
                key = await keyboard.next_key()
                if key == "q":
                    return
                if key == "u":
                    self._take_back()
                else:
                    self._give(task, task.label(_VERDICTS[key], who) if key != "s" else None)

    def _give(self, task: Task, label: Label | None) -> None:
        if label:
            append_label(*_file(task), label.model_dump(exclude_unset=True))
            self._labels = Labels((*self._labels.valid, task.resolved(label)))
        self._given.append(label)
        output.print_lines([f"{label.label if label else 'skipped'}; {self._standing(task)}"])

    def _take_back(self) -> None:
        label = self._given.pop() if self._given else None
        if label:
            file, _ = _file(self._tasks[len(self._given)])
            remove_label(file, label.model_dump(exclude_unset=True))
            self._labels = Labels(self._labels.valid[:-1])

    def _standing(self, task: Task) -> str:
        """How many labels the judge of a task has, and how many it needs."""
        key = self._fingerprints.judge_key(task.suite, task.test, task.evaluator)
        counts = count_labels(self._suites, self._labels, self._fingerprints)[key]
        needs = (
            f"; {floor} needs at least {number} more {CLASSES.get(floor.metric, '')}".rstrip()
            for floor in self._floors
            if (number := missing_labels(counts, floor))
        )
        return f"`{task.judge}` has {counts['pass']} pass, {counts['fail']} fail{''.join(needs)}"

    def summarize(self) -> None:
        """Prints where the labels are, and what the judges still need."""
        tasks = zip(self._tasks, self._given, strict=False)
        files = dict.fromkeys(_file(task)[1] for task, label in tasks if label)
        left = f"{counted(len(self._tasks) - len(self._given), 'question')} left"
        if len(self._given) < len(self._tasks):
            left += ": answer all before you calibrate, because what the judge fails came first"
        output.print_lines([f"labels are in {list_paths([*files])}"] if files else ["no new label"])
        output.print_lines([left, *dict.fromkeys(map(self._standing, self._tasks))])


def _show(task: Task, title: str, *, shows_judge: bool) -> None:
    """Prints all that a person needs for a label."""
    parts = {
        f"{task.suite.path} {task.test.id}: {title}": "",
        "question": _text(prompt_text, task.test.input),
        "answer": "\n".join(_answer(task.sample)),
        f"does the answer achieve this? (`{task.judge}`)": "\n".join(_asked(task)),
    }
    if shows_judge:
        opinion = task.opinion
        verdict = {True: "pass", False: "fail", None: "unknown"}[opinion.passes]
        parts["the judge"] = f"{verdict}: {opinion.reason}"
    for heading, text in parts.items():
        click.secho(f"\n{printable(heading, _TITLE)}", bold=True)
        output.print_lines(
            f"  {line[start : start + _LINE]}"
            for line in text.split("\n")
            for start in range(0, len(line) or 1, _LINE)
            if text
        )


def _file(task: Task) -> tuple[Path, str]:
    """The file of the labels for a suite, and its path from the root."""
    path = PurePosixPath(task.suite.path)
    source = str(path.with_name(f"{path.stem}.labels.yaml"))
    return task.suite.root / source, source


def _answer(sample: SampleResult) -> Iterator[str]:
    """All that a judge reads of an answer: calls of tools, changes of files, the text."""
    for message in sample.output_messages:
        for call in message.get("tool_calls") or ():
            data = json.dumps(call.get("input"), ensure_ascii=False)
            yield f"[calls {call.get('tool')} {data} → {call.get('output')}]"
    yield from filter(None, (sample.file_changes, sample.candidate_answer or "(empty)"))


def _asked(task: Task) -> Iterator[str]:
    """What the judge is asked."""
    test, criterion = task.test, task.criterion
    if criterion:
        yield criterion.outcome
        for span in criterion.score_ranges or ():
            low, high = span.score_range
            yield f"{low}–{high} of 10: {span.outcome}"
        return
    yield from filter(None, (test.criteria, test.note, task.evaluator.prompt))
    if test.expected_output:
        yield f"a good answer, as a reference: {_text(reference_text, test.expected_output)}"


def _text(read: Callable[[Sequence[Message]], str], messages: Sequence[Message]) -> str:
    """The text of messages, or why a file in them has none."""
    try:
        return read(messages)
    except (OSError, ValueError) as error:
        return f"({error})"


class _Keyboard(AbstractContextManager["_Keyboard"]):
    """The terminal, which gives each key at once and does not show it."""

    def __enter__(self) -> Self:
        self._file = sys.stdin.fileno()
        self._before = termios.tcgetattr(self._file)
        tty.setcbreak(self._file)
        return self

    def __exit__(self, *_error: object) -> None:
        termios.tcsetattr(self._file, termios.TCSAFLUSH, self._before)

    async def next_key(self) -> str:
        """The next one of the keys that are shown, q at the end of the input.

        Accident: a key that was pressed before the answer was shown would label it."""
        loop = asyncio.get_running_loop()
        while True:
            termios.tcflush(self._file, termios.TCIFLUSH)
            click.secho(_KEYS, bold=True)
            is_readable = asyncio.Event()
            loop.add_reader(self._file, is_readable.set)
            try:
                await is_readable.wait()
            finally:
                loop.remove_reader(self._file)
            try:
                pressed = os.read(self._file, 64)  # several bytes are no such key
            except OSError:  # the terminal is gone
                return "q"
            key = pressed.decode("utf-8", "replace").lower()
            if key in ("p", "f", "s", "u", "q"):
                return key
            if key in ("", "\x04"):
                return "q"
