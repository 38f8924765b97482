"""The label that accepts regressions, over real HTTP: for which head it was put on, by whom, and
and the notice when that is unknown."""

from collections.abc import Iterator

import pytest

from agentevals_action.github.base import Host
from agentevals_action.github.client.api import RunContext
from agentevals_action.github.host import GitHubHost
from agentevals_action.model.quarantine import Acceptance
from tests.support.github_http import InjectedFailure
from tests.support.github_server import GitHubServer

FIRST, HEAD, OTHER = "a" * 40, "b" * 40, "c" * 40
LABEL = "agentevals:accept"
PULL = 7


@pytest.fixture
def server() -> Iterator[GitHubServer]:
    """A pull request whose second commit is checked from minute 11 on."""
    with GitHubServer() as server:
        server.add_pull(PULL, FIRST, "d" * 40)
        course = server.timeline
        course.push(PULL, FIRST, -5)
        course.check(FIRST, 1)
        course.push(PULL, HEAD, 10)
        course.check(HEAD, 11)
        yield server


def host(server: GitHubServer, head: str = HEAD, labeled: str = "") -> GitHubHost:
    target = RunContext(
        "acme/agent",
        head,
        server.token,
        server.url,
        server.graphql_url,
        pull=PULL,
        labeled=labeled,
    )
    return GitHubHost(target, lambda seconds: None)


def accepted(asked: GitHubHost) -> str:
    """Who accepts the head by the label that is on; nobody is empty."""
    found = asked.acceptance(LABEL)
    assert found is not None
    assert bool(found.by) is not bool(found.problem)
    return found.by


def notice(server: GitHubServer, head: str = HEAD) -> str:
    """The notice when the label accepts nothing."""
    found = host(server, head).acceptance(LABEL)
    assert found is not None
    assert found.by == ""
    return found.problem


def test_acceptance__by_who_put_the_label_on_this_head(server: GitHubServer) -> None:
    server.timeline.label(PULL, LABEL, "ada", 20)
    asked = host(server)
    assert asked.acceptance(LABEL) == Acceptance("ada", LABEL)
    assert asked.notices == ()


def test_acceptance__labels_are_compared_as_github_does(server: GitHubServer) -> None:
    server.timeline.label(PULL, "AgentEvals:Accept", "ada", 20)
    assert host(server).acceptance(LABEL) == Acceptance("ada", LABEL)


def test_acceptance__without_the_label_there_is_one_request_and_no_notice(
    server: GitHubServer,
) -> None:
    server.timeline.label(PULL, "documentation", "ada", 20)
    asked = host(server)
    assert asked.acceptance(LABEL) is None
    assert asked.notices == ()
    assert len(server.requests) == 1


def test_acceptance__nobody_is_asked_without_a_pull_request(server: GitHubServer) -> None:
    target = RunContext("acme/agent", HEAD, server.token, server.url, server.graphql_url)
    assert GitHubHost(target).acceptance(LABEL) is None
    assert server.requests == []


def test_acceptance__taken_off_and_put_on_again_counts_from_then(server: GitHubServer) -> None:
    course = server.timeline
    course.label(PULL, LABEL, "ada", 5)
    course.unlabel(PULL, LABEL, "ada", 20)
    assert host(server).acceptance(LABEL) is None
    course.label(PULL, LABEL, "grace", 21)
    assert host(server).acceptance(LABEL) == Acceptance("grace", LABEL)


def test_acceptance__ends_with_a_push(server: GitHubServer) -> None:
    server.timeline.label(PULL, LABEL, "ada", 5)
    assert notice(server) == (
        "The label `agentevals:accept` accepts nothing: the head has changed since @ada added it. "
        "To accept the regressions of this head, remove it and add it again."
    )


def test_acceptance__ends_with_a_force_push(server: GitHubServer) -> None:
    course = server.timeline
    course.label(PULL, LABEL, "ada", 20)
    course.push(PULL, OTHER, 30, forced=True)
    course.check(OTHER, 31)
    assert "the head has changed since @ada" in notice(server, OTHER)


def test_acceptance__a_commit_dated_before_the_label_is_not_accepted(
    server: GitHubServer,
) -> None:
    course = server.timeline
    course.label(PULL, LABEL, "ada", 20)
    course.push(PULL, OTHER, 30, dated=2)
    course.check(OTHER, 31)
    assert "no check of this head had started yet" in notice(server, OTHER)


