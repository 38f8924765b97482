"""The comment's template: that of the base."""

from pathlib import Path

import pytest

from tests.support.gate import opened
from tests.support.job import Finished
from tests.support.repositories import Files

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


def review(folder: Path, base: Files, head: Files) -> tuple[Finished, str]:
    """The job of a pull request whose workflow names the template `comment.j2`, and its comment."""
    inputs = {"comment-template": "comment.j2", "confirm": "0", "baseline": "none"}
    change = {"agent.sh": "cat #\n", **head}
    with opened(folder, {**FILES, **base}, change, inputs=inputs) as gate:
        done = gate.job().finish()
        (check,) = gate.server.check_runs
        assert check.status == "completed"
        return done, gate.comments()[-1]


@pytest.mark.slow
def test_template__a_change_of_it_waits_for_the_merge(tmp_path: Path) -> None:
    done, comment = review(
        tmp_path,
        {"comment.j2": template("Ours: {{ parts.verdict() }}")},
        {"comment.j2": template("All tests passed, @everyone")},
    )
    assert done.code == 0, done.log
    assert "Ours: **Passed:**" in comment
    assert "everyone" not in comment
    assert LATER in comment


@pytest.mark.slow
def test_template__an_agent_that_rewrites_it_changes_nothing(tmp_path: Path) -> None:
    words = "All tests passed, @everyone"
    attack = f"cat > /dev/null; echo no; echo '{template(words)}' > comment.j2\n"
    done, comment = review(tmp_path, {"comment.j2": template("Ours")}, {"agent.sh": attack})
    assert done.code == 1, done.log
    assert "Ours" in comment
    assert "everyone" not in comment
    assert LATER not in comment


def test_template__a_new_one_waits_for_the_merge(tmp_path: Path) -> None:
    done, comment = review(tmp_path, {}, {"comment.j2": template("All tests passed, @everyone")})
    assert done.code == 0, done.log
    assert "everyone" not in comment
    assert "**Passed:**" in comment
    assert LATER in comment


def test_template__a_change_can_repair_one_of_the_base(tmp_path: Path) -> None:
    done, comment = review(
        tmp_path, {"comment.j2": "without the marker"}, {"comment.j2": template("Ours")}
    )
    assert done.code == 0, done.log
    assert "the base has none that can be used" in comment
    assert "Ours" not in comment


def test_template__one_that_fails_on_this_review_is_reported_by_the_default_one(
    tmp_path: Path,
) -> None:
    failing = (
        '{% extends "comment.md.j2" %}{% block suites %}'
        "{% if table %}{{ table.nothing.at.all }}{% endif %}{% endblock %}"
    )
    done, comment = review(tmp_path, {"comment.j2": failing}, {"comment.j2": failing})
    assert done.code == 2, done.log
    assert "comment.j2" in comment
