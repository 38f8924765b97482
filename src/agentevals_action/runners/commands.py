"""The commands of a runner: the default ones of its format or its own, with placeholders."""

import re
import shlex
from collections.abc import Iterator, Mapping, Sequence

from agentevals_action.formatting import joined
from agentevals_action.model.runner import Runner
from agentevals_action.runners.formats import FORMATS
from agentevals_action.targets.programs.placeholders import in_braces
from agentevals_action.validation.field_errors import did_you_mean

SUITE, SAMPLES, RESULTS, SELECTION = "{SUITE}", "{SAMPLES}", "{RESULTS}", "{SELECTION}"
_PLACEHOLDER = re.compile(r"\{[A-Z_]+\}")


def split_commands(runner: Runner) -> tuple[tuple[str, ...], tuple[str, ...]]:
    """The words of the first run, and of the run of a selection. An entry with a command of its own
    and no `again` runs all its tests again."""
    results = FORMATS[runner.results]
    if runner.command:
        return runner.command, runner.again or runner.command
    program = shlex.split(runner.program or results.program)
    return (*program, *results.command), runner.again or (*program, *results.again)


def find_problems(runner: Runner) -> Iterator[tuple[str, str]]:
    """What is wrong with an entry and what to do, each with the name of its field."""
    results = FORMATS.get(runner.results)
    if results is None:
        advice = did_you_mean(runner.results, FORMATS, "")
        advice = advice or f"write {joined([f'`{name}`' for name in FORMATS], 'or')}"
        yield "results", f"there is no format of results `{runner.results}`; {advice}"
        return
    if runner.passes and not results.has_scores:
        yield (
            "pass",
            f"`pass` has no effect with `results: {results.name}`, which has verdicts; remove it",
        )
    if runner.command and runner.program:
        yield "program", "`program` has no effect with `command`; write it there as first word"
    if not runner.command and not results.command:
        problem = f"`results: {results.name}` has no default command; write `command`, a list of "
        yield "results", f"{problem}words with `{SUITE}` and `{RESULTS}`"
        return
    try:
        first, again = split_commands(runner)
    except ValueError as error:
        yield "program", f"`program` cannot be split into words ({error}); close its quotes"
        return
    yield from _problems_of_words("command", first, (SUITE, SAMPLES, RESULTS))
    if again != first:
        yield from _problems_of_words("again", again, (SUITE, SAMPLES, RESULTS, SELECTION))


def _problems_of_words(
    name: str, words: Sequence[str], allowed: Sequence[str]
) -> Iterator[tuple[str, str]]:
    used = {placeholder for word in words for placeholder in _PLACEHOLDER.findall(word)}
    meant = {f"{{{name.upper()}}}": text for word in words for text, name in in_braces(word)}
    used |= {text for name, text in meant.items() if name in allowed}
    if unknown := sorted(used.difference(allowed)):
        choices = joined([f"`{placeholder}`" for placeholder in allowed], "or")
        yield name, f"`{name}` has no placeholder `{unknown[0]}`; write {choices}"
    elif RESULTS not in used:
        yield name, f"`{name}` does not say where the results go; write `{RESULTS}` in it"


def filled(
    words: Sequence[str], values: Mapping[str, str], selected: Sequence[str] | None = None
) -> tuple[str, ...]:
    """A command with values for its placeholders. `selected` are the words that stand for the word
    `{SELECTION}`."""
    command: list[str] = []
    for word in words:
        if word == SELECTION and selected is not None:
            command += selected
        else:
            command.append(_PLACEHOLDER.sub(lambda match: values.get(match[0], match[0]), word))
    return tuple(command)
