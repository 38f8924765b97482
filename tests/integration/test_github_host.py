"""The GitHub host over real HTTP: check runs, changed files, refusals, limits; the comment has a
file of its own."""

from collections.abc import Iterator
from dataclasses import replace
from typing import Any

import pytest

from agentevals_action.github.host import GitHubHost
from agentevals_action.model.comparison import Outcome
from agentevals_action.reports.publication import Annotation, CheckReport, CommentReport
from tests.support import github_jobs
from tests.support.github_jobs import BASE, HEAD, pull_job
from tests.support.github_server import GitHubServer
from tests.support.github_world import CheckRun
from tests.support.stand_in import InjectedFailure

OTHER = "c" * 40
GREEN = CheckReport("success", "All 3 tests passed", "| suite |\n|---|\n| a |")
COMMENT = CommentReport("All is well.", Outcome.PASSED, wanted=True)
CHECKS = r"POST .*/check-runs$"


class Waits(list[float]):
    """The seconds that were to be waited; nobody waits."""

    def __call__(self, seconds: float) -> None:
        self.append(seconds)


@pytest.fixture
def server() -> Iterator[GitHubServer]:
    with GitHubServer() as server:
        server.add_pull(7, HEAD, BASE)
        yield server


@pytest.fixture
def waits() -> Waits:
    return Waits()


def host(server: GitHubServer, waits: Waits, **facts: Any) -> GitHubHost:
    return github_jobs.host(server, waits, **facts)


def annotation(number: int, path: str = "evals/EVAL.yaml") -> Annotation:
    return Annotation(path, number, "failure", f"Gate {number}", f"The gate {number} failed.")


def lines(check: CheckRun) -> list[int]:
    return [shown["start_line"] for shown in check.annotations]


def test_check__is_written_once_with_its_annotations(server: GitHubServer, waits: Waits) -> None:
    gate = host(server, waits)
    url = gate.write_check(replace(GREEN, annotations=(annotation(3),)))
    (check,) = server.check_runs
    assert url == check.url
    assert (check.status, check.conclusion, check.head_sha, check.name) == (
        "completed",
        "success",
        HEAD,
        "agentevals",
    )
    assert (check.title, check.summary) == (GREEN.title, GREEN.summary)
    assert check.details_url == "https://github.com/acme/agent/actions/runs/50/attempts/1"
    assert check.annotations == [
        {
            "path": "evals/EVAL.yaml",
            "start_line": 3,
            "end_line": 3,
            "annotation_level": "failure",
            "title": "Gate 3",
            "message": "The gate 3 failed.",
        }
    ]
    assert server.routes() == ["POST /repos/acme/agent/check-runs"]
    assert gate.notices == ()
    assert waits == []


def test_check__of_a_run_that_crashes_after_it_is_replaced(
    server: GitHubServer, waits: Waits
) -> None:
    gate = host(server, waits)
    gate.write_check(replace(GREEN, annotations=(annotation(1),)))
    gate.write_check(CheckReport("failure", "The action crashed", "See the log."))
    (check,) = server.check_runs
    assert (check.conclusion, check.title, lines(check)) == ("failure", "The action crashed", [1])


def test_annotations__go_fifty_a_request(server: GitHubServer, waits: Waits) -> None:
    gate = host(server, waits)
    gate.write_check(
        replace(GREEN, annotations=tuple(annotation(number) for number in range(1, 121)))
    )
    (check,) = server.check_runs
    assert lines(check) == list(range(1, 121))
    assert [len(request.body["output"]["annotations"]) for request in server.requests] == [
        50,
        50,
        20,
    ]
    assert waits == [1.0, 1.0]


def test_annotations__that_github_rejects_do_not_prevent_the_conclusion(
    server: GitHubServer, waits: Waits
) -> None:
    server.world.tree = {"evals/EVAL.yaml"}
    gate = host(server, waits)
    found = (annotation(1), annotation(2, "gone.yaml"))
    gate.write_check(CheckReport("failure", "2 gates failed", "Why.", found))
    (check,) = server.check_runs
    assert (check.conclusion, check.summary, lines(check)) == ("failure", "Why.", [])
    assert gate.notices == (
        "The check run is not complete: GitHub refused it (422: Invalid request., gone.yaml is not in the tree of the commit).",
    )


