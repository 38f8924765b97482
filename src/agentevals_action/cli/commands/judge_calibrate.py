"""`judge calibrate`: gives each labelled answer to its judge, and shows how far they agree."""

import asyncio
import sys
from collections.abc import Iterable, Iterator, Mapping, Sequence
from datetime import UTC, datetime
from functools import partial
from itertools import chain
from pathlib import Path

import click

from agentevals_action.cli import output
from agentevals_action.cli.commands.run import local_request, open_folder
from agentevals_action.cli.loaded_suites import load_suites
from agentevals_action.cli.options import RUN_INPUTS, as_environment, input_options
from agentevals_action.cli.tables import print_table
from agentevals_action.errors import ExitCode, InvalidInput, unwrapped
from agentevals_action.formatting import UNKNOWN, cut_line, joined, percent, score
from agentevals_action.judges import statistics
from agentevals_action.judges.calibrate import (
    JudgedAnswer,
    LabelledAnswer,
    ask_judges,
    find_answers,
    select_judges,
    verdicts_of,
)
from agentevals_action.judges.calibration_file import write_calibration
from agentevals_action.judges.labels import read_labels
from agentevals_action.judges.probe import Bias, Pair, list_forms, probe_judges
from agentevals_action.model.judge import (
    CALIBRATION_FILE,
    Agreement,
    Calibration,
    Estimate,
    JudgeCalibration,
    Label,
)
from agentevals_action.model.result import SampleResult, TestResult
from agentevals_action.model.trace import total_spending
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
from agentevals_action.suites.checkout import require_valid

_INPUTS = ("samples", *(name for name in RUN_INPUTS if name != "setup"))
_TEXT = 400  # characters of a question, an answer, a reason
_TITLES = ("judge", "pass/fail", "tests", "agreement", "sensitivity", "specificity", "kappa")
#: For each bias: how verdicts were compared, and why there are no verdicts.
_BIASES: Mapping[Bias, tuple[str, str]] = {
    "order": ("with the criteria in reverse", "no label is about a `criterion` of a rubric"),
    "length": ("with filler behind the answer", "the judge gave no verdict"),
    "own model": ("compared with people's", "no labelled answer in `--results` is of it"),
}
_LEGEND = (
    "sensitivity: of the answers that people pass, the share that the judge passes",
    "specificity: of the answers that people fail, the share that the judge fails",
    "≥: the one-sided 95 % bound, which a floor is compared with; kappa: 95 % interval by test",
)


