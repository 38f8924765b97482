"""`compare`: two files of results, test by test."""

import sys
from collections import Counter
from pathlib import Path

import click

from agentevals_action.cli.options import as_environment, input_options
from agentevals_action.formatting import counted, plural
from agentevals_action.model.run import Policy
from agentevals_action.reports.terminal import console
from agentevals_action.reports.view.build import build_view
from agentevals_action.reports.view.confirmation import change_word
from agentevals_action.results.run_folder import read_files
from agentevals_action.review.comparison import compare as outcome
from agentevals_action.settings import Settings


@click.command("compare")
@click.argument("base", metavar="BASE.jsonl", type=Path, help="The results of the base.")
@click.argument("head", metavar="HEAD.jsonl", type=Path, help="The results of the head.")
@input_options("fail-on")
def command(base: Path, head: Path, **inputs: str | None) -> int:
    """Compare two files of results, test by test. By default, failed gates and regressions end with
    exit code 1."""
    conditions = Settings.from_environ(as_environment(inputs)).fail_on
    policy = Policy(conditions or frozenset({"gates", "regressions"}))
    review = outcome.compare(read_files(head, base, policy))
    view = build_view(review)
    console.print_tests(view, console.changed(view), sys.stdout)
    console.print_suites(view, sys.stdout)
    if number := len(view.groups["removed"]):
        print(f"{counted(number, 'test')} of the base {plural(number, 'is', 'are')} not in {head}")
    changes = Counter(change_word(test.comparison.change) for test in view.tests)
    counts = ", ".join(f"{number} {word}" for word, number in changes.most_common())
    print(f"{counted(len(view.tests), 'test')}: {counts}")
    print(console.outcome_line(review.decision))
    return review.decision.exit_code
