"""Edits beside a broken agent: one change breaks the agent and replaces what answers, or relaxes
what scores. The review names each edit, and scores head's answers with base's evaluators too."""

import json
from pathlib import Path
from typing import Any

import pytest

from tests.support import command
from tests.support.repositories import Files, Repository

SUITE = """\
name: greeter
tests:
  - id: greets
    criteria: greets by name
    input: Ada
    assert:
      - {name: by-name, type: contains, value: Ada, required: 0.9}
      - {name: check, type: code_judge, script: [python3, check.py], required: true}
"""
TARGETS = """\
targets:
  - {name: default, provider: cli, command: [sh, agent.sh], cwd: /}
  - name: fake
    provider: mock
    responses: [{pattern: ".*", response: "Good day, Ada."}]
"""
MOCK = """\
targets:
  - name: default
    provider: mock
    responses: [{pattern: ".*", response: "Good day, Ada."}]
"""
CHECK = """\
import json, sys
from lib.rules import is_polite
answer = json.load(sys.stdin)["output"]
print(json.dumps({"score": float(is_polite(answer)), "hits": [], "misses": [answer]}))
"""
#: The gate is scored by a model.
JUDGED = SUITE.replace("type: code_judge, script: [python3, check.py]", "type: llm_judge")
LAX = "def is_polite(answer):\n    return True\n"
FILES: Files = {
    "evals/EVAL.yaml": SUITE,
    "evals/check.py": CHECK,
    "evals/lib/rules.py": "def is_polite(answer):\n    return 'Good day' in answer\n",
    ".agentv/targets.yaml": TARGETS,
    "agent.sh": 'read name; echo "Good day, $name."\n',
    ".gitignore": "/agentevals-report/\n__pycache__/\n",
}
#: The agent gives the name and is not polite any more, or forgets the name.
IMPOLITE = {"agent.sh": 'read name; echo "Yo $name"\n'}
NAMELESS = {"agent.sh": 'echo "Good day."\n'}


@pytest.fixture
def repository(tmp_path: Path) -> Repository:
    made = Repository.create(tmp_path / "repository", FILES)
    made.git("checkout", "--quiet", "-b", "change")
    return made


def review(repository: Repository, *options: str) -> tuple[str, dict[str, Any]]:
    """The comment of a review that passes, and the first suite of its summary."""
    done = command.run(repository.path, "review", "--base", "main", *options)
    assert done.code == 0, done.out + done.err
    summary = json.loads((repository.path / "agentevals-report/summary.json").read_text())
    return done.out, summary["suites"][0]


def add_judge(repository: Repository, suite: str, judge: str, files: Files | None = None) -> str:
    """Adds the target `judge` (its fields in YAML) and a suite that uses it to the base. Returns
    the targets file."""
    targets = TARGETS.replace("cwd: /}", "cwd: /, judge_target: judge}")
    targets += f"  - {{name: judge, {judge}}}\n"
    added: Files = {"evals/EVAL.yaml": suite, ".agentv/targets.yaml": targets, **(files or {})}
    repository.git("checkout", "--quiet", "main")
    repository.commit("a judge", added)
    repository.git("checkout", "--quiet", "-B", "change")
    return targets


def edited(old: str, new: str, path: str = "evals/EVAL.yaml") -> Files:
    text = FILES[path]
    assert isinstance(text, str)
    assert text.count(old) == 1
    return {path: text.replace(old, new)}


@pytest.mark.parametrize(
    ("files", "line"),
    [
        pytest.param(
            {".agentv/targets.yaml": MOCK},
            "target `default` of `greets` changed at `.agentv/targets.yaml:2`",
            id="the target's entry",
        ),
        pytest.param(
            {"evals/.agentv/targets.yaml": MOCK},
            "target `default` of `greets` changed at `evals/.agentv/targets.yaml:2`",
            id="a nearer targets file",
        ),
    ],
)
def test_review__a_replaced_target_is_named(
    repository: Repository, files: Files, line: str
) -> None:
    repository.commit("broken", {**files, **NAMELESS})
    out, suite = review(repository)
    alert = out.split("\n\n")[0]
    assert "[!IMPORTANT]" in alert
    assert "1 target was changed." in alert
    assert "### 1 target was changed" in out
    assert f"- {line}\n" in out
    (edit,) = suite["edits"]
    assert (edit["kind"], edit["tests"]) == ("target", ["greets"])


def test_review__a_target_of_several_suites_is_one_edit(repository: Repository) -> None:
    repository.git("checkout", "--quiet", "main")
    others: Files = {f"evals/{name}.eval.yaml": SUITE for name in "abcde"}
    repository.commit("suites", others)
    repository.git("checkout", "--quiet", "-B", "change")
    repository.commit("mock", {".agentv/targets.yaml": MOCK})
    out, suite = review(repository)
    assert "; 1 target was changed." in out.split("\n\n")[0]
    line = "- target `default` of 6 tests changed at `.agentv/targets.yaml:2`\n"
    assert f"### 1 target was changed\n\n{line}" in out
    assert suite["edits"][0]["tests"] == ["greets"]


