"""A big suite is read in time that grows with its length, and so are its diagnostics."""

from pathlib import Path

import pytest

from tests.support import suites
from tests.support.timing import processor_seconds

TEST = """\
  - id: t{}
    criteria: says hello to everyone
    input: [{{role: system, content: be kind}}, {{role: user, content: hello}}]
    assert: [{{type: contains, value: a}}, {{type: regex, value: "b+", required: true}}]
    metadata: {{expect: {{verdict: pass, score: 1}}}}
"""


def write(folder: Path, tests: int) -> Path:
    rows = "".join(TEST.format(number) for number in range(tests))
    return suites.write(folder, {"EVAL.yaml": f"name: suite\ntests:\n{rows}"})


@pytest.mark.slow
def test_inline_suite__takes_time_in_proportion_to_its_length(tmp_path: Path) -> None:
    few, many = write(tmp_path / "few", 50), write(tmp_path / "many", 500)

    def read(folder: Path) -> int:
        return sum(1 for _ in suites.load_valid(folder).tests)

    assert (read(few), read(many)) == (50, 500)
    assert processor_seconds(lambda: read(many)) < 30 * processor_seconds(lambda: read(few))


def test_diagnostics__by_the_thousand_take_time_in_proportion_to_their_number(
    tmp_path: Path,
) -> None:
    def write_invalid(values: int) -> Path:
        entry = f"{{type: contains-any, value: [{', '.join(['1'] * values)}]}}"
        text = f"name: suite\ntests: [{{id: a, input: q, assert: [{entry}]}}]"
        return suites.write(tmp_path / str(values), {"EVAL.yaml": text})

    few, many = write_invalid(500), write_invalid(5_000)

    assert (len(suites.errors(few)), len(suites.errors(many))) == (500, 5_000)
    assert processor_seconds(lambda: suites.errors(many)) < 30 * processor_seconds(
        lambda: suites.errors(few)
    )
