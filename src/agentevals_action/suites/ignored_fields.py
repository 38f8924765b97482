"""The fields that a repository declares as remarks for its readers (`ignored-fields`)."""

from collections.abc import Iterable, Iterator, Mapping, Sequence
from functools import cache

from agentevals_action.evaluators import EVALUATORS
from agentevals_action.formatting import list_paths, plural
from agentevals_action.model.diagnostic import Diagnostic, Location
from agentevals_action.model.quarantine import FILE
from agentevals_action.model.suite import BrokenSuite, Suite
from agentevals_action.suites import dialects
from agentevals_action.suites.dialects import Shape
from agentevals_action.suites.evaluators import inner_shapes
from agentevals_action.suites.files.diagnostics import nearest
from agentevals_action.suites.targets_file import shape_of_target
from agentevals_action.targets.providers import PROVIDERS

NAME = "ignored-fields"


def refusal(entry: str) -> str:
    """Why an entry is refused, as "problem; advice"; empty if it may be ignored. A field that the
    format knows always keeps its meaning."""
    owners = [name for name, fields in _known().items() if entry in fields]
    if owners:
        first = owners[0]
        return (
            f"`{entry}` is a field that the format knows; remove it, or name the object in which "
            f"it has no meaning, as `{'suite' if first == 'test' else 'test'}.{entry}`"
        )
    what, _, field = entry.partition(".")
    if field in _known().get(what, ()):
        return f"`{field}` is a field that the format knows in this object; remove it"
    return ""


def resembled(entry: str) -> str | None:
    """The known field for which an entry may be a misspelling."""
    what, _, field = entry.partition(".")
    if what in _known() and field:
        return nearest(field, _known()[what], dialects.MISSPELLED)
    return nearest(entry, frozenset().union(*_known().values()), dialects.MISSPELLED)


def describe_added(added: Sequence[str], distrusted: Sequence[str]) -> str:
    """The sentence about entries that a change adds, of which some do not hold yet; empty without
    any."""
    if not added:
        return ""
    sentence = f"the change adds {list_paths(added)} to `{NAME}`: nothing reads these fields"
    if distrusted:
        verb = plural(len(distrusted), "resembles", "resemble")
        sentence += f", except {list_paths(distrusted)}, which {verb} a field that the format knows"
        sentence += " and takes effect once it is on the base"
    return sentence


def without_effect(
    entries: Iterable[str], suites: Sequence[Suite | BrokenSuite]
) -> tuple[Diagnostic, ...]:
    """A warning for each entry for which no suite has a field."""
    found = {name for suite in suites for name in suite.ignored_fields}
    problem = f"`{{}}` in `{NAME}` is no unknown field of any suite, so it has no effect"
    return tuple(
        Diagnostic(Location(FILE), problem.format(entry), "correct it, or remove it")
        for entry in entries
        if entry not in found
    )


@cache
def _known() -> Mapping[str, frozenset[str]]:
    """The fields that are read or refused, by the word for their object."""
    known: dict[str, frozenset[str]] = {}
    for shape in _shapes():
        fields = (*shape.canonical, *shape.elsewhere, *shape.refused)
        known[shape.word] = known.get(shape.word, frozenset()).union(fields)
    return known


def _shapes() -> Iterator[Shape]:
    yield from _with_inner((dialects.SUITE, dialects.TEST))
    for options in EVALUATORS.values():
        yield dialects.evaluator_shape(options)
        yield from (shape for _, shape in inner_shapes(options))
    yield from _with_inner(shape_of_target(options) for options in PROVIDERS.values())


def _with_inner(shapes: Iterable[Shape]) -> Iterator[Shape]:
    for shape in shapes:
        yield shape
        yield from _with_inner(shape.inside.values())
