"""Suites that are small and grow, or large and of a bad shape: each is read soon, with an answer."""

import json
from collections.abc import Callable, Mapping
from pathlib import Path

import pytest

from tests.support import command, suites

_TEST = "{id: a, input: q, criteria: c}"
_MEGABYTE = 1_000_000


def _suite(tests: str, more: str = "") -> dict[str, str]:
    return {"EVAL.yaml": f"name: suite\ntests:\n  - {tests}\n{more}"}


def _evaluator(**fields: str) -> dict[str, str]:
    return _suite(f"{{id: a, input: q, assert: [{json.dumps(fields)}]}}")


def _rows(text: str) -> dict[str, str]:
    return {"EVAL.yaml": "name: suite\ntests: rows.jsonl\n", "rows.jsonl": text}


def _aliases() -> dict[str, str]:
    """Each anchor has the one before ten times."""
    levels = (f"a{level}: &a{level} [{f'*a{level - 1}, ' * 10}]" for level in range(1, 10))
    return _suite(_TEST, "metadata:\n  a0: &a0 [lol]\n  " + "\n  ".join(levels))


SUITES: Mapping[str, Callable[[], Mapping[str, str]]] = {
    "billion laughs": _aliases,
    "an alias in itself": lambda: _suite(_TEST, "metadata: &a {a: *a}"),
    "lists in lists": lambda: _suite("[" * _MEGABYTE),
    "a key again and again": lambda: _suite("{" + "a: 1, " * 20_000 + "}"),
    "many unknown fields": lambda: _suite(
        "{id: a, " + ", ".join(f"inptu{number}: 1" for number in range(10_000)) + "}"
    ),
    "a file that is too long": lambda: _suite(_TEST, "#" * 11 * _MEGABYTE),
    "files that name each other": lambda: {
        "EVAL.yaml": "name: suite\ntests: f0.yaml",
        **{f"f{number}.yaml": f"[f{number + 1}.yaml, f{number + 1}.yaml]" for number in range(40)},
        "f40.yaml": f"[{_TEST}]",
    },
    "a pattern of groups": lambda: _evaluator(type="regex", value="(" * 50_000 + ")" * 50_000),
    "a pattern of repeats": lambda: _evaluator(
        type="regex", value="((((a{1,1000}){1,1000}){1,1000}){1,1000}){1,1000}"
    ),
    "a prompt of brackets": lambda: _evaluator(
        type="llm_judge", prompt="{{ " + "(" * 20_000 + "1" + ")" * 20_000 + " }}"
    ),
    "a row of lists in lists": lambda: _rows("[" * 3 * _MEGABYTE),
    "a row that is too long": lambda: _rows(json.dumps({"input": "x" * 11 * _MEGABYTE})),
    "rows that are none": lambda: _rows("1\n" * 500_000),
}


@pytest.mark.slow
@pytest.mark.parametrize("name", SUITES)
def test_validate__a_suite_that_grows(tmp_path: Path, name: str) -> None:
    targets = {".agentv/targets.yaml": "- {name: default, provider: mock}\n"}
    folder = suites.write(tmp_path / "suite", {**targets, **SUITES[name]()})
    done = command.run(folder, "validate", timeout=60)
    assert done.code in (0, 2), done.err
    assert done.out
    assert "Traceback" not in done.err
    assert max(map(len, (done.out + done.err).splitlines())) < 3_000
