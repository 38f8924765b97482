"""What a reader is told about a change besides its results."""

from datetime import date
from pathlib import Path

import pytest

from agentevals_action.model.diagnostic import Diagnostic, Location
from agentevals_action.model.path_patterns import read_rule
from agentevals_action.model.quarantine import FILE, Quarantine
from agentevals_action.model.result import TestResult
from agentevals_action.model.runner import Runner
from agentevals_action.model.suite import BrokenSuite, Suite, Test
from agentevals_action.review.inputs.notices import (
    describe_uncovered,
    unmatched_globs,
    useless_rules,
)
from agentevals_action.review.inputs.selection import Change
from agentevals_action.system.git import ChangedFile
from tests.support import results


def suite(path: str, *tests: str, runner: Runner | None = None) -> Suite:
    made = tuple(Test(id=name, location=Location(path), input=()) for name in tests)
    root = Path("/repository")
    return Suite(path=path, name="suite", root=root, folder=root, tests=made, runner=runner)


def changed_files(*paths: str) -> tuple[ChangedFile, ...]:
    return tuple(ChangedFile(path, "modified") for path in paths)


A = suite("a/EVAL.yaml", "greets", "gated")
RUNNER = suite(
    "b.yaml", runner=Runner(name="p", results="agentevals", suites=("b.yaml",), required=("safe*",))
)
BROKEN = BrokenSuite("b.yaml", (Diagnostic(Location("b.yaml", 3), "bad"),))
SAFE, ERROR = results.result("safe: a"), results.result("x", None)


@pytest.mark.parametrize(
    ("suites", "rows", "tests", "of_suites", "unmatched"),
    [
        ((A,), (), ("gated",), (), []),
        ((A,), (), ("gatde", "greets", "!nothing"), (), ["gatde"]),
        ((A,), (), ("gatde", "nobody"), ("a/EVAL.yaml",), ["gatde", "nobody"]),
        ((A,), (), ("*",), ("evals/**",), ["*"]),
        ((A, BROKEN), (), ("gatde",), (), []),  # it may have such a test
        ((A, BROKEN), (), ("gatde",), ("a/**",), ["gatde"]),
        ((RUNNER,), (SAFE,), ("safe: a",), (), []),
        ((RUNNER,), (), ("nothing",), (), []),  # its tests are known when it has run
        ((RUNNER,), (ERROR,), ("nothing",), (), []),
        ((RUNNER,), (results.result("y"),), ("y",), (), ["safe*"]),
    ],
)
def test_unmatched_globs__are_those_that_no_known_test_can_match(
    suites: tuple[Suite | BrokenSuite, ...],
    rows: tuple[TestResult, ...],
    tests: tuple[str, ...],
    of_suites: tuple[str, ...],
    unmatched: list[str],
) -> None:
    place = Location(FILE, 2)
    entry = Quarantine(
        tests=tests,
        suites=of_suites,
        owner="grace",
        reason="flaky",
        expires=date(2026, 3, 1),
        location=place,
    )
    by_suite = {"b.yaml": {row.eval_id: row for row in rows}} if rows else {}
    found = list(unmatched_globs(suites, [entry], by_suite))
    assert [each.problem.split("`")[1] for each in found] == unmatched


@pytest.mark.parametrize(
    ("rule", "words"),
    [
        ("src/**", ""),
        ("vendor/lib/**", ""),
        ("vendor/lib/x.py", "the rule `vendor/lib/x.py` of `watch` matches no file"),
        ("!src/a.py", ""),
        ("src/** => evals/**", ""),
        ("scr/**", "the rule `scr/**` of `watch` matches no file"),
        ("!doc/**", "the rule `!doc/**` of `watch` matches no file"),
        ("src/** => eval/**", "the rule `src/** => eval/**` of `watch` matches no suite"),
    ],
)
def test_useless_rules__match_no_file_or_no_suite(rule: str, words: str) -> None:
    found = useless_rules([read_rule(rule)], ["src/a.py", "vendor/lib"], ["evals/EVAL.yaml"])
    assert [words in sentence for sentence in found] == ([True] if words else [])


@pytest.mark.parametrize(
    ("names_agent", "sentence"),
    [
        (
            True,
            "no suite and no rule of `watch` covers `src/kb.py`, `src/deep/x.py`, `agent.py`, `lib/a` and `b`: "
            "if they belong to the agent, add `src/**`, `agent.py`, `lib/**` and `b` to `watch`",
        ),
        (
            False,
            "no suite covers `src/kb.py`, `src/deep/x.py`, `agent.py`, `lib/a` and `b`, and nothing says that "
            "the agent does not use them, so all suites run (0 calls of agents on each side that runs): write "
            'below `watch:` in `.agentevals.yaml` either `- "!src/**"`, `- "!agent.py"`, `- "!lib/**"` and '
            '`- "!b"`, or all of the agent\'s own files, as `- src/**`; this holds once it is merged',
        ),
    ],
)
def test_describe_uncovered__names_the_rules_that_would_cover_the_files(
    names_agent: bool, sentence: str
) -> None:
    files = changed_files("src/kb.py", "src/deep/x.py", "agent.py", "lib/a", "b")
    rules = [read_rule("other/**")] if names_agent else []
    change = Change(files, uncovered=files, watch=(rules, rules))
    assert describe_uncovered(change, [suite("EVAL.yaml")], 3) == sentence
    # Without a rule, a run of no suite has errors: nothing is to be named.
    assert bool(describe_uncovered(change, [], 3)) == names_agent
    assert describe_uncovered(Change(files), [A], 3) == ""
