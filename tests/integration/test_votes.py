"""Judges that vote, through the command line: calls, cost, stored replies, and what the report
shows."""

import json
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from tests.support import command
from tests.support.openai_server import OpenAIServer, Reply, failure
from tests.support.repositories import Repository

SUITE = """\
name: greeter
tests:
  - id: greets
    input: Greet Ada
    criteria: greets by name
    assert: [{type: llm_judge, targets: [strict, kind], samples: 2, aggregate: majority}]
"""
TARGETS = """\
targets:
  - {name: default, provider: mock, response: Good day}
  - {name: strict, provider: openai, model: s, base_url: "%s", api_key: k, price: {input: 1, output: 2}}
  - {name: kind, provider: openai, model: k, base_url: "%s", api_key: k, price: {input: 1, output: 2}}
"""
#: US dollars of one judgement.
COST = (11 * 1 + 7 * 2) / 1e6


@pytest.fixture
def strict() -> Iterator[OpenAIServer]:
    """A judge that gives two scores, one after the other."""
    scores = [Reply(text='{"score": 0.2}'), Reply(text='{"score": 0.6, "misses": ["no name"]}')]
    with OpenAIServer(script=scores, otherwise=failure(400, "that is enough")) as running:
        yield running


@pytest.fixture
def kind() -> Iterator[OpenAIServer]:
    with OpenAIServer(otherwise='{"score": 0.9}') as running:
        yield running


@pytest.fixture
def folder(tmp_path: Path, strict: OpenAIServer, kind: OpenAIServer) -> Path:
    files = {".agentv/targets.yaml": TARGETS % (strict.url, kind.url), "EVAL.yaml": SUITE}
    return Repository.create(tmp_path / "work", files).path


def row(folder: Path) -> dict[str, Any]:
    found: dict[str, Any] = json.loads((folder / "agentevals-report/results.jsonl").read_text())
    return found


def test_votes__every_judgement_is_a_call_that_counts(
    folder: Path, strict: OpenAIServer, kind: OpenAIServer
) -> None:
    done = command.run(folder, "run")

    assert done.code == 1, done.out + done.err
    assert (len(strict.requests), len(kind.requests)) == (2, 2)
    (result,) = row(folder)["evaluatorResults"]
    assert (result["score"], result["passed"]) == (0, False)
    assert result["reasoning"].startswith("2 of 4 judgements pass (strict 0.")
    assert result["judge"]["models"] == ["test"]
    assert row(folder)["spent"]["costUsd"] == pytest.approx(4 * COST)
    assert "2 of 4 judgements pass" in done.out


def test_votes__each_judgement_is_replayed_as_it_was(
    folder: Path, strict: OpenAIServer, kind: OpenAIServer
) -> None:
    assert command.run(folder, "run", "--record", "replies").code == 1
    recorded = row(folder)["evaluatorResults"]
    assert sorted(recorded[0]["details"]["judgements"]) == [0.2, 0.6, 0.9, 0.9]
    for server in (strict, kind):
        server.requests.clear()

    done = command.run(folder, "run", "--cache", "replay", "--cache-dir", "replies")

    assert done.code == 1, done.out + done.err
    assert row(folder)["evaluatorResults"] == recorded
    assert not strict.requests
    assert not kind.requests


def test_votes__one_judgement_more_is_asked_for_and_the_others_are_known(
    folder: Path, strict: OpenAIServer, kind: OpenAIServer
) -> None:
    command.run(folder, "run", "--cache-dir", ".cache")
    suite = SUITE.replace("samples: 2", "samples: 3")
    (folder / "EVAL.yaml").write_text(suite)

    done = command.run(folder, "run", "--cache-dir", ".cache")

    # The third judgement of `strict` could not be made: no majority of the others counts.
    assert done.code == 3, done.out + done.err
    assert (len(strict.requests), len(kind.requests)) == (3, 3)
    assert row(folder)["score"] is None
    assert "the judge `strict` could not be asked" in row(folder)["error"]["message"]
