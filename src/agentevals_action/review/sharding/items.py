"""The tests of a suite in the groups that stay on one machine."""

from collections.abc import Iterator, Sequence
from dataclasses import dataclass

from agentevals_action.formatting import counted
from agentevals_action.model.shards import TestKey
from agentevals_action.model.suite import Test
from agentevals_action.review.sharding.assignment import Item
from agentevals_action.review.sharding.durations import Durations


@dataclass(frozen=True)
class PlannedSuite:
    """A suite that runs: `path` on head, `base_path` on base, and the tests that run on each
    side."""

    path: str
    base_path: str
    head: Sequence[Test]
    base: Sequence[Test]

    def keys_of(self, name: str) -> tuple[TestKey, TestKey]:
        """The keys under which the duration of a test may be known."""
        return (self.path, name), (self.base_path, name)


def group_tests(suite: PlannedSuite, samples: int, durations: Durations) -> Iterator[Item]:
    """The items of a suite, by their first tests: the turns of a conversation stay together, and so
    do the tests that share a workspace, on either side."""
    groups: dict[str, list[str]] = {}  # by the first test of the group
    first: dict[tuple[str, str], str] = {}  # by what the tests of the group share
    tests: dict[str, list[Test]] = {}
    for test in (*suite.head, *suite.base):
        tests.setdefault(test.id, []).append(test)
    for name, sides in tests.items():
        shared = dict.fromkeys(key for test in sides for key in _shared(test))
        joined = dict.fromkeys(first[key] for key in shared if key in first)
        owner, *others = (*joined, name) if joined else (name,)
        groups.setdefault(owner, [])
        for other in others:
            groups[owner] += groups.pop(other, [other])
        if owner == name:
            groups[owner].append(name)
        first |= {key: owner for key, at in first.items() if at in others}
        first |= dict.fromkeys(shared, owner)
    for members in groups.values():
        each = {name: durations.of(*suite.keys_of(name)) for name in members}
        is_serial = any(_is_serial(test) for name in members for test in tests[name])
        yield Item(
            tuple((suite.path, name) for name in members),
            sum(each[name] * samples * len(tests[name]) for name in members),
            sum(each.values()) * (samples if is_serial else 1),
            _describe(suite.path, members, tests[members[0]][0]),
        )


def _shared(test: Test) -> Iterator[tuple[str, str]]:
    if test.conversation_id is not None:
        yield "conversation", test.conversation_id
    if _is_serial(test) and test.workspace and not test.workspace.own:
        yield "workspace", ""


def _is_serial(test: Test) -> bool:
    """Whether the samples of a test run one after another, in one folder."""
    return test.workspace is not None and not test.workspace.per_test


def _describe(path: str, members: Sequence[str], test: Test) -> str:
    if len(members) == 1:
        return f"the test `{members[0]}` of `{path}`"
    if _is_serial(test):
        return f"{counted(len(members), 'test')} of `{path}` share a workspace, which"
    return f"the conversation `{test.conversation_id}` of `{path}`"
