"""Edits in words: what the change does to targets and evaluators, and what passes only by that."""

from collections import Counter
from collections.abc import Callable, Sequence

from agentevals_action.escaping import plain
from agentevals_action.formatting import counted, joined, plural
from agentevals_action.model.comparison import TestComparison
from agentevals_action.model.edits import Edit, EditKind
from agentevals_action.reports.view.links import linked

#: Makes a name or a value visible as such.
Name = Callable[[str], str]

_NAMES = 3  # gates that a sentence names


def quoted(text: str) -> str:
    """A name in plain text."""
    return f"`{plain(text)}`"


def sentence(edits: Sequence[Edit]) -> str:
    """`2 required gates and 1 target were changed.`; empty without edits."""
    if not edits:
        return ""
    numbers = Counter(edit.kind for edit in edits)
    words = [counted(numbers[kind], kind) for kind in EditKind if numbers[kind]]
    return f"{joined(words)} {plural(len(edits), 'was', 'were')} changed."


def by_edits_title(tests: Sequence[TestComparison]) -> str:
    """`2 tests pass only with the changed evaluators`."""
    number = len(tests)
    passes = plural(number, "passes", "pass")
    return f"{counted(number, 'test', passes)} only with the changed evaluators"


def by_edits_sentence(tests: Sequence[TestComparison], name: Name) -> str:
    """`1 test passes only with the changed evaluators: with base's it would fail `safe`.`"""
    if not tests:
        return ""
    gates = dict.fromkeys(gate for test in tests for gate in failed_by_base(test))
    words = [name(gate) for gate in list(gates)[:_NAMES]]
    words += [f"{counted(left, 'more gate')}"] if (left := len(gates) - _NAMES) > 0 else []
    who = plural(len(tests), "it", "they")
    would = f"would fail {joined(words)}" if words else "would be worse"
    return f"{by_edits_title(tests)}: with base's {who} {would}."


def failed_by_base(test: TestComparison) -> tuple[str, ...]:
    """The gates that fail as base's evaluators score head's answers."""
    return test.by_base.result.gates_failed if test.by_base else ()


def describe(edit: Edit, name: Name, url: str | None = None) -> str:
    """`required gate `safe` of 2 tests at `EVAL.yaml:7` changed`; `url` is that of the location."""
    location = linked(name(f"{edit.location.path}:{edit.location.line}"), url)
    of = ""
    if edit.kind is not EditKind.TEST:
        tests = name(edit.tests[0]) if len(edit.tests) == 1 else counted(len(edit.tests), "test")
        of = f" of {tests}"
    return f"{edit.kind} {name(edit.name)}{of} at {location} {edit.action}"
