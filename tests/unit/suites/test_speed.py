"""Big suites are read quickly."""

import time
from pathlib import Path

from tests.support import suites


def test_inline_suite__of_a_thousand_tests_is_read_in_under_a_second(tmp_path: Path) -> None:
    test = """\
  - id: t{}
    criteria: says hello to everyone
    input: [{{role: system, content: be kind}}, {{role: user, content: hello}}]
    assert: [{{type: contains, value: a}}, {{type: regex, value: "b+", required: true}}]
    metadata: {{expect: {{verdict: pass, score: 1}}}}
"""
    suites.write(
        tmp_path,
        {
            "EVAL.yaml": "name: suite\ntests:\n"
            + "".join(test.format(number) for number in range(1_000))
        },
    )
    started = time.process_time()

    suite = suites.whole(tmp_path)

    assert sum(1 for _ in suite.tests) == 1_000
    assert time.process_time() - started < 1


def test_faults__by_the_thousand_do_not_hang(tmp_path: Path) -> None:
    values = ", ".join("1" for _ in range(20_000))
    suites.write(
        tmp_path,
        {
            "EVAL.yaml": f"name: suite\ntests: [{{id: a, input: q, assert: [{{type: contains-any, value: [{values}]}}]}}]"
        },
    )
    started = time.process_time()

    assert len(suites.errors(tmp_path)) == 20_000
    assert time.process_time() - started < 3
