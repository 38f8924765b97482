"""The comment over real HTTP: found, updated, replaced, left alone; never doubled, never a
stranger's."""

from collections.abc import Iterator
from dataclasses import replace

import pytest

from agentevals_action.github.host import GitHubHost
from agentevals_action.model.comparison import Outcome
from agentevals_action.reports.publication import CommentReport
from tests.support import github_jobs
from tests.support.github_jobs import BASE, HEAD, pull_job
from tests.support.github_server import GitHubServer
from tests.support.github_world import ACTIONS, Account, Comment

NEXT = "c" * 40
STRANGER = Account("mallory", 102)
PASSED = CommentReport("All is well.", Outcome.PASSED, wanted=True)
FAILED = CommentReport("A gate failed.", Outcome.FAILED, wanted=True)


@pytest.fixture
def server() -> Iterator[GitHubServer]:
    with GitHubServer() as server:
        server.add_pull(7, HEAD, BASE)
        yield server


def no_wait(seconds: float) -> None:
    pass


def host(
    server: GitHubServer,
    run: int = 50,
    attempt: int = 1,
    head: str = HEAD,
    comment_id: str = "agentevals",
) -> GitHubHost:
    return github_jobs.host(server, no_wait, run, attempt, pull_job(head), comment_id=comment_id)


def text(comment: Comment) -> str:
    """What a reader sees."""
    return comment.body.partition("\n")[2]


def push(server: GitHubServer, head: str = NEXT) -> None:
    server.world.pull(7).head_sha = head


def test_comment__begins_with_a_hidden_marker(server: GitHubServer) -> None:
    url = host(server).publish_comment(FAILED)
    (comment,) = server.comments
    assert url == comment.url
    assert comment.author == ACTIONS
    marker, _, rest = comment.body.partition("\n")
    assert (
        marker
        == f'<!-- agentevals:v1 {{"id":"agentevals","run":50,"attempt":1,"head":"{HEAD}","outcome":"failed"}} -->'
    )
    assert rest == "A gate failed."


def test_comment__that_did_not_get_worse_is_updated_in_place(server: GitHubServer) -> None:
    first = host(server).publish_comment(FAILED)
    push(server)
    assert host(server, 51, head=NEXT).publish_comment(PASSED) == first
    (comment,) = server.comments
    assert (text(comment), comment.minimised, comment.edits) == ("All is well.", None, 1)


def test_comment__of_the_same_run_and_words_is_not_written_again(server: GitHubServer) -> None:
    first = host(server).publish_comment(FAILED)
    assert host(server).publish_comment(FAILED) == first
    assert server.comments[0].edits == 0


@pytest.mark.parametrize(
    ("before", "after", "replaced"),
    [
        (Outcome.PASSED, Outcome.INCONCLUSIVE, True),
        (Outcome.PASSED, Outcome.FAILED, True),
        (Outcome.INCONCLUSIVE, Outcome.FAILED, True),
        (Outcome.FAILED, Outcome.INVALID, True),
        (Outcome.FAILED, Outcome.FAILED, False),
        (Outcome.INVALID, Outcome.FAILED, False),
        (Outcome.FAILED, Outcome.INCONCLUSIVE, False),
        (Outcome.INCONCLUSIVE, Outcome.PASSED, False),
    ],
)
def test_comment__that_got_worse_is_replaced(
    server: GitHubServer, before: Outcome, after: Outcome, replaced: bool
) -> None:
    host(server).publish_comment(CommentReport("Before.", before, wanted=True))
    url = host(server, 51).publish_comment(CommentReport("After.", after, wanted=True))
    assert url == server.comments[-1].url
    assert [text(comment) for comment in server.comments] == (
        ["Before.", "After."] if replaced else ["After."]
    )
    assert [comment.minimised for comment in server.comments] == (
        ["OUTDATED", None] if replaced else [None]
    )


@pytest.mark.parametrize(
    ("standing", "outcome", "expected"),
    [
        (None, Outcome.FAILED, []),
        (Outcome.FAILED, Outcome.PASSED, ["Now."]),
        (Outcome.FAILED, Outcome.INVALID, ["Now."]),
        (Outcome.PASSED, Outcome.FAILED, ["Now."]),
        (Outcome.PASSED, Outcome.PASSED, ["Before."]),
    ],
)
def test_comment__that_is_not_wanted_is_never_created_nor_left_a_lie(
    server: GitHubServer, standing: Outcome | None, outcome: Outcome, expected: list[str]
) -> None:
    if standing is not None:
        host(server).publish_comment(CommentReport("Before.", standing, wanted=True))
    gate = host(server, 51)
    gate.publish_comment(CommentReport("Now.", outcome, wanted=False))
    assert [text(comment) for comment in server.comments] == expected
    assert gate.notices == ()


