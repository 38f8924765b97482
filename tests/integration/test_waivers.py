"""Failures that do not block: quarantine by the file of the base, regressions by a label for one head."""

import json
import re
from collections.abc import Iterator
from datetime import UTC, datetime, timedelta
from pathlib import Path

import pytest
import yaml

from tests.support import command, payloads
from tests.support.gate import Gate, opened
from tests.support.job import Finished
from tests.support.repositories import Files, Repository

SUITE = """\
name: greeter
tests:
  - {id: greets, input: Ada, assert: [{type: contains, value: hello}]}
  - {id: gated, input: Bob, assert: [{name: polite, type: contains, value: "please", required: true}]}
"""
LABEL = "agentevals:accept"


def agent(ada: str = "hello Ada", bob: str = "please, Bob") -> str:
    """Targets whose answers are known."""
    return f"targets: [{{name: default, provider: mock, responses: [{{pattern: Ada, response: '{ada}'}}, {{pattern: Bob, response: '{bob}'}}]}}]\n"


def quarantine(tests: str, days: int = 2) -> str:
    expires = (datetime.now(UTC) + timedelta(days=days)).date().isoformat()
    return f"quarantine:\n  - {{tests: {tests}, owner: grace, reason: flaky, expires: {expires}}}\n"


BASE: Files = {
    "EVAL.yaml": SUITE,
    ".agentv/targets.yaml": agent(),
    ".gitignore": "/agentevals-report/\n",
}
RUDE: Files = {".agentv/targets.yaml": agent(bob="Bob")}


def review(tmp_path: Path, base: Files, change: Files) -> command.Done:
    repository = Repository.create(tmp_path / "repository", {**BASE, **base})
    repository.git("checkout", "--quiet", "-b", "change")
    repository.commit("change", change)
    return command.run(repository.path, "review", "--base", "main", "--baseline", "rerun")


def test_run__a_failed_gate_in_quarantine_is_reported_and_does_not_block(tmp_path: Path) -> None:
    repository = Repository.create(tmp_path / "repository", {**BASE, **RUDE})
    assert command.run(repository.path, "run").code == 1
    repository.write({".agentevals.yaml": quarantine("gate*")})
    done = command.run(repository.path, "run", "--min-pass-rate", "1")
    assert done.code == 0, done.out + done.err
    (waived,) = json.loads((repository.path / "agentevals-report/summary.json").read_text())[
        "waived"
    ]
    assert waived.startswith("1 test in quarantine does not count (1 fail): owner grace, until ")
    assert waived in done.out
    assert "required gate failed" in done.out


def test_run__an_expired_entry_is_an_error_and_nothing_runs(tmp_path: Path) -> None:
    expired = {".agentevals.yaml": quarantine("gated", days=-1)}
    repository = Repository.create(tmp_path / "repository", {**BASE, **expired})
    done = command.run(repository.path, "run")
    assert done.code == 2
    assert ".agentevals.yaml:2:" in done.err
    assert "the quarantine of 'gated' expired on" in done.err
    assert not (repository.path / "agentevals-report/results.jsonl").exists()


def test_quarantine__of_the_base_lets_a_failed_gate_pass_and_is_reported(tmp_path: Path) -> None:
    done = review(tmp_path, {".agentevals.yaml": quarantine("gated")}, RUDE)
    assert done.code == 0, done.out + done.err
    assert "; 1 test in quarantine." in done.out


def test_quarantine__of_the_change_itself_does_not_hold_and_is_listed(tmp_path: Path) -> None:
    done = review(tmp_path, {}, {**RUDE, ".agentevals.yaml": quarantine("gated")})
    assert done.code == 1, done.out + done.err
    assert "takes effect once it is merged" in done.out


def test_quarantine__that_has_expired_is_an_error_until_a_change_mends_it(tmp_path: Path) -> None:
    old: Files = {".agentevals.yaml": quarantine("gated", days=-1)}
    done = review(tmp_path / "left", old, {".agentv/targets.yaml": agent(ada="hello, Ada")})
    assert done.code == 2, done.out + done.err
    assert "expired on" in done.out
    mended = review(
        tmp_path / "mended",
        old,
        {".agentv/targets.yaml": agent(ada="hello, Ada"), ".agentevals.yaml": quarantine("gated")},
    )
    assert mended.code == 0, mended.out + mended.err


def test_quarantine__a_known_failure_has_the_entry_to_paste_owned_by_the_author(
    tmp_path: Path,
) -> None:
    sad = {".agentv/targets.yaml": agent(ada="Ada?")}
    change = {".agentv/targets.yaml": agent(ada="Ada!")}
    with opened(tmp_path, {**BASE, **sad}, change, inputs={"baseline": "rerun"}) as gate:
        run(gate)
        comment = gate.comments()[0]
    proposed = re.search(r"```text\n(quarantine:.*?)```", comment, re.DOTALL)
    assert proposed is not None, comment
    (entry,) = yaml.safe_load(proposed[1])["quarantine"]
    assert (entry["tests"], entry["suites"], entry["owner"]) == (["greets"], ["EVAL.yaml"], "@ada")
    today = datetime.now(UTC).date()  # the run may have begun on the day before
    assert entry["expires"] - timedelta(days=14) in (today, today - timedelta(days=1))


