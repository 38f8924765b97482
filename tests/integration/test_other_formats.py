"""Files of other tools beside our suites: one warning in every command, and never a false green."""

import json
from pathlib import Path

import pytest

from tests.support import command
from tests.support.repositories import Repository

SUITE = """\
name: greeter
tests:
  - {id: greets, input: Ada, assert: [{type: contains, value: Ada, required: true}]}
"""
TARGETS = "targets: [{name: default, provider: cli, command: [cat]}]\n"
VALLY = "stimuli: [{name: a, prompt: Say hello}]\n"
AGENTV_5 = """\
providers: [llm]
prompts: ["{{ input }}"]
tests:
  - {id: greets, vars: {input: Ada}, assert: [{type: contains, value: Ada}]}
"""
WARNING = "skill/eval.yaml:1:1: this is an eval spec of Vally and no suite: it is not run"


@pytest.fixture
def repository(tmp_path: Path) -> Repository:
    """A suite, and on the branch `change` an eval spec of Vally as well."""
    files = {"evals/EVAL.yaml": SUITE, ".agentv/targets.yaml": TARGETS}
    made = Repository.create(tmp_path / "repository", files)
    made.git("checkout", "--quiet", "-b", "change")
    made.commit(
        "an eval spec of Vally", {"skill/eval.yaml": VALLY, "evals/EVAL.yaml": f"{SUITE}\n"}
    )
    return made


@pytest.mark.parametrize(
    "words", [("validate",), ("list",), ("run",), ("review", "--base", "main")]
)
def test_commands__warn_and_go_on(repository: Repository, words: tuple[str, ...]) -> None:
    done = command.run(repository.path, *words)

    assert done.code == 0, done.out + done.err
    assert (done.out + done.err).count(WARNING.partition(": ")[2]) == 1, done.out + done.err
    assert "own-runner.md" in done.out + done.err


def test_validate__the_document_has_the_warning(repository: Repository) -> None:
    done = command.run(repository.path, "validate", "--json")
    document = json.loads(done.out)

    assert (done.code, document["errors"]) == (0, [])
    assert [warning["path"] for warning in document["warnings"]] == ["skill/eval.yaml"]


@pytest.mark.parametrize(
    "words", [("validate",), ("run",), ("run", "skill/eval.yaml"), ("review", "--base", "HEAD~1")]
)
def test_no_suite__names_the_file_and_the_entry(tmp_path: Path, words: tuple[str, ...]) -> None:
    made = Repository.create(tmp_path / "repository", {"skill/eval.yaml": VALLY})
    made.commit("two", {"skill/eval.yaml": VALLY + "# edited\n"})
    done = command.run(made.path, *words)

    assert done.code == 2, done.out + done.err
    assert "there is no suite in this repository" in done.err
    assert WARNING in done.err
    assert "leaves out" not in done.err


def test_review__a_gate_that_becomes_another_tool_s_file_is_named_as_removed(
    repository: Repository,
) -> None:
    """The file keeps its name and its tests, and nothing runs it any more."""
    repository.commit("another format", {"evals/EVAL.yaml": AGENTV_5, "b/EVAL.yaml": SUITE})
    done = command.run(repository.path, "review", "--base", "main")

    assert "1 suite of the base was removed" in done.out
    assert "- suite `evals/EVAL.yaml`" in done.out
    assert "`evals/EVAL.yaml:1:1` this is a suite of AgentV 5 and no suite" in done.out


def test_review__an_entry_of_runners_takes_the_file_without_a_warning(
    repository: Repository,
) -> None:
    script = 'import sys\nopen(sys.argv[1], "w").write(\'{"evalId": "a", "verdict": "pass"}\\n\')\n'
    entry = (
        "runners: [{name: vally, results: agentevals, suites: [skill/eval.yaml], "
        'command: [python3, run.py, "{RESULTS}/results.jsonl"]}]\n'
    )
    repository.commit("a runner", {".agentevals.yaml": entry, "run.py": script})
    done = command.run(repository.path, "review", "--base", "main")

    assert done.code == 0, done.out + done.err
    assert "no suite" not in done.out
    rows = (repository.path / "agentevals-report/results.jsonl").read_text().splitlines()
    assert sorted(json.loads(row)["evalId"] for row in rows) == ["a", "greets"]