@click.command("calibrate")
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
    "whose answer it is. Asks each judge up to twice more. A judge of pairs is always asked with "
    "filler.",
)
@input_options(*_INPUTS)
async def command(files: tuple[Path, ...], is_probed: bool, **inputs: str | None) -> int:
    """Measure how judges agree with the labels of people, and write `calibration.json`. Shows the
    disagreements first: most of them are gaps in a criterion. Needs the extra `judges`.

    Each judge is asked `--samples` times about each answer."""
    given = Settings.from_environ(as_environment(inputs))
    samples = given.samples
    folder = f"{given.report_dir}/judge"  # the results of other runs stay
    workspace, repository = await open_folder(
        given.model_copy(update={"report_dir": folder, "samples": 1, "confirm": 0})
    )
    loaded = await load_suites(inputs, ())
    valid = loaded.all_valid()
    labels = await asyncio.to_thread(read_labels, loaded.checkout, valid)
    require_valid((), labels.errors)
    output.print_warnings(labels.warnings)
    output.print_lines(map(_conflict, labels.conflicts))
    if not labels.counted:
        advice = "label answers: `agentevals-action judge label`"
        raise InvalidInput("there are no labels that count", advice)
    last = workspace.folder / given.report_dir / HEAD_RESULTS
    stored = await asyncio.to_thread(_read, files or ([last] if last.is_file() else []))
    answers = find_answers(labels.counted, stored)
    paths = {loaded.checkout.root / answer.test[0] for answer in answers}
    select = partial(select_judges, answers)
    run = LocalRun((*paths,), (), select, lambda _suites, _fingerprint, _rule: {}, last)
    request = await local_request(workspace, repository, run)
    judged, *others = await _ask(answers, request, samples, is_probed=is_probed)
    output.print_warnings(
        f"{_name(answer.label)}: {opinion.reason}"
        for answer in chain(judged, *others)
        for opinion in answer.opinions
        if opinion.passes is None
    )
    judges = statistics.measure_judges(judged, others[-1])
    if not judges:
        return ExitCode.INCONCLUSIVE
    path = loaded.checkout.below / CALIBRATION_FILE
    today = datetime.now(UTC).date()
    write_calibration(path, Calibration(day=today, samples=samples, judges=judges))
    print(f"calibration: {path}", file=sys.stderr)
    _print(judged)
    print_table(_TITLES, [row for judge in judges.values() for row in _rows(judge)])
    output.print_lines([*_LEGEND, ""])
    probes = probe_judges((judged, *others), stored, valid) if is_probed else {}
    for key, judge in judges.items():
        of_judge = [answer for answer in judged if answer.key == key]
        sentences = (*_sentences(judge, of_judge), *_corrected(judge, verdicts_of(key, stored)))
        lines = (*sentences, *_biases(probes.get(key, {})))
        output.print_lines(f"`{', '.join(judge.evaluators)}`: {line}" for line in lines)
    is_complete = all(len(answer.known) == samples for answer in judged)
    return ExitCode.PASSED if is_complete else ExitCode.INCONCLUSIVE


def _read(paths: Sequence[Path]) -> tuple[TestResult, ...]:
    files = (path / HEAD_RESULTS if path.is_dir() else path for path in paths)
    return tuple(row for file in files for row in read_results(file))