def test_comment__is_found_on_the_third_page(server: GitHubServer) -> None:
    for number in range(65):
        server.add_comment(7, STRANGER, f"Comment {number}")
    host(server).publish_comment(FAILED)
    for number in range(10):
        server.add_comment(7, STRANGER, f"Reply {number}")
    host(server, 51).publish_comment(PASSED)
    assert [comment.id for comment in server.comments if comment.author == ACTIONS] == [
        server.comments[65].id
    ]
    assert text(server.comments[65]) == "All is well."


def test_comment__of_a_stranger_with_our_marker_is_not_ours(server: GitHubServer) -> None:
    host(server).publish_comment(FAILED)
    forged = server.add_comment(
        7,
        STRANGER,
        server.comments[0].body.replace('"run":50', '"run":9999').replace("failed", "passed"),
    )
    server.world.comments.remove(server.world.comments[0])
    host(server, 51).publish_comment(FAILED)
    assert [comment.author for comment in server.comments] == [STRANGER, ACTIONS]
    assert (forged.edits, forged.minimised) == (0, None)


def test_comment__of_another_gate_is_left_alone(server: GitHubServer) -> None:
    host(server).publish_comment(FAILED)
    host(server, comment_id="nightly").publish_comment(PASSED)
    host(server, 51, comment_id="nightly").publish_comment(FAILED)
    assert [(text(comment), comment.minimised) for comment in server.comments] == [
        ("A gate failed.", None),
        ("All is well.", "OUTDATED"),
        ("A gate failed.", None),
    ]


def test_author__is_known_by_id_after_a_change_of_name(server: GitHubServer) -> None:
    server.world.viewer = Account("evals-bot", 77)
    host(server).publish_comment(FAILED)
    server.world.viewer = Account("evals-gate", 77)
    host(server, 51).publish_comment(PASSED)
    assert len(server.comments) == 1


def test_author__is_the_actions_bot_without_a_reply_of_graphql(server: GitHubServer) -> None:
    host(server).publish_comment(FAILED)
    server.add_comment(7, STRANGER, server.comments[0].body)
    server.graphql_refuses = "FORBIDDEN"
    host(server, 51).publish_comment(PASSED)
    assert [text(comment) for comment in server.comments] == ["All is well.", "A gate failed."]


def test_newer_head__is_never_overwritten(server: GitHubServer) -> None:
    push(server)
    gate = host(server)
    assert gate.publish_comment(FAILED) is None
    assert server.comments == ()
    assert gate.notices == (
        "The comment was not changed: the pull request has a newer commit than the reviewed one.",
    )


def test_head__that_came_back_is_reported_again(server: GitHubServer) -> None:
    push(server)
    host(server, 51, head=NEXT).publish_comment(FAILED)
    push(server, HEAD)
    assert host(server, 50, attempt=2).publish_comment(PASSED) is not None
    assert [text(comment) for comment in server.comments] == ["All is well."]


@pytest.mark.parametrize(
    ("standing", "ours", "written"),
    [
        ((50, 2), (50, 1), False),
        ((51, 1), (50, 1), False),
        ((50, 1), (50, 2), True),
        ((50, 1), (50, 1), True),
        ((50, 1), (51, 1), True),
        ((51, 1), (50, 2), True),  # somebody pressed "re-run" after both
    ],
)
def test_newer_run__of_the_same_head_is_not_overwritten(
    server: GitHubServer, standing: tuple[int, int], ours: tuple[int, int], written: bool
) -> None:
    host(server, *standing).publish_comment(FAILED)
    gate = host(server, *ours)
    assert (gate.publish_comment(PASSED) is not None) == written
    assert text(server.comments[0]) == ("All is well." if written else "A gate failed.")
    assert (gate.notices == ()) == written


def test_doubled__comments_of_an_earlier_race_are_hidden(server: GitHubServer) -> None:
    host(server).publish_comment(FAILED)
    server.add_comment(7, ACTIONS, server.comments[0].body)
    host(server, 51).publish_comment(PASSED)
    assert [comment.minimised for comment in server.comments] == ["OUTDATED", None]
    assert text(server.comments[1]) == "All is well."


def test_hiding__that_is_refused_stops_nothing(server: GitHubServer) -> None:
    host(server).publish_comment(PASSED)
    server.graphql_refuses = "FORBIDDEN"
    gate = host(server, 51)
    assert gate.publish_comment(FAILED) == server.comments[1].url
    assert [comment.minimised for comment in server.comments] == [None, None]
    assert gate.notices == (
        "An outdated comment could not be hidden: the token lacks `pull-requests: write` "
        "(GitHub replied 403: Resource not accessible by integration). Add `pull-requests: write` to the `permissions:` of the job.",
    )


def test_body__that_github_normalised_is_the_same(server: GitHubServer) -> None:
    host(server).publish_comment(replace(FAILED, body="one\ntwo"))
    server.world.comments[0].body = server.world.comments[0].body.replace("\n", "\r\n")
    host(server).publish_comment(replace(FAILED, body="one\ntwo"))
    assert server.comments[0].edits == 0
