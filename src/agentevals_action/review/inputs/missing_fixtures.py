"""Tests of skills whose files no tree has: most public ones were never run as a suite."""

from collections.abc import Iterator, Sequence
from dataclasses import replace
from pathlib import Path

from agentevals_action.formatting import counted, list_paths, plural
from agentevals_action.model.skill import name_suite
from agentevals_action.model.suite import BrokenSuite, Suite, Test
from agentevals_action.review.inputs.base_tree import Base
from agentevals_action.review.inputs.changed_files import Head
from agentevals_action.review.inputs.request import Suites


def leave_out_unusable(head: Head, base: Base, *, has_base: bool) -> tuple[Head, Base]:
    """Both sides without the tests whose files are missing, and a notice about those of head. On
    head, a test stays whose files base has, or may have: it ends in an error."""
    kept, left_out = _split(head.suites, base.root)
    if not kept or (has_base and base.root is None):
        return head, base
    on_base, _ = _split(base.suites, None)
    has = plural(len(left_out), "needs", "need")
    notice = (
        f"{counted(len(left_out), 'test')} {has} files that the repository does not have, and did "
        f"not run: {list_paths(left_out)}; add the files, or correct `files`"
    )
    head = replace(head, suites=kept, notice=notice if left_out else "")
    return head, replace(base, suites=tuple(on_base))


def _split(suites: Suites, other: Path | None) -> tuple[Suites, Sequence[str]]:
    """The suites with the tests that can run, or could in another tree, and the other tests."""
    kept, left_out = list[Suite | BrokenSuite](), list[str]()
    for suite in suites:
        lost: dict[str, list[str]] = {}
        for test in suite.tests if isinstance(suite, Suite) else ():
            if missing := list(_missing(test, other)):
                lost[test.id] = missing
        left_out += [
            f"{name_suite(suite.path)}: {name} ({', '.join(each)})" for name, each in lost.items()
        ]
        if not lost or isinstance(suite, BrokenSuite):
            kept.append(suite)
        elif tests := [test for test in suite.tests if test.id not in lost]:
            kept.append(suite.with_tests(tests))
    return kept, left_out


def _missing(test: Test, other: Path | None) -> Iterator[str]:
    for fixture in test.fixtures:
        if fixture.source is None and not (other and fixture.exists_in(other)):
            yield fixture.name