def test_acceptance__a_head_that_was_left_and_came_back_is_not_the_one_that_was_accepted(
    server: GitHubServer,
) -> None:
    course = server.timeline
    course.push(PULL, FIRST, 15, forced=True, dated=-5)
    course.label(PULL, LABEL, "ada", 20)
    course.push(PULL, HEAD, 30, dated=10)
    course.check(HEAD, 31)
    assert "no check of this head had started yet" in notice(server)


@pytest.mark.parametrize("pull", [6, 70, 0])
def test_acceptance__a_check_of_the_same_commit_for_another_pull_request_proves_nothing(
    server: GitHubServer, pull: int
) -> None:
    # Attack: the commit was checked before, on a branch of the same name.
    course = server.timeline
    course.label(PULL, LABEL, "ada", 20)
    course.check(OTHER, 15, pull=pull)
    course.push(PULL, OTHER, 30, dated=2)
    assert "no check of this head had started yet" in notice(server, OTHER)


def test_acceptance__the_event_of_the_label_binds_it_to_its_head(server: GitHubServer) -> None:
    course = server.timeline
    course.push(PULL, OTHER, 30)
    course.label(PULL, LABEL, "ada", 31)
    assert "no check of this head had started yet" in notice(server, OTHER)
    assert accepted(host(server, OTHER, labeled="documentation")) == ""
    assert accepted(host(server, OTHER, labeled=LABEL)) == "ada"
    course.push(PULL, FIRST, 40, forced=True)
    assert accepted(host(server, OTHER, labeled=LABEL)) == ""
    assert accepted(host(server, FIRST)) == ""


def test_acceptance__a_run_of_an_older_head_is_not_accepted(server: GitHubServer) -> None:
    server.timeline.label(PULL, LABEL, "ada", 20)
    assert "the pull request has another head now" in notice(server, FIRST)


def test_acceptance__who_has_left_github_is_named_as_github_does(server: GitHubServer) -> None:
    server.timeline.label(PULL, LABEL, None, 20)
    assert host(server).acceptance(LABEL) == Acceptance("ghost", LABEL)


def test_acceptance__a_label_that_the_timeline_does_not_know_is_nobodys(
    server: GitHubServer,
) -> None:
    server.timeline.on[PULL] = {LABEL}
    assert "GitHub does not name who added it" in notice(server)


@pytest.mark.parametrize(("limit", "pages"), [(30, 4), (100, 2)])
def test_acceptance__all_pages_are_read(server: GitHubServer, limit: int, pages: int) -> None:
    course = server.timeline
    course.label(PULL, LABEL, "ada", 20)
    for minute in range(100):
        course.add(
            PULL, 21 + minute / 10, "commented", body="hm", user={"login": "ada"}, source=None
        )
    course.unlabel(PULL, LABEL, "ada", 40)
    course.label(PULL, LABEL, "grace", 41)
    server.page_limit = limit
    assert host(server).acceptance(LABEL) == Acceptance("grace", LABEL)
    assert len(server.routes("/timeline")) == pages


@pytest.mark.parametrize(
    ("permission", "grant"),
    [("pull-requests", "pull-requests: read"), ("checks", "checks: read")],
    ids=["timeline", "checks"],
)
def test_acceptance__a_refusal_accepts_nothing_and_names_the_permission(
    server: GitHubServer, permission: str, grant: str
) -> None:
    server.timeline.label(PULL, LABEL, "ada", 20)
    server.permissions |= {permission: "none", "issues": "none"}
    sentence = notice(server)
    assert sentence.startswith(
        "The label `agentevals:accept` accepts nothing, because the head it is for is unknown: "
    )
    assert f"Add `{grant}` to the `permissions:` of the job." in sentence


def test_acceptance__a_server_error_is_retried_and_then_reported(server: GitHubServer) -> None:
    server.timeline.label(PULL, LABEL, "ada", 20)
    server.break_route(InjectedFailure(r"/timeline", 502, 2, "Bad Gateway"))
    assert host(server).acceptance(LABEL) == Acceptance("ada", LABEL)
    server.break_route(InjectedFailure(r"/timeline", 502, 50, "Bad Gateway"))
    assert "GitHub did not respond correctly" in notice(server)


def test_acceptance__events_of_an_unexpected_structure_are_reported(
    server: GitHubServer,
) -> None:
    server.timeline.label(PULL, LABEL, "ada", 20)
    server.timeline.add(PULL, 21, "labeled", label={"name": LABEL}, actor="ada")
    assert "GitHub did not respond correctly" in notice(server)


def test_acceptance__a_working_tree_has_no_labels() -> None:
    assert Host().acceptance(LABEL) is None
