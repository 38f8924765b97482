"""The commands of the command line, in repositories with suites of runners, alone and beside our
own."""

import json
import shutil
from collections.abc import Sequence
from pathlib import Path
from typing import Any

import pytest
import yaml

from tests.support import command
from tests.support.repositories import Files, Repository

EXAMPLE = Path(__file__).resolve().parents[2] / "examples/runners/own"
RULES = (EXAMPLE / ".agentevals.yaml").read_text("utf-8")
SUITE = "checks/support.toml"
OWN: Files = {
    ".agentv/targets.yaml": "targets: [{name: default, provider: cli, command: [echo, hi]}]\n",
    "EVAL.yaml": "tests: [{id: greets, input: q, assert: [{type: contains, value: hi}]}]\n",
}
LATER = "the tests are known when the runner `checks` has run"


@pytest.fixture
def alone(tmp_path: Path) -> Repository:
    """A repository that has only the suite of a runner."""
    made = Repository.create(tmp_path / "repository")
    shutil.copytree(EXAMPLE, made.path, dirs_exist_ok=True)
    made.commit("base", {".gitignore": "/agentevals-report/\n"})
    return made


@pytest.fixture
def both(alone: Repository) -> Repository:
    """A repository that has a suite of ours, too."""
    alone.commit("ours", OWN)
    return alone


def run(repository: Repository, *words: str, code: int = 0) -> command.Done:
    done = command.run(repository.path, *words)
    assert done.code == code, done.out + done.err
    return done


def rows(repository: Repository) -> list[str]:
    lines = (repository.path / "agentevals-report/results.jsonl").read_text().splitlines()
    return [json.loads(line)["evalId"] for line in lines]


def test_validate__prints_the_commands_and_what_is_needed_here(both: Repository) -> None:
    entry = "  - {name: foo, results: promptfoo, suites: '*.md', program: no-such, env: [A, B]}\n"
    both.commit(
        "more", {"a.md": "", ".agentevals.yaml": RULES.replace("runners:\n", f"runners:\n{entry}")}
    )

    assert run(both, "validate", "--env", "A").out.splitlines() == [
        "EVAL.yaml: valid, 1 test",
        "a.md: valid, the tests are known when the runner `foo` has run",
        f"{SUITE}: valid, {LATER}",
        "runner foo: no-such eval --config '{SUITE}' --output '{RESULTS}/results.json' --repeat "
        "'{SAMPLES}' --no-cache --no-write --no-share --no-table --no-progress-bar",
        "  again: no-such eval --config '{SUITE}' --output '{RESULTS}/results.json' --repeat "
        "'{SAMPLES}' --no-cache --no-write --no-share --no-table --no-progress-bar "
        "--filter-failing '{SELECTION}'",
        "  `no-such` is not installed here; a step of the job installs it",
        "  it needs B: pass `--env B` here, and the input `env` in a job",
        "runner checks: python3 checks/run.py '{SUITE}' '{RESULTS}/results.jsonl'",
        "  again: python3 checks/run.py '{SUITE}' '{RESULTS}/results.jsonl' '{SELECTION}'",
    ]
    document = json.loads(run(both, "validate", "--json").out)
    assert [suite["tests"] for suite in document["suites"]][1:] == [None, None]
    first, second = document["runners"]
    assert (first["name"], first["isInstalled"], first["env"]) == ("foo", False, ["A", "B"])
    assert (second["name"], second["isInstalled"]) == ("checks", True)
    assert second["command"][1:3] == ["checks/run.py", "{SUITE}"]


