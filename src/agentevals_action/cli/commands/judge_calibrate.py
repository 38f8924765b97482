"""`judge calibrate`: gives each labelled answer to its judge, and shows how far they agree."""

import asyncio
import sys
from collections.abc import Iterable, Iterator, Mapping, Sequence
from datetime import UTC, datetime
from itertools import chain
from pathlib import Path

import click

from agentevals_action.cli import output
from agentevals_action.cli.commands.run import local_request, open_folder
from agentevals_action.cli.loaded_suites import load_suites
from agentevals_action.cli.options import RUN_INPUTS, as_environment, input_options
from agentevals_action.cli.tables import print_table
from agentevals_action.errors import ExitCode, InvalidInput, unwrapped
from agentevals_action.formatting import UNKNOWN, counted, cut_line, joined, percent, score
from agentevals_action.judges import calibrate
from agentevals_action.judges.calibrate import (
    JudgedAnswer,
    LabelledAnswer,
    LabelledJudges,
    Measured,
    MeasuredJudge,
)
from agentevals_action.judges.calibration_file import write_calibration
from agentevals_action.judges.labels import read_labels
from agentevals_action.judges.probe import Bias, Flips, list_forms, probe_judges
from agentevals_action.model.judge import CALIBRATION_FILE, Calibration, Estimate, Labels
from agentevals_action.model.result import SampleResult, TestResult
from agentevals_action.model.usage import total_spending
from agentevals_action.reports.terminal import console
from agentevals_action.reports.terminal.progress import show_progress
from agentevals_action.reports.view.cost import spending_sentence
from agentevals_action.results.jsonl import read_results
from agentevals_action.results.run_folder import HEAD_RESULTS
from agentevals_action.review.inputs.inputs import open_inputs
from agentevals_action.review.inputs.request import LocalRun, ReviewRequest
from agentevals_action.review.run.engine import open_engine
from agentevals_action.runners.executor import Executors
from agentevals_action.settings import Settings

try:
    from agentevals_action.judges import statistics
except ModuleNotFoundError:  # without the extra
    statistics = None  # type: ignore[assignment]  # the command checks it

_INPUTS = tuple(name for name in RUN_INPUTS if name != "setup")
_TEXT = 400  # characters of a question, an answer, a reason
_SHOWN = 50  # disagreements
_TITLES = ("judge", "pass/fail", "tests", "agreement", "sensitivity", "specificity", "kappa")
#: Of each bias: how verdicts were compared, and why there are none.
_BIASES: Mapping[Bias, tuple[str, str]] = {
    "order": ("with the criteria in reverse", "no label names a `criterion`"),
    "length": ("with filler behind the answer", "the judge gave no verdict"),
    "own model": ("compared with people's", "no labelled answer in `--results` is of it"),
    "other models": ("compared with people's", "no labelled answer in `--results` is of one"),
}
_LEGEND = (
    "sensitivity: of the answers that people pass, the share that the judge passes",
    "specificity: of the answers that people fail, the share that the judge fails",
    "≥: the one-sided 95 % bound, which a floor is compared with; kappa: 95 % interval by test",
)


@click.command("calibrate")
@click.option(
    "--samples",
    type=click.IntRange(1, 100),
    default=1,
    show_default=True,
    help="Judgements of each answer.",
)
@click.option(
    "--results",
    "files",
    type=Path,
    multiple=True,
    help="A file of results, or a report folder, with the answers that labels name by a digest; "
    "may be repeated. The results of the last `run` are read without it.",
)
@click.option(
    "--probe",
    "is_probed",
    is_flag=True,
    help="Also measure what should change no verdict: the order of criteria, filler in an answer, "
    "whose answer it is. Asks each judge up to twice more.",
)
@input_options(*_INPUTS)
async def command(
    samples: int, files: tuple[Path, ...], is_probed: bool, **inputs: str | None
) -> int:
    """Measure how judges agree with the labels of people, and write `calibration.json`. Shows the
    disagreements first: most of them are gaps in a criterion. Needs the extra `judges`."""
    if statistics is None:
        problem = "`judge calibrate` needs scipy and statsmodels, which are not installed"
        raise InvalidInput(problem, "`pip install 'agentevals-action[judges]'`")
    given = Settings.from_environ(as_environment(inputs))
    own_folder = f"{given.report_dir}/judge"  # the results of other runs stay
    workspace, repository = await open_folder(
        given.model_copy(update={"report_dir": own_folder, "samples": 1, "confirm": 0})
    )
    loaded = await load_suites(inputs, ())
    valid = loaded.all_valid()
    labels = await asyncio.to_thread(read_labels, loaded.checkout, valid)
    output.print_warnings(labels.warnings)
    _require(labels)
    last = workspace.folder / given.report_dir / HEAD_RESULTS
    stored = await asyncio.to_thread(_read, files or ([last] if last.is_file() else []))
    answers = calibrate.find_answers(labels.counted, stored)
    judges = LabelledJudges(answers)
    paths = {loaded.checkout.root / answer.test[0] for answer in answers}
    run = LocalRun((*paths,), (), judges.select, lambda _suites, _fingerprint, _rule: {}, last)
    request = await local_request(workspace, repository, run)
    judged, *others = await _ask(judges, answers, request, samples, is_probed=is_probed)
    output.print_warnings(dict.fromkeys(_errors(chain(judged, *others))))
    measured = calibrate.measure_judges(judged, statistics.measure)
    if not measured:
        return ExitCode.INCONCLUSIVE
    _print(measured, labels, stored)
    probes = probe_judges((judged, *others), stored, valid) if is_probed else {}
    output.print_lines(line for judge in measured for line in _biases(judge, probes))
    path = loaded.checkout.below / CALIBRATION_FILE
    of_judges = tuple(judge.calibration for judge in measured)
    today = datetime.now(UTC).date()
    write_calibration(path, Calibration(day=today, samples=samples, judges=of_judges))
    print(f"calibration: {path}", file=sys.stderr)
    is_complete = all(len(answer.known) == samples for answer in judged)
    return ExitCode.PASSED if is_complete else ExitCode.INCONCLUSIVE