def test_annotations__are_made_fit(server: GitHubServer, waits: Waits) -> None:
    gate = host(server, waits)
    odd = (
        Annotation("a.yaml", 0, "warning", "t" * 400, "é" * 70_000),
        Annotation("a.yaml", 2, "warning", "", ""),
        Annotation("", 3, "warning", "x", "y"),
        Annotation("/etc/passwd", 3, "warning", "x", "y"),
    )
    gate.write_check(replace(GREEN, annotations=odd))
    (check,) = server.check_runs
    assert lines(check) == [1, 2]
    assert (len(check.annotations[0]["title"]), len(check.annotations[0]["message"])) == (
        255,
        32_768,
    )


def test_conclusion__survives_a_rejected_summary(server: GitHubServer, waits: Waits) -> None:
    gate = host(server, waits)
    server.break_route(InjectedFailure(CHECKS, 422, message="Validation Failed"))
    gate.write_check(replace(GREEN, conclusion="failure"))
    (check,) = server.check_runs
    assert (check.conclusion, check.title) == ("failure", GREEN.title)
    assert "job summary" in (check.summary or "")


CANCELLED = CheckReport("cancelled", "The run was cancelled", "Nothing is known.")


def test_cancelled__is_written_once(server: GitHubServer, waits: Waits) -> None:
    host(server, waits).cancel_check(CANCELLED)
    assert [check.conclusion for check in server.check_runs] == ["cancelled"]
    server.world.check_runs.clear()
    gate = host(server, waits)
    gate.write_check(GREEN)
    gate.cancel_check(CANCELLED)
    assert [check.conclusion for check in server.check_runs] == ["success"]


def test_cancelled__does_not_wait_for_a_server_that_is_silent(
    server: GitHubServer, waits: Waits
) -> None:
    server.break_route(InjectedFailure(CHECKS, -1))
    host(server, waits).cancel_check(CANCELLED, seconds=0.2)
    assert server.check_runs == ()


def test_refusal__of_the_check_names_the_permission(server: GitHubServer, waits: Waits) -> None:
    server.permissions["checks"] = "read"
    gate = host(server, waits)
    assert gate.write_check(GREEN) is None
    assert gate.notices == (
        "The check run could not be written: the token lacks `checks: write` (GitHub replied 403: Resource not accessible by integration). "
        "Add `checks: write` to the `permissions:` of the job.",
    )
    assert len(server.routes(CHECKS)) == 1
    assert waits == []


@pytest.mark.parametrize(
    ("reason", "advice"),
    [
        (
            "the pull request comes from a fork, which gets no secrets",
            "and its token is read-only, whatever the workflow grants",
        ),
        (
            "the run was started by Dependabot, which gets no secrets",
            "add `pull-requests: write` to the `permissions:` of the job",
        ),
    ],
)
def test_refusal__of_the_comment_names_who_has_no_secrets(
    server: GitHubServer, waits: Waits, reason: str, advice: str
) -> None:
    server.permissions |= {"pull-requests": "read", "issues": "none"}
    gate = host(server, waits, job=pull_job(without_secrets=reason))
    assert gate.publish_comment(COMMENT) is None
    (notice,) = gate.notices
    assert notice.startswith(
        "The comment could not be written: the token lacks `pull-requests: write` (GitHub replied 403: "
    )
    assert reason[1:] in notice
    assert advice in notice


def test_refusal__of_a_locked_conversation_blames_no_permission(
    server: GitHubServer, waits: Waits
) -> None:
    server.break_route(
        InjectedFailure(
            "POST .*/comments", 403, message="Unable to create comment because issue is locked."
        )
    )
    gate = host(server, waits)
    gate.publish_comment(COMMENT)
    assert gate.notices == (
        "The comment could not be written: GitHub refused it (403: Unable to create comment because issue is locked.).",
    )


@pytest.mark.parametrize("token", ["", "wrong"])
def test_refusal__of_the_token_is_reported_as_one(
    server: GitHubServer, waits: Waits, token: str | None
) -> None:
    gate = host(server, waits, token=token)
    assert gate.write_check(GREEN) is None
    assert len(gate.notices) == 1
    assert "GitHub does not accept the token" in gate.notices[0]


def test_merge_base__is_githubs(server: GitHubServer, waits: Waits) -> None:
    server.world.merge_base = OTHER
    assert host(server, waits).merge_base() == OTHER
    assert server.routes() == [f"GET /repos/acme/agent/compare/{BASE}...{HEAD}"]
