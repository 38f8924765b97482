"""`report`: the report page of stored results."""

from pathlib import Path

import click

from agentevals_action.cli import output
from agentevals_action.cli.options import page_option
from agentevals_action.errors import ExitCode
from agentevals_action.model.run import Policy
from agentevals_action.reports.page.report_page import PAGE, report_page
from agentevals_action.reports.view.build import build_view
from agentevals_action.results.run_folder import read_files
from agentevals_action.review.comparison.compare import compare


@click.command("report")
@click.argument("results", metavar="RESULTS.jsonl", type=Path, help="The results of the head.")
@click.option("--base", metavar="BASE.jsonl", type=Path, help="The results of the base.")
@page_option(PAGE)
def command(results: Path, base: Path | None, path: Path) -> int:
    """Write the report page of stored results, compared with a base if there is one."""
    fail_on = {"gates", "regressions"} if base else {"failures"}
    review = compare(read_files(results, base, Policy(frozenset(fail_on))))
    output.write_page("report", report_page(build_view(review)), path)
    return ExitCode.PASSED