GOOD = 'name: a, suites: "checks/*.toml"'
COMMAND = 'command: [python3, checks/run.py, "{SUITE}", "{RESULTS}"]'
#: Entries with a mistake, and their errors: the text where each is, and its words.
MISTAKES = {
    "format": (
        [f"{GOOD}, results: promtfoo"],
        [("promtfoo", "there is no format of results `promtfoo`; did you mean `promptfoo`?")],
    ),
    "misspelled": (
        [f'name: a, suits: "checks/*.toml", results: agentevals, {COMMAND}'],
        [("suits", "the field `suits` is unknown; did you mean `suites`?")],
    ),
    "required": (
        [f"{GOOD}, results: promptfoo, required: yes"],
        [("yes", "`runners[0].required` is the text 'yes'; write true, or globs over test ids")],
    ),
    "text": (
        [f"{GOOD}, results: agentevals, command: python3 run.py"],
        [("python3", "`runners[0].command` is the text 'python3 run.py'; write a list")],
    ),
    "no file": (
        ['name: a, suites: "evals/*.toml", results: promptfoo'],
        [('"evals', "no file matches the `suites` of the runner `a`; correct them, or remove")],
    ),
    "two runners": (
        [f"{GOOD}, results: promptfoo", "name: b, suites: checks/s*, results: junit"],
        [("checks/s*", "`checks/support.toml` belongs to another runner, too; exclude it from")],
    ),
    "expression": (
        [f'{GOOD}, results: promptfoo, errors: "5(0"'],
        [('"5(0"', "`runners[0].errors`: '5(0' is not a regular expression: missing )")],
    ),
    "long expression": (
        [f"{GOOD}, results: promptfoo, errors: {'x' * 50_001}"],
        [("xxxxx", "`runners[0].errors`")],
    ),
    "all at once": (
        [
            f"{GOOD}, results: promtfoo",
            f"{GOOD}, results: agentevals, env: [A]",
            f"{GOOD}, results: junit, command: [first], again: [second]",
        ],
        [
            ("promtfoo", "there is no format"),
            ("agentevals", "`results: agentevals` has no default command; write `command`"),
            ("[first", "`command` does not say where"),
            ("[second", "`again` does not say where"),
        ],
    ),
}


@pytest.mark.parametrize("name", MISTAKES)
def test_validate__every_mistake_of_an_entry_has_its_place(alone: Repository, name: str) -> None:
    entries, errors = MISTAKES[name]
    lines = ["runners:", *(f"  - {{{entry}}}" for entry in entries)]
    alone.write({".agentevals.yaml": "\n".join(lines)})

    done = run(alone, "validate", code=2)

    found = [line for line in (done.out + done.err).splitlines() if line.startswith(".agentevals")]
    assert len(found) == len(errors), found
    for line, (text, words) in zip(found, errors, strict=True):
        (number,) = (number for number, each in enumerate(lines) if f" {text}" in each)
        column = lines[number].index(f" {text}") + 2
        assert line.startswith(f".agentevals.yaml:{number + 1}:{column}: {words}"), line


def test_validate__the_suites_of_an_entry_may_be_those_of_another_job(both: Repository) -> None:
    both.commit("shop", {"shop/EVAL.yaml": OWN["EVAL.yaml"]})

    done = run(both, "validate", "--working-directory", "shop")

    assert done.out == "shop/EVAL.yaml: valid, 1 test\n"


def test_list__names_the_runner_in_place_of_tests(both: Repository) -> None:
    assert run(both, "list").out.splitlines() == [
        "EVAL.yaml",
        "  - greets  (EVAL.yaml:1)",
        SUITE,
        f"  {LATER}",
    ]
    both.write({"prompts/support.txt": "Be rude."})
    (ours, theirs) = json.loads(run(both, "list", "--base", "HEAD", "--json").out)
    assert (theirs["path"], theirs["tests"], theirs["runner"]) == (SUITE, None, "checks")
    assert theirs["reasons"]
    assert "runner" not in ours


def explained(repository: Repository, *words: str) -> Any:
    return yaml.safe_load(run(repository, "explain", *words).out)