def _require(labels: Labels) -> None:
    """InvalidInput without labels that can be used."""
    if labels.errors:
        number = counted(len(labels.errors), "error")
        raise InvalidInput(f"{number} in labels", errors=list(map(str, labels.errors)))
    if not labels.counted:
        others = len(labels.conflicts) + len(labels.of_models)
        problem = "no label counts" if others else "there are no labels"
        raise InvalidInput(problem, "label answers: `agentevals-action judge label`")


def _read(paths: Sequence[Path]) -> tuple[TestResult, ...]:
    files = (path / HEAD_RESULTS if path.is_dir() else path for path in paths)
    return tuple(row for file in files for row in read_results(file))


async def _ask(
    judges: LabelledJudges,
    answers: Sequence[LabelledAnswer],
    request: ReviewRequest,
    samples: int,
    *,
    is_probed: bool,
) -> Sequence[Sequence[JudgedAnswer]]:
    """The opinions of the judges on the answers, and on their other forms if they are probed; with
    progress, cost and notices on standard error."""
    scored: list[SampleResult] = []
    async with open_inputs(request) as inputs, open_engine(inputs) as engine:
        with show_progress() as progress, unwrapped():

            def done(found: Sequence[SampleResult]) -> None:
                scored.extend(found)
                progress.count("answers", len(scored) // samples, number)

            asked = (answers, inputs.part.head)
            forms = list_forms(*asked) if is_probed else (asked,)
            number = sum(len(form[0]) for form in forms)
            judged = [
                await judges.ask(*form, Executors(engine).of, engine.fingerprints, samples, done)
                for form in forms
            ]
    spent = spending_sentence(total_spending(each.spent for each in scored), "this calibration")
    console.print_sentences([*engine.notices, spent], sys.stderr)
    return judged


def _errors(judged: Iterable[JudgedAnswer]) -> Iterator[str]:
    """One line for each judgement that is missing."""
    for answer in judged:
        for opinion in answer.opinions:
            if opinion.passes is None:
                yield f"{_name(answer)}: {opinion.reason}"


def _name(answer: JudgedAnswer) -> str:
    label = answer.label
    parts = (label.suite, label.test, label.evaluator, label.criterion)
    return " ".join(filter(None, parts))


def _print(measured: Sequence[MeasuredJudge], labels: Labels, stored: Sequence[TestResult]) -> None:
    """Disagreements, conflicts of labels, the figures of each judge."""
    answers = [answer for judge in measured for answer in judge.answers]
    differing = [answer for answer in answers if answer.differing]
    differing.sort(key=lambda answer: answer.label.passes)  # the judge lets a bad answer pass
    known = sum(bool(answer.known) for answer in answers)
    output.print_lines([f"judges disagree with people about {len(differing)} of {known} answers"])
    output.print_lines(line for answer in differing[:_SHOWN] for line in _disagreement(answer))
    if len(differing) > _SHOWN:
        print(f"… and {len(differing) - _SHOWN} more")
    for conflict in labels.conflicts:
        people = ", ".join(f"{label.who}: {label.label}" for label in conflict)
        name = f"{conflict[0].suite} {conflict[0].test} {conflict[0].evaluator}"
        output.print_lines([f"{name}: people disagree ({people}), and no label counts"])
    print()
    print_table(_TITLES, [row for judge in measured for row in _rows(judge)])
    output.print_lines([*_LEGEND, ""])
    output.print_lines(line for judge in measured for line in _sentences(judge, stored))


def _disagreement(answer: JudgedAnswer) -> Iterator[str]:
    label, shown, number = answer.label, answer.differing[0], len(answer.known)
    verdict = "pass" if shown.passes else "fail"
    times = f", {len(answer.differing)} of {number} times" if number > 1 else ""
    yield ""
    yield _name(answer)
    people = f"{label.label} ({label.who})"
    note = f": {cut_line(label.note, _TEXT)}" if label.note else ""
    yield f"  people    {people}{note}"
    yield f"  judge     {verdict} ({score(shown.score)}{times}): {cut_line(shown.reason, _TEXT)}"
    yield f"  question  {cut_line(answer.question, _TEXT)}"
    yield f"  criteria  {cut_line(answer.criteria, _TEXT)}"
    yield f"  answer    {cut_line(answer.answer, _TEXT)}"


def _rows(judge: MeasuredJudge) -> Iterator[Sequence[str]]:
    yield _row(", ".join(judge.calibration.evaluators), judge.measured)
    for name, measured in judge.criteria.items():
        yield _row(f"  {name}", measured)


def _row(name: str, measured: Measured) -> Sequence[str]:
    found, interval = measured.agreement, measured.kappa_interval
    kappa = UNKNOWN
    if found.kappa and interval:
        kappa = f"{found.kappa.value:.2f} ({interval[0]:.2f} to {interval[1]:.2f})"
    shares = (found.agreement, found.sensitivity, found.specificity)
    labels = f"{found.passes}/{found.fails}"
    return (name, labels, str(found.tests), *map(_share, shares), kappa.replace("-", "−"))


def _share(estimate: Estimate | None) -> str:
    return f"{percent(estimate.value)} (≥ {percent(estimate.low)})" if estimate else UNKNOWN


def _biases(judge: MeasuredJudge, probes: Mapping[str, Mapping[Bias, Flips]]) -> Iterator[str]:
    entry = judge.calibration
    for bias, found in probes.get(entry.key, {}).items():
        words, missing = _BIASES[bias]
        turned = f"{found.to_pass} of {found.compared} verdicts turn to pass and {found.to_fail} to"
        shown = f"{turned} fail {words}" if found.compared else f"unknown, because {missing}"
        yield f"`{', '.join(entry.evaluators)}`: {bias}: {shown}"


def _sentences(judge: MeasuredJudge, stored: Sequence[TestResult]) -> Iterator[str]:
    entry = judge.calibration
    name = f"`{', '.join(entry.evaluators)}`"
    yield f"{name}: {entry.type}, target {entry.target}, model {joined(entry.models)}"
    (good, missed), (false, found) = judge.measured.table
    yield (
        f"{name}: of people's passes it passes {good} and fails {missed}, of their fails it passes "
        f"{false} and fails {found}; people pass "
        f"{percent(entry.passes / (entry.passes + entry.fails))} of the answers"
    )
    for label, metric in (("pass", "sensitivity"), ("fail", "specificity")):
        if getattr(entry, metric) is None:
            advice = f"label answers that {label}: `agentevals-action judge label`"
            yield f"{name}: no label is `{label}`, so that its {metric} is unknown; {advice}"
    if entry.unstable is not None:
        yield f"{name}: it disagrees with itself about {percent(entry.unstable)} of the answers"
    yield from (f"{name}: {sentence}" for sentence in _about_stored(judge, stored))


def _about_stored(judge: MeasuredJudge, stored: Sequence[TestResult]) -> Iterator[str]:
    """What the figures say about the stored answers, which nobody chose by their verdicts."""
    entry = judge.calibration
    passed = calibrate.verdicts_of(entry.key, stored)
    if not passed or entry.criteria or not (entry.sensitivity and entry.specificity):
        return
    share, answers = sum(passed) / len(passed), f"{len(passed)} stored answers"
    labelled = [bool(own.passes) for answer in judge.answers for own in answer.known]
    corrected = statistics.corrected_rate(share, entry.sensitivity.value, entry.specificity.value)
    if statistics.are_different(labelled, passed):
        yield (
            f"it passes {percent(sum(labelled) / len(labelled))} of the labelled answers and "
            f"{percent(share)} of {answers}; if they were chosen by its verdicts, its specificity "
            "or its sensitivity is overestimated: label one answer of every test"
        )
    elif corrected is not None:
        yield (
            f"it passes {percent(share)} of {answers}; corrected for its errors, "
            f"{percent(corrected)} are good"
        )
