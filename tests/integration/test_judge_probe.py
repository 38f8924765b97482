"""`judge calibrate --probe`: judges whose verdicts depend on what should not change them."""

import json
from collections.abc import Iterator
from pathlib import Path

import pytest

from tests.support import command
from tests.support.openai_server import OpenAIServer, Received, Reply
from tests.support.repositories import Repository

pytest.importorskip("statsmodels", reason="needs the extra `judges`")

TARGETS = """\
targets:
  - {name: mine, provider: openai, model: judge-1, base_url: "%s", api_key: k}
  - {name: theirs, provider: openai, model: other-1, base_url: "%s", api_key: k}
  - {name: judge, provider: openai, model: judge-1, base_url: "%s", api_key: k}
"""
SUITE = """\
name: greeter
execution: {target: mine}
tests:
  - {id: a, input: Greet Ada, criteria: greets}
  - {id: b, input: Greet Bob, criteria: greets, execution: {target: theirs}}
assert:
  - {name: tone, type: llm_judge, target: judge}
  - name: form
    type: rubric
    target: judge
    rubrics: [{id: polite, outcome: is polite}, {id: short, outcome: is short}]
"""


class Biased(OpenAIServer):
    """It answers "Good day" itself. As a judge it passes the criterion that comes first, and an
    answer that is long or its own."""

    def reply(self, received: Received) -> Reply:
        asked = received.prompt
        if asked.startswith("Greet"):
            return Reply(text=f"Good day {asked[-3:]}")
        if "is polite" in asked:
            first = "polite" if asked.index("is polite") < asked.index("is short") else "short"
            checks = [{"id": name, "satisfied": name == first} for name in ("polite", "short")]
            return Reply(text=json.dumps({"checks": checks}))
        is_liked = "several aspects" in asked or "Good day Ada" in asked
        return Reply(text=json.dumps({"score": float(is_liked)}))


@pytest.fixture
def server() -> Iterator[Biased]:
    with Biased() as running:
        yield running


@pytest.fixture
def folder(tmp_path: Path, server: Biased) -> Path:
    """A suite whose answers people fail."""
    labels = [
        {"test": test, "answer": f"Good day {name}", "label": "fail", "who": "ann", **judge}
        for test, name in (("a", "Ada"), ("b", "Bob"))
        for judge in (
            {"evaluator": "tone"},
            {"evaluator": "form", "criterion": "polite"},
            {"evaluator": "form", "criterion": "short"},
        )
    ]
    files = {
        ".agentv/targets.yaml": TARGETS % ((server.url,) * 3),
        "EVAL.yaml": SUITE,
        "EVAL.labels.jsonl": "".join(f"{json.dumps(row)}\n" for row in labels),
    }
    return Repository.create(tmp_path / "work", files).path


def test_probe__finds_the_bias_of_order_of_length_and_of_the_own_model(
    folder: Path, server: Biased
) -> None:
    assert command.run(folder, "run").code == 1
    server.requests.clear()

    done = command.run(folder, "judge", "calibrate", "--probe")

    assert done.code == 0, done.err
    assert len(server.requests) == 3 * 4
    assert [
        line
        for line in done.out.splitlines()
        if "verdicts turn" in line or "unknown, because" in line
    ] == [
        "`tone`: order: unknown, because no label is about a `criterion` of a rubric",
        "`tone`: length: 1 of 2 verdicts turn to pass and 0 to fail with filler behind the answer",
        "`tone`: own model: 1 of 1 verdicts turn to pass and 0 to fail compared with people's",
        "`form`: order: 2 of 4 verdicts turn to pass and 2 to fail with the criteria in reverse",
        "`form`: length: 0 of 4 verdicts turn to pass and 0 to fail with filler behind the answer",
        "`form`: own model: 1 of 2 verdicts turn to pass and 0 to fail compared with people's",
    ]


def test_probe__the_model_of_an_answer_is_unknown_without_results(folder: Path) -> None:
    done = command.run(folder, "judge", "calibrate", "--probe")

    assert done.code == 0, done.err
    assert "own model: unknown, because no labelled answer in `--results` is of it" in done.out


def test_probe__is_not_part_of_the_calibration(folder: Path, server: Biased) -> None:
    command.run(folder, "judge", "calibrate", "--probe")
    probed = (folder / "calibration.json").read_text()
    server.requests.clear()

    done = command.run(folder, "judge", "calibrate")

    assert (folder / "calibration.json").read_text() == probed
    assert len(server.requests) == 4
    assert "order:" not in done.out