@pytest.mark.parametrize("wanted", [SUITE, "checks/*"])
def test_explain__the_suite_of_a_runner(both: Repository, wanted: str) -> None:
    first = explained(both, wanted)
    assert first["suite"] == SUITE
    assert first["command"] == f"python3 checks/run.py {SUITE} '{{RESULTS}}/results.jsonl'"
    assert first["again"].endswith("'{SELECTION}'")
    assert first["required"] == ["returns"]
    assert first["gates"] == "known when the runner has run"
    roles = {file["path"]: file["role"] for file in first["files"]}
    assert roles == {SUITE: "suite", "checks/run.py": "runner"}
    assert first["watch"] == ["agent.py", "prompts/**"]

    run(both, "run")
    assert explained(both, wanted)["gates"] == ["returns"]


def test_explain__a_glob_is_over_ids_and_the_suites_of_runners(both: Repository) -> None:
    documents = yaml.safe_load_all(run(both, "explain", "*").out)
    assert [each["suite"] for each in documents] == [SUITE, "EVAL.yaml"]


def test_explain__a_test_of_a_runner_names_the_suite(both: Repository) -> None:
    assert explained(both, "greets")["suite"] == "EVAL.yaml"
    done = run(both, "explain", "returns", code=2)
    assert f"of the tests of `{SUITE}`, name the suite" in done.err


@pytest.mark.parametrize(
    ("globs", "shown", "found"),
    [
        (["greets"], ["EVAL.yaml"], ["greets"]),
        (["re*"], [SUITE], ["returns"]),
        (["greets", "*"], ["2 suites"], ["cancellation", "delivery", "greets", "returns"]),
    ],
)
def test_run__only_the_suites_with_matching_tests_are_shown(
    both: Repository, globs: Sequence[str], shown: Sequence[str], found: Sequence[str]
) -> None:
    done = run(both, "run", *(f"--test={glob}" for glob in globs))

    assert sorted(rows(both)) == found
    for path in ("EVAL.yaml", SUITE, "2 suites"):
        assert (path in done.out) == (path in shown or "2 suites" in shown), done.out


@pytest.mark.parametrize("with_ours", [False, True])
def test_run__no_matching_test_is_no_success(alone: Repository, with_ours: bool) -> None:
    alone.commit("more", OWN if with_ours else {})
    assert "no test matches" in run(alone, "run", "--test", "nothing", code=2).err


def test_run__resumed_takes_the_tests_of_runners_again(both: Repository) -> None:
    run(both, "run")
    done = run(both, "run", "--resume")
    assert f"the tests of `{SUITE}` run again" in done.err
    assert "1 of 1 tests are kept" in done.err

    refused = run(both, "run", "--resume", "--test", "returns", code=2)
    assert "`--resume` would drop them" in refused.err
    run(both, "run", "--test", "returns")
    run(both, "run", "--resume", "--test", "returns")
    assert rows(both) == ["returns"]
    # They are never taken for the results of the whole suite.
    assert '"fingerprint":null' in (both.path / "agentevals-report/results.jsonl").read_text()


@pytest.mark.parametrize(
    ("with_ours", "words"),
    [
        (False, f"the tests of {SUITE}: 2 samples each"),
        (True, f"1 test and the tests of {SUITE}: 2 samples each"),
    ],
)
def test_selftest__says_what_runs(alone: Repository, with_ours: bool, words: str) -> None:
    alone.commit("more", OWN if with_ours else {})
    done = run(alone, "selftest", "--samples", "2")
    assert words in done.err
    assert f"{SUITE} returns" in done.out
    assert "pairs blocked" in done.out


def test_targets__are_not_asked_for_where_runners_ask(alone: Repository) -> None:
    assert "their runners ask the agent" in run(alone, "targets", code=2).err
    alone.commit("ours", OWN)
    assert "default" in run(alone, "targets").out


def test_compare__files_of_results(both: Repository) -> None:
    run(both, "run")
    path = "agentevals-report/results.jsonl"
    assert "4 tests: 4 unchanged" in run(both, "compare", path, path).out


def test_review__an_entry_with_a_mistake_removes_no_suite(both: Repository) -> None:
    both.write({".agentevals.yaml": RULES.replace("results: agentevals", "results: own")})
    done = run(both, "review", "--base", "HEAD", code=2)
    assert "there is no format of results `own`" in done.out
    assert "removed" not in done.out