async def _ask(
    answers: Sequence[LabelledAnswer],
    request: ReviewRequest,
    samples: int,
    *,
    is_probed: bool,
) -> Sequence[Sequence[JudgedAnswer]]:
    """The opinions of the judges on the answers, and on their other forms; with progress, cost and
    notices on standard error."""
    scored: list[SampleResult] = []
    async with open_inputs(request) as inputs, open_engine(inputs) as engine:
        with show_progress() as progress, unwrapped():

            def done(samples_of_answer: Sequence[SampleResult]) -> None:
                scored.extend(samples_of_answer)
                progress.count("answers", len(scored) // samples, number)

            asked = (answers, inputs.part.head)
            forms = list_forms(*asked, is_probed=is_probed)
            number = sum(len(form[0]) for form in forms)
            judged = [
                await ask_judges(*form, Executors(engine).of, engine.fingerprints, samples, done)
                for form in forms
            ]
    spent = spending_sentence(total_spending(sample.spent for sample in scored), "this calibration")
    console.print_sentences([*engine.notices, spent], sys.stderr)
    return judged


def _name(label: Label) -> str:
    parts = (label.suite, label.test, label.evaluator, label.criterion)
    return " ".join(filter(None, parts))


def _conflict(labels: Sequence[Label]) -> str:
    people = ", ".join(f"{label.who}: {label.label}" for label in labels)
    return f"{_name(labels[0])}: people disagree ({people}), and no label counts"


def _print(judged: Sequence[JudgedAnswer]) -> None:
    """The answers about which judges disagree with people."""
    differing = [answer for answer in judged if answer.differing]
    differing.sort(key=lambda answer: answer.label.passes)  # the judge lets a bad answer pass
    number = sum(bool(answer.known) for answer in judged)
    output.print_lines([f"judges disagree with people about {len(differing)} of {number} answers"])
    output.print_lines(line for answer in differing for line in _disagreement(answer))
    print()


def _disagreement(answer: JudgedAnswer) -> Iterator[str]:
    label, shown, number = answer.label, answer.differing[0], len(answer.known)
    verdict = "pass" if shown.passes else "fail"
    times = f", {len(answer.differing)} of {number} times" if number > 1 else ""
    yield ""
    yield _name(label)
    people = f"{label.label} ({label.who})"
    note = f": {cut_line(label.note, _TEXT)}" if label.note else ""
    yield f"  people    {people}{note}"
    yield f"  judge     {verdict} ({score(shown.score)}{times}): {cut_line(shown.reason, _TEXT)}"
    yield f"  question  {cut_line(answer.question, _TEXT)}"
    yield f"  criteria  {cut_line(answer.criteria, _TEXT)}"
    yield f"  answer    {cut_line(answer.answer, _TEXT)}"


def _rows(judge: JudgeCalibration) -> Iterator[Sequence[str]]:
    yield _row(", ".join(judge.evaluators), judge)
    for name, agreement in judge.criteria.items():
        yield _row(f"  {name}", agreement)


def _row(name: str, agreement: Agreement) -> Sequence[str]:
    kappa = UNKNOWN
    if agreement.kappa:
        low, high = agreement.kappa_interval
        kappa = f"{agreement.kappa.value:.2f} ({low:.2f} to {high:.2f})".replace("-", "−")
    shares = (agreement.agreement, agreement.sensitivity, agreement.specificity)
    labels = f"{agreement.passes}/{agreement.fails}"
    return (name, labels, str(agreement.tests), *map(_share, shares), kappa)


def _share(estimate: Estimate | None) -> str:
    return f"{percent(estimate.value)} (≥ {percent(estimate.low)})" if estimate else UNKNOWN


def _sentences(judge: JudgeCalibration, answers: Iterable[JudgedAnswer]) -> Iterator[str]:
    yield f"{judge.type}, target {judge.target}, model {joined(judge.models)}"
    pairs = [(answer.label.passes, known.passes) for answer in answers for known in answer.known]
    good, missed = pairs.count((True, True)), pairs.count((True, False))
    false, right = pairs.count((False, True)), pairs.count((False, False))
    yield (
        f"of people's passes it passes {good} and fails {missed}, of their fails it passes {false} "
        f"and fails {right}; people pass {percent(judge.passes / (judge.passes + judge.fails))} of "
        "the answers"
    )
    for label, metric in (("pass", "sensitivity"), ("fail", "specificity")):
        if getattr(judge, metric) is None:
            advice = f"label answers that {label}: `agentevals-action judge label`"
            yield f"no label is `{label}`, so that its {metric} is unknown; {advice}"
    if judge.length:
        share = _share(judge.length)
        yield f"of its right verdicts {share} stay so with filler behind the worse answer"
    if judge.unstable is not None:
        yield f"it disagrees with itself about {percent(judge.unstable)} of the answers"


def _corrected(judge: JudgeCalibration, verdicts: Sequence[bool]) -> Iterator[str]:
    """What the figures show about the judge's verdicts on stored answers."""
    if not verdicts or judge.criteria or not (judge.sensitivity and judge.specificity):
        return
    share = sum(verdicts) / len(verdicts)
    good = statistics.corrected_rate(share, judge.sensitivity.value, judge.specificity.value)
    if good is not None:
        yield (
            f"it passes {percent(share)} of {len(verdicts)} stored answers; corrected for its "
            f"errors, {percent(good)} are good"
        )


def _biases(pairs_by_bias: Mapping[Bias, Sequence[Pair]]) -> Iterator[str]:
    for bias, pairs in pairs_by_bias.items():
        how, missing = _BIASES[bias]
        to_pass, to_fail = pairs.count((False, True)), pairs.count((True, False))
        turned = f"{to_pass} of {len(pairs)} verdicts turn to pass and {to_fail} to fail {how}"
        yield f"{bias}: {turned if pairs else f'unknown, because {missing}'}"
