"""`judge`: the commands that measure judges."""

import click

from agentevals_action.cli.lazy_group import LazyGroup

_MEMBERS = {
    "label": ("judge_label", "command", "Label answers, one after another."),
    "calibrate": ("judge_calibrate", "command", "Give labelled answers to their judges."),
}


@click.group("judge", cls=LazyGroup, members=_MEMBERS)
def command() -> None:
    """Measure the judges that are models against people's labels."""
