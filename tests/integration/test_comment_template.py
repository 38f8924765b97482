"""The comment's template: that of the base, rendered in a process that can be killed."""

import signal
import time
from collections.abc import Iterator
from pathlib import Path

import pytest

from tests.support import payloads
from tests.support.github_server import GitHubServer
from tests.support.github_world import file
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
ENDLESS = (
    "{{ view.marker }}\n"
    "{% for a in range(99999) %}{% for b in range(99999) %}{% endfor %}{% endfor %}"
)


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
        self.server.add_pull(7, pull.head, pull.main, [file("agent.sh"), file("comment.j2")])
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


@pytest.mark.slow
def test_template__one_that_does_not_end_is_an_error(change: Change) -> None:
    done, comment = change.finish({"comment.j2": template("Ours")}, {"comment.j2": ENDLESS})
    assert (done.code, done.outputs["outcome"]) == (2, "invalid"), done.log
    assert "took longer than" in comment
    assert change.server.check_runs[0].conclusion == "failure"


def test_template__a_change_can_repair_one_of_the_base(change: Change) -> None:
    done, comment = change.finish(
        {"comment.j2": "without the marker"}, {"comment.j2": template("Ours")}
    )
    assert done.code == 0, done.log
    assert "loses the marker" in comment
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


def test_template__one_that_does_not_end_does_not_stop_a_signal(change: Change) -> None:
    job = change.job({"comment.j2": template("Ours")}, {"comment.j2": ENDLESS})
    process = job.start()
    deadline = time.monotonic() + 90
    while not children_of(process.pid, "template_process"):
        assert process.poll() is None, process.communicate()
        assert time.monotonic() < deadline
        time.sleep(0.02)
    process.send_signal(signal.SIGINT)
    log, _ = process.communicate(timeout=60)
    assert process.returncode == 130, log
    assert [(check.status, check.conclusion) for check in change.server.check_runs] == [
        ("completed", "cancelled")
    ]
    assert not children_of(process.pid, "template_process")


def children_of(parent: int, word: str) -> list[int]:
    """The running children of a process whose command line contains a word."""
    found = []
    for status in Path("/proc").glob("[0-9]*/status"):
        try:
            text = status.read_text()
            command = (status.parent / "cmdline").read_bytes()
        except OSError:  # it ended
            continue
        if f"PPid:\t{parent}\n" in text and word.encode() in command:
            found.append(int(status.parent.name))
    return found
