"""The property that a plan must not matter: the merge of any partition gives the review of one
machine."""

import asyncio
import os
from collections.abc import Mapping
from pathlib import Path
from typing import Any

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st
from pydantic import TypeAdapter

from agentevals_action.cli.commands.review import open_folder
from agentevals_action.model.result import TestResult
from agentevals_action.model.review import Review
from agentevals_action.model.shards import Fragment, FragmentEnd, FragmentHeader, Side, TestKey
from agentevals_action.results.jsonl import read_results
from agentevals_action.results.shard_files import digest_of, write_fragment
from agentevals_action.review import pipeline
from agentevals_action.review.sharding.merge import merge_shards
from agentevals_action.review.sharding.plan import RunIdentity, plan_shards
from tests.support.repositories import Repository

#: On head one test gets worse, one gets better, one fails on both sides, one is new, one is gone.
ANSWERS = {
    "base": {"a": "good", "b": "good", "c": "bad", "d": "bad", "e": "good", "gone": "good"},
    "head": {"a": "good", "b": "bad", "c": "good", "d": "bad", "e": "good", "new": "good"},
}
REVIEW = TypeAdapter(Review)
RUN = RunIdentity()


def files(side: str) -> dict[str, str | bytes | None]:
    answers = ANSWERS[side]
    replies = ", ".join(
        f"{{pattern: '^{name}$', response: {said}}}" for name, said in answers.items()
    )
    tests = "".join(
        f"  - {{id: {name}, input: {name}, criteria: c, assert: "
        "[{type: contains, value: good, required: true}]}\n"
        for name in answers
    )
    targets = f"targets: [{{name: default, provider: mock, responses: [{replies}]}}]\n"
    return {
        ".agentv/targets.yaml": targets,
        "one/EVAL.yaml": f"name: one\ntests:\n{tests}",
        "two/EVAL.yaml": f"name: two\ntests:\n{tests}",
        ".gitignore": "/agentevals-report/\n",
    }


def without_times(review: Review) -> Any:
    def clean(value: Any) -> Any:
        if isinstance(value, dict):
            return {key: clean(one) for key, one in value.items() if not is_time(key)}
        return [clean(one) for one in value] if isinstance(value, list) else value

    def is_time(key: str) -> bool:
        return key in ("time", "timestamp", "duration") or key.startswith("duration")

    return clean(REVIEW.dump_python(review, mode="json"))


_FILES: Mapping[Side, str] = {"head": "results.jsonl", "base": "base.jsonl"}


class Reviewed:
    """A change that one machine has reviewed, and its results."""

    def __init__(self, folder: Path) -> None:
        made = Repository.create(folder, files("base"))
        made.git("checkout", "--quiet", "-b", "change")
        made.commit("change", files("head"))
        self.request = asyncio.run(open_folder(folder, "main", {}, os.environ))
        workspace = self.request.workspace
        self.expected = without_times(asyncio.run(pipeline.review(self.request)))
        self.results: dict[Side, dict[TestKey, TestResult]] = {
            side: {
                (one.eval_path, one.eval_id): one for one in read_results(workspace.report / name)
            }
            for side, name in _FILES.items()
        }
        self.tests = sorted({*self.results["head"], *self.results["base"]})
        self.plan = asyncio.run(plan_shards(self.request, RUN))

    def merge(self, shards: list[int]) -> Any:
        """The merged review, if the tests run on these shards (from 0)."""
        workspace = self.request.workspace
        total = max(shards) + 1
        owners = dict(zip(self.tests, shards, strict=True))
        parts: list[dict[str, tuple[str, ...]]] = [{} for _ in range(total)]
        for (path, name), number in owners.items():
            parts[number][path] = (*parts[number].get(path, ()), name)
        for old in (workspace.report / "shards").glob("shard-*"):
            old.unlink()
        content = self.plan.model_copy(update={"shards": tuple(parts)}).model_dump_json().encode()
        workspace.shards.write("plan.json", [content])
        for number in range(total):
            results = {side: self.part(side, owners, number) for side in self.results}
            header = FragmentHeader(
                version=1,
                plan=digest_of(content),
                origin=self.plan.origin,
                run_attempt=1,
                shard=number + 1,
                shards=total,
            )
            end = FragmentEnd(rows=sum(map(len, results.values())))
            write_fragment(workspace.shards, Fragment(header, results, end))
        return without_times(asyncio.run(merge_shards(self.request, RUN)))

    def part(
        self, side: Side, owners: dict[TestKey, int], number: int
    ) -> dict[TestKey, TestResult]:
        return {key: one for key, one in self.results[side].items() if owners[key] == number}


@pytest.fixture(scope="module")
def reviewed(tmp_path_factory: pytest.TempPathFactory) -> Reviewed:
    return Reviewed(tmp_path_factory.mktemp("partition") / "r")


@pytest.mark.slow
@pytest.mark.timeout(600)
@given(shards=st.lists(st.integers(0, 6), min_size=14, max_size=14))
@settings(max_examples=12, deadline=None, suppress_health_check=list(HealthCheck))
def test_merge__of_any_partition_is_the_review_of_one_machine(
    reviewed: Reviewed, shards: list[int]
) -> None:
    assert len(reviewed.tests) == 14
    assert reviewed.expected["decision"]["outcome"] == "failed"
    assert reviewed.merge(shards) == reviewed.expected