@pytest.mark.parametrize(
    ("agent", "files", "gate", "line"),
    [
        pytest.param(
            NAMELESS,
            edited("value: Ada", "value: Good"),
            "by-name",
            7,
            id="value",
        ),
        pytest.param(
            IMPOLITE,
            {"evals/lib/rules.py": LAX},
            "check",
            8,
            id="what the judge imports",
        ),
    ],
)
def test_review__a_relaxed_gate_is_named_and_base_s_evaluators_score_the_answer(
    repository: Repository, agent: Files, files: Files, gate: str, line: int
) -> None:
    repository.commit("broken", {**files, **agent})
    out, suite = review(repository)
    alert = out.split("\n\n")[0]
    assert "[!IMPORTANT]" in alert
    changed = "1 test passes only with the changed evaluators; 1 required gate was changed."
    assert changed in alert
    assert f"- required gate `{gate}` of `greets` changed at `evals/EVAL.yaml:{line}`\n" in out
    assert f"required gate `{gate}` would fail" in out
    (test,) = suite["tests"]
    assert test["byBaseEvaluators"]["gatesFailed"] == [gate]
    assert test["byBaseEvaluators"]["verdict"] == "fail"


def test_review__a_test_that_fails_all_the_same_does_not_pass_by_edits(
    repository: Repository,
) -> None:
    """Accident: a test that fails on both sides was listed as one that passes."""
    repository.git("checkout", "--quiet", "main")
    repository.commit("impolite", IMPOLITE)
    repository.git("checkout", "--quiet", "-B", "change")
    repository.commit("no gate", edited("check.py], required: true", "check.py]"))
    out, _ = review(repository)
    assert "1 fail; none regressed; 1 required gate of the base was removed." in out
    assert "only with the changed evaluators" not in out


def test_review__a_replaced_judge_is_named(repository: Repository) -> None:
    reply = '{"score": 0.1, "misses": ["is rude"]}'
    judge = f"provider: mock, responses: [{{pattern: '(?s).*', response: '{reply}'}}]"
    targets = add_judge(repository, JUDGED, judge)
    repository.commit("kind", {".agentv/targets.yaml": targets.replace("0.1", "1.0")})
    out, suite_ = review(repository)
    assert "target `judge` of `greets` changed at `.agentv/targets.yaml:6`" in out
    # Base's own answer failed it too, so the change may correct the judge.
    assert "required gate `check` would fail (on base too)" in out
    assert suite_["tests"][0]["byBaseEvaluators"]["failedOnBase"] == ["check"]


def test_review__a_judge_of_two_evaluators_of_a_test_is_one_edit_of_one_test(
    repository: Repository,
) -> None:
    suite = JUDGED.replace("type: contains, value: Ada, required: 0.9", "type: llm_judge")
    judge = "provider: mock, responses: [{pattern: '(?s).*', response: '{\"score\": 0.9}'}]"
    targets = add_judge(repository, suite.replace(", required: true", ""), judge)
    repository.commit("kind", {".agentv/targets.yaml": targets.replace("0.9", "1.0")})
    out, suite_ = review(repository)
    assert "target `judge` of `greets` changed at `.agentv/targets.yaml:6`" in out
    assert [edit["tests"] for edit in suite_["edits"]] == [["greets"]]


def test_review__what_the_program_of_a_judge_imports_is_an_edit(repository: Repository) -> None:
    score = "import json\nfrom scores import SCORE\nprint(json.dumps({'score': SCORE}))\n"
    files: Files = {"judge.py": score, "scores.py": "SCORE = 0.1\n"}
    add_judge(repository, JUDGED, "provider: cli, command: [python3, judge.py], cwd: /", files)
    repository.commit("kind", {"scores.py": "SCORE = 1.0\n"})
    out, suite_ = review(repository)
    assert "target `judge` of `greets` changed at `.agentv/targets.yaml:6`" in out
    assert "changed: scores.py (judge.py imports scores.py)" in out
    assert suite_["tests"][0]["byBaseEvaluators"]["failedOnBase"] == ["check"]


def test_review__base_s_evaluators_need_base_prepared(repository: Repository) -> None:
    """A baseline from a file does not prepare base; the programs of base's judges need it."""
    rules = repository.path / "evals/lib/rules.py"
    repository.git("checkout", "--quiet", "main")
    repository.commit(
        "rules are built", {"evals/lib/rules.py": None, "evals/rules.txt": rules.read_text()}
    )
    build = "mkdir -p evals/lib && cp evals/rules.txt evals/lib/rules.py"
    repository.git("checkout", "--quiet", "-B", "change")
    repository.commit(
        "lax", {"evals/check.py": CHECK.replace("(is_polite(answer))", "(1)")} | IMPOLITE
    )
    out, _ = review(repository, "--baseline", "none", "--prepare", build)
    assert "required gate `check` would fail" in out


@pytest.mark.parametrize(
    "files",
    [
        pytest.param(
            {"agent.sh": 'read name; echo "Good day to you, $name."\n'}, id="the agent's program"
        ),
        pytest.param(edited("    input", "    note:\n    input"), id="an empty field"),
    ],
)
def test_review__what_is_no_edit(repository: Repository, files: Files) -> None:
    repository.commit("other words", files)
    done = command.run(repository.path, "review", "--base", "main")
    summary = json.loads((repository.path / "agentevals-report/summary.json").read_text())
    assert summary["suites"][0]["edits"] == []
    assert "changed." not in done.out.split("\n\n")[0]


def test_review__a_helper_that_a_judge_imports_selects_the_suite_alone(
    repository: Repository,
) -> None:
    repository.commit("lax", {"evals/lib/rules.py": LAX})
    out, _ = review(repository)
    assert "changed: evals/lib/rules.py (evals/check.py imports evals/lib/rules.py)" in out
    repository.git("checkout", "--quiet", "main")
    repository.commit("none", {"evals/lib/other.py": "x = 1\n"})
    done = command.run(repository.path, "list", "--base", "HEAD~1", "--watch", ".gitignore")
    assert "the change affects no suite" in done.out, done.err
