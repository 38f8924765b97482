"""`judge label`: shows stored answers in the terminal, one after another, and writes a person's
label of each beside its suite."""

import asyncio
import json
import sys
import termios
from collections.abc import Iterator, Mapping, Sequence
from pathlib import Path
from typing import Any

import click

from agentevals_action.cli import output
from agentevals_action.cli.loaded_suites import load_suites, paths_argument
from agentevals_action.cli.options import READ_INPUTS, input_options
from agentevals_action.errors import ExitCode, InvalidInput
from agentevals_action.evaluators.judges.rubric import Rubric
from agentevals_action.judges.labelling import Task, describe_labels, list_tasks
from agentevals_action.judges.labels import append_label, label_file, read_labels, remove_label
from agentevals_action.model.judge import Floor
from agentevals_action.results.jsonl import read_results
from agentevals_action.results.run_folder import HEAD_RESULTS
from agentevals_action.suites.checkout import require_valid
from agentevals_action.targets.message_texts import prompt_text, reference_text

#: The floor by which missing labels are counted if the repository has none.
_EXAMPLE = Floor("specificity", 0.7)
_KEYS = "p pass · f fail · s skip · u undo · q quit"
_VERDICTS = {"p": "pass", "f": "fail"}


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
    who = (who or "").strip()
    if not who and checkout.repository:
        who = await checkout.repository.author()
    if not who:
        raise InvalidInput("git does not know who labels", "write `--who NAME`")
    file = results or checkout.folder / checkout.settings.report_dir
    file = file / HEAD_RESULTS if file.is_dir() else file
    if not file.is_file():
        advice = "run `agentevals-action run` first, or name results in `--results`"
        raise InvalidInput(f"there are no results in {file}", advice)
    tasks = list_tasks(suites, read_results(file), labels, who, every_answer=all_answers)
    if not tasks:
        print("nothing to label: all is labelled, or the tests ask other questions by now")
    terminal = termios.tcgetattr(sys.stdin)
    try:
        await _ask(tasks, who, shows_judge=show_judge)
    finally:  # a signal leaves a thread behind that reads a key
        termios.tcsetattr(sys.stdin, termios.TCSAFLUSH, terminal)
        labels = read_labels(checkout, suites)
        floors = checkout.settings.judge_floor or (_EXAMPLE,)
        output.print_lines(describe_labels(suites, labels, floors))
    return ExitCode.PASSED


async def _ask(tasks: Sequence[Task], who: str, *, shows_judge: bool) -> None:
    """Asks until all is labelled, or the person quits. Each label is written at once."""
    given: list[tuple[Path, Mapping[str, Any]] | None] = []
    while (number := len(given)) < len(tasks):
        task = tasks[number]
        title = f"{task.suite.path} {task.test.id}: {number + 1} of {len(tasks)}"
        output.print_lines(["", title, *_describe(task, shows_judge=shows_judge)])
        key = await _next_key()
        if key == "q":
            print("label all before you calibrate, because what the judge fails comes first")
            return
        if key == "u":
            if given and (last := given.pop()):
                remove_label(*last)
        elif key == "s":
            given.append(None)
        else:
            label = (label_file(task.suite), task.entry(_VERDICTS[key], who))
            append_label(*label)
            given.append(label)
            output.print_lines([f"{_VERDICTS[key]}, in {label[0]}"])


async def _next_key() -> str:
    """The next of the shown keys, q at the end of the input. Keys that were typed before are
    dropped when the terminal gives single keys: they would label an answer that nobody has seen."""
    while True:
        click.secho(f"\n{_KEYS}", bold=True)
        try:
            key = (await asyncio.to_thread(click.getchar)).lower()
        except (EOFError, KeyboardInterrupt):
            return "q"
        if key in ("p", "f", "s", "u", "q"):
            return key


def _describe(task: Task, *, shows_judge: bool) -> Iterator[str]:
    """The lines that a person needs for a label."""
    try:
        question, asked = prompt_text(task.test.input), "\n".join(_asked(task))
    except (OSError, ValueError) as error:  # a file in them cannot be read
        question = asked = f"({error})"
    parts = {
        "question": question,
        "answer": "\n".join(_answer(task)),
        f"does the answer achieve this? (`{task.judge}`)": asked,
    }
    if shows_judge:
        opinion = task.opinion
        verdict = {True: "pass", False: "fail", None: "unknown"}[opinion.passes]
        parts["the judge"] = f"{verdict}: {opinion.reason}"
    for heading, text in parts.items():
        yield from ("", heading, *(f"  {line}" for line in text.splitlines()))


def _answer(task: Task) -> Iterator[str]:
    """All that a judge reads of an answer: calls of tools, changes of files, the text."""
    sample = task.sample
    for message in sample.output_messages:
        for call in message.get("tool_calls") or ():
            data = json.dumps(call.get("input"), ensure_ascii=False)
            yield f"[calls {call.get('tool')} {data} → {call.get('output')}]"
    yield from filter(None, (sample.file_changes, sample.candidate_answer or "(empty)"))


def _asked(task: Task) -> Iterator[str]:
    """What the judge is asked."""
    test, judge = task.test, task.evaluator
    if isinstance(judge, Rubric):
        criterion = next(rubric for rubric in judge.rubrics if rubric.name == task.criterion)
        yield criterion.outcome
        for span in criterion.score_ranges or ():
            low, high = span.score_range
            yield f"{low}–{high} of 10: {span.outcome}"
        return
    yield from filter(None, (test.criteria, test.note, judge.prompt))
    if test.expected_output:
        yield f"a good answer, as a reference: {reference_text(test.expected_output)}"