@pytest.fixture
def gate(tmp_path: Path) -> Iterator[Gate]:
    """A change after which Ada is not greeted any more."""
    change = {".agentv/targets.yaml": agent(ada="Ada?")}
    with opened(tmp_path, BASE, change, inputs={"baseline": "rerun"}) as gate:
        yield gate


def run(gate: Gate, action: str = "synchronize") -> Finished:
    """The next run of the workflow; `labeled` and `unlabeled` are by ada."""
    event = payloads.pull_request_event(gate.pull.head, gate.pull.main, action=action)
    if action in ("labeled", "unlabeled"):
        gate.announced.labels = {LABEL} if action == "labeled" else set()
        event |= {"label": {"name": LABEL}, "sender": payloads.user("ada")}
    return gate.job(event=event).finish()


def test_quarantine__a_glob_that_matches_no_test_is_named(tmp_path: Path) -> None:
    base = {**BASE, ".agentevals.yaml": quarantine("[gatde, greets]")}
    change = {".agentv/targets.yaml": agent(ada="hello, Ada")}
    with opened(tmp_path, base, change, inputs={"baseline": "rerun"}) as gate:
        done = run(gate)
        assert done.code == 0, done.log
        (check,) = gate.server.check_runs
        for text in (gate.comments()[0], check.summary, done.log):
            assert (text or "").count("no test matches") == 1, text
    assert ".agentevals.yaml:2:5: no test matches `gatde`, which is in quarantine" in done.log


def test_accepting__a_regression_passes_for_this_head_and_no_longer(gate: Gate) -> None:
    assert run(gate).code == 1
    done = run(gate, "labeled")
    assert done.code == 0, done.log
    assert "1 regression accepted by" in done.summary
    again = run(gate)  # the marker of the comment has the commit
    assert again.code == 0, again.log
    gate.push({".agentv/targets.yaml": agent(ada="Ada!")})
    later = run(gate)  # worse, so that this is a new comment, which has the commit of the old one
    assert later.code == 1, later.log
    assert "added it for" in later.summary
    assert run(gate).code == 1
    assert run(gate, "labeled").code == 0


def test_accepting__ends_with_the_label(gate: Gate) -> None:
    assert run(gate, "labeled").code == 0
    assert run(gate, "unlabeled").code == 1
    gate.announced.labels = {LABEL}  # no run of this event
    done = run(gate)
    assert done.code == 1, done.log
    assert "the commit that it was added for is not known" in done.summary
    assert "remove the label and add it again" in done.summary


def test_accepting__never_a_failed_gate(gate: Gate) -> None:
    gate.push({".agentv/targets.yaml": agent(ada="Ada!", bob="Bob")})
    done = run(gate, "labeled")
    assert done.code == 1, done.log
    assert "required gate" in done.summary


def test_accepting__a_refusal_blocks_and_says_what_to_grant(gate: Gate) -> None:
    gate.announced.labels = {LABEL}
    gate.server.permissions |= {"pull-requests": "none", "issues": "none"}
    done = run(gate)
    assert done.code == 1, done.log
    assert "pull-requests: read" in done.summary


def test_quarantine__that_an_agent_writes_into_both_trees_does_not_hold(tmp_path: Path) -> None:
    # Attack: the failed gate's own agent declares the quarantine, in head's tree and in base's.
    agent = (
        "import glob, os, pathlib, sys\n"
        f"text = {quarantine('gated')!r}\n"
        "trees = glob.glob(os.environ['TMPDIR'] + '/agentevals-tree-*/agentevals-tree-*')\n"
        "pathlib.Path('trees').write_text(str(trees))\n"
        "for tree in (*trees, '.'):\n"
        "    pathlib.Path(tree, '.agentevals.yaml').write_text(text)\n"
        "print('hello', sys.argv[1])\n"
    )
    targets = "targets: [{name: default, provider: cli, command: [python3, agent.py, '{PROMPT}']}]"
    base = {".agentv/targets.yaml": targets, "agent.py": "print('hello, please')\n"}
    temp = tmp_path / "temp"
    temp.mkdir()
    repository = Repository.create(tmp_path / "repository", {**BASE, **base})
    repository.git("checkout", "--quiet", "-b", "change")
    repository.commit("change", {"agent.py": agent})
    done = command.run(
        repository.path,
        *("review", "--base", "main", "--baseline", "rerun"),
        env={"TMPDIR": str(temp)},
    )
    assert done.code == 1, done.out + done.err
    assert (repository.path / ".agentevals.yaml").exists()
    assert "agentevals-tree-" in (repository.path / "trees").read_text()
    assert "In quarantine" not in done.out
