"""The groups of tests that stay on one machine."""

from pathlib import Path

from agentevals_action.model.diagnostic import Location
from agentevals_action.model.suite import Test, Workspace
from agentevals_action.review.sharding.assignment import Item
from agentevals_action.review.sharding.durations import Durations
from agentevals_action.review.sharding.items import PlannedSuite, group_tests

AT = Location("s", 1)
SHARED, FRESH = Workspace(AT, template=Path("/t")), Workspace(AT, per_test=True)
OWN = Workspace(AT, own=True)


def a_test(id: str, conversation: str | None = None, workspace: Workspace | None = None) -> Test:
    return Test(id, AT, (), (), conversation_id=conversation, workspace=workspace)


def groups(*head: Test, base: tuple[Test, ...] = (), samples: int = 1) -> list[Item]:
    durations = Durations({("s", "slow"): 60.0, ("old", "moved"): 30.0}, 2.0)
    return list(group_tests(PlannedSuite("s", "old", head, base), samples, durations))


def names(items: list[Item]) -> list[tuple[str, ...]]:
    return [tuple(name for _, name in item.tests) for item in items]


def test_group__a_test_is_its_own_item() -> None:
    one, slow, moved = groups(a_test("one"), a_test("slow"), a_test("moved"))
    assert (one.seconds, slow.seconds, moved.seconds) == (2, 60, 30)


def test_group__samples_and_base_are_work_and_run_at_once() -> None:
    (item,) = groups(a_test("slow"), base=(a_test("slow"),), samples=5)
    assert (item.seconds, item.longest) == (600, 60)


def test_group__a_test_that_only_base_has_runs_once() -> None:
    assert [item.seconds for item in groups(a_test("a"), base=(a_test("gone"),))] == [2, 2]


def test_group__the_turns_of_a_conversation() -> None:
    found = groups(a_test("a", "x"), a_test("b"), a_test("c", "x"), a_test("d", "y"))
    assert names(found) == [("a", "c"), ("b",), ("d",)]
    assert (found[0].seconds, found[0].longest) == (4, 4)
    assert found[0].name == "the conversation `x` of `s`"


def test_group__tests_that_share_a_folder_wait_for_each_other() -> None:
    head = (a_test("a", None, SHARED), a_test("b", None, OWN), a_test("c", None, SHARED))
    found = groups(*head, a_test("d", None, FRESH), samples=3)
    assert names(found) == [("a", "c"), ("b",), ("d",)]
    assert [item.longest for item in found] == [12, 6, 2]
    assert found[0].name == "2 tests of `s` share a workspace, which"


def test_group__a_turn_in_a_shared_folder_joins_both() -> None:
    head = (a_test("a", "x"), a_test("b", None, SHARED), a_test("c", "x", SHARED), a_test("d", "x"))
    assert names(groups(*head)) == [("a", "b", "c", "d")]


def test_group__base_alone_may_hold_tests_together() -> None:
    base = (a_test("a", "x"), a_test("b", "x"))
    assert names(groups(a_test("a"), a_test("b"), base=base)) == [("a", "b")]
