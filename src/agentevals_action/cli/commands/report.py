"""`report`: the report page of stored results."""

from pathlib import Path

import click

from agentevals_action.cli.page_file import page_options, write_page
from agentevals_action.model.baseline import BaselineInfo
from agentevals_action.model.review import Review
from agentevals_action.reports.html.report_page import PAGE, report_page
from agentevals_action.reports.view.build import build_view
from agentevals_action.review import gate
from agentevals_action.review.stored_results import compare_files, read_suites

_ALONE = BaselineInfo("none", wanted=False, reason="no results of a base were given")
_REVIEW = frozenset({"gates", "regressions"})
_RUN = frozenset({"failures"})


@click.command("report")
@click.argument("results", metavar="RESULTS.jsonl", type=Path, help="The results of the head.")
@click.option("--base", metavar="BASE.jsonl", type=Path, help="The results of the base.")
@page_options(PAGE)
def command(results: Path, base: Path | None, output: Path, opens: bool) -> int:
    """Write the report page of stored results, compared with a base if there is one."""
    if base is None:
        suites, baseline, fail_on = read_suites(results), _ALONE, _RUN
    else:
        suites, fail_on = compare_files(base, results), _REVIEW
        baseline = BaselineInfo("file", wanted=True)
    with_head = [suite for suite in suites if suite.head]
    decision = gate.decide(gate.Policy(fail_on), with_head, baseline)
    review = Review("", None, decision, suites=suites, baseline=baseline)
    return write_page("report", report_page(build_view(review)), output, opens)
