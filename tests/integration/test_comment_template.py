"""The comment's template: that of the base."""

from collections.abc import Iterator
from pathlib import Path

import pytest

from tests.support import payloads
from tests.support.github_server import GitHubServer
from tests.support.job import Finished, Job
from tests.support.repositories import Files, pull_request

SUITE = """\
name: greeter
tests:
  - {id: greets, input: Ada, assert: [{type: contains, value: Ada, required: true}]}
"""
FILES: Files = {
    "EVAL.yaml": SUITE,
    ".agentv/targets.yaml": "targets: [{name: default, provider: cli, command: [sh, agent.sh], "
    "cwd: /}]\n",
    "agent.sh": "cat\n",
}
LATER = "takes effect after the merge"


def template(words: str) -> str:
    return f'{{% extends "comment.md.j2" %}}{{% block verdict %}}\n{words}\n{{% endblock %}}'


class Change:
    """A pull request whose workflow names the template `comment.j2`."""

    def __init__(self, folder: Path, server: GitHubServer) -> None:
        self._folder, self.server = folder, server

    def job(self, base: Files, head: Files) -> Job:
        pull = pull_request(
            self._folder / "origin", {**FILES, **base}, {"agent.sh": "cat #\n", **head}
        )
        self.server.add_pull(7, pull.head, pull.main)
        return Job(
            pull.checkout(self._folder / "workspace", pull.merge, 2).path,
            self.server,
            payloads.pull_request_event(pull.head, pull.main, 7),
            pull.merge,
            self._folder / "runner",
            inputs={"comment-template": "comment.j2", "confirm": "0", "baseline": "none"},
        )

    def finish(self, base: Files, head: Files) -> tuple[Finished, str]:
        """The finished job and its comment."""
        done = self.job(base, head).finish()
        (check,) = self.server.check_runs
        assert check.status == "completed"
        return done, self.server.comments[-1].body


@pytest.fixture
def change(tmp_path: Path) -> Iterator[Change]:
    with GitHubServer() as server:
        yield Change(tmp_path, server)


@pytest.mark.slow
def test_template__a_change_of_it_waits_for_the_merge(change: Change) -> None:
    done, comment = change.finish(
        {"comment.j2": template("Ours: {{ view.verdict }}")},
        {"comment.j2": template("All tests passed, @everyone")},
    )
    assert done.code == 0, done.log
    assert "Ours: **Passed:**" in comment
    assert "everyone" not in comment
    assert LATER in comment


@pytest.mark.slow
def test_template__an_agent_that_rewrites_it_changes_nothing(change: Change) -> None:
    words = "All tests passed, @everyone"
    attack = f"cat > /dev/null; echo no; echo '{template(words)}' > comment.j2\n"
    done, comment = change.finish({"comment.j2": template("Ours")}, {"agent.sh": attack})
    assert done.code == 1, done.log
    assert "Ours" in comment
    assert "everyone" not in comment
    assert LATER not in comment


def test_template__a_new_one_waits_for_the_merge(change: Change) -> None:
    done, comment = change.finish({}, {"comment.j2": template("All tests passed, @everyone")})
    assert done.code == 0, done.log
    assert "everyone" not in comment
    assert "**Passed:**" in comment
    assert LATER in comment


def test_template__a_change_can_repair_one_of_the_base(change: Change) -> None:
    done, comment = change.finish(
        {"comment.j2": "without the marker"}, {"comment.j2": template("Ours")}
    )
    assert done.code == 0, done.log
    assert "the base has none that can be used" in comment
    assert "Ours" not in comment


def test_template__one_that_fails_on_this_review_is_reported_by_the_default_one(
    change: Change,
) -> None:
    failing = (
        '{% extends "comment.md.j2" %}{% block suites %}'
        "{% if view.suites %}{{ view.suites.nothing.at.all }}{% endif %}{% endblock %}"
    )
    done, comment = change.finish({"comment.j2": failing}, {"comment.j2": failing})
    assert done.code == 2, done.log
    assert "comment.j2" in comment
