"""A review on several machines: the plan of its shards, and the fragment that each shard writes."""

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Annotated, Literal

from pydantic import BaseModel, ConfigDict, Field

from agentevals_action.model.result import CAMEL_CASE, TestResult

#: Jobs of a matrix, at most: https://docs.github.com/en/actions/reference/limits
MAX_SHARDS = 256

Side = Literal["head", "base"]
#: A test of a suite: the suite's path on head, and the test's id.
TestKey = tuple[str, str]


@dataclass(frozen=True)
class Shard:
    """One of `total` shards, numbered from 1."""

    number: int
    total: int

    def __str__(self) -> str:
        return f"{self.number}/{self.total}"


class _File(BaseModel):
    """Base of what the files hold: exact types, no unknown fields."""

    model_config = ConfigDict(**CAMEL_CASE, frozen=True, extra="forbid", allow_inf_nan=False)


_Sha = Annotated[str, Field(pattern=r"^([0-9a-f]{40}|[0-9a-f]{64})$")]
_Count = Annotated[int, Field(ge=0)]


class Origin(_File):
    """What plan and fragments must have in common: the repository and the run (empty and 0 outside
    GitHub), and the commits of head and base."""

    repository: str
    run_id: _Count
    head_sha: _Sha
    base_sha: _Sha | None


class ShardPlan(_File):
    """The parts of all shards: by the suite's path on head, the ids of its tests on head and base.

    `run_attempt` is that of the job that wrote the plan. `inputs` are digests of the inputs that
    every shard must have in common, by name. `reruns` are the suites (paths on head) that also run
    on base; `base_results` is the digest of the file with the other results of base. `notes` are
    sentences for the reader."""

    version: Literal[1]
    origin: Origin
    run_attempt: _Count
    inputs: dict[str, str]
    reruns: tuple[str, ...]
    base_results: str
    shards: Annotated[
        tuple[dict[str, tuple[str, ...]], ...], Field(min_length=1, max_length=MAX_SHARDS)
    ]
    notes: tuple[str, ...] = ()


class FragmentHeader(_File):
    """The first line of a fragment; `plan` is the digest of the plan's file."""

    version: Literal[1]
    plan: str
    origin: Origin
    run_attempt: _Count
    shard: Annotated[int, Field(ge=1)]
    shards: Annotated[int, Field(ge=1, le=MAX_SHARDS)]


class FragmentRow(_File):
    """A line of a fragment: a result of one test; `suite` is the suite's path on
    head."""

    side: Side
    suite: str
    result: TestResult


class FragmentEnd(_File):
    """The last line of a fragment, without which it is truncated: the number of `rows` before it.

    `problem` states why tests have no result (a signal, invalid inputs), `base_problem` why base
    could not run; both are empty if all is well. `notices` are sentences for the reader."""

    rows: _Count
    problem: str = ""
    base_problem: str = ""
    notices: tuple[str, ...] = ()


@dataclass(frozen=True)
class Fragment:
    """The results of one shard."""

    header: FragmentHeader
    results: Mapping[Side, Mapping[TestKey, TestResult]]
    end: FragmentEnd


@dataclass(frozen=True)
class Fragments:
    """The fragments that can be used, by the number of the shard, and a sentence for each problem
    that makes the outcome inconclusive. `missing` are the reasons of the other shards."""

    by_shard: Mapping[int, Fragment] = field(default_factory=dict)
    problems: tuple[str, ...] = ()
    missing: Mapping[int, str] = field(default_factory=dict)
