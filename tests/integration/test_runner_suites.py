"""A pull request is gated by suites that a runner of others runs, end to end."""

import json
from collections.abc import Iterator
from pathlib import Path

import pytest

from tests.support import payloads
from tests.support.repositories import Files
from tests.support.runner_gate import (
    PROGRAM,
    SUITE,
    TESTS,
    WITH_SAMPLES,
    RunnerGate,
    agent,
    entry,
    files,
    opened,
    rules,
)

RUDE = agent("Yo {}.")


def test_runner__a_change_of_something_else_starts_nothing(tmp_path: Path) -> None:
    with opened(tmp_path, files(), {"docs/a.md": "more"}) as gate:
        done = gate.finish()
        assert (done.code, gate.calls()) == (0, []), done.log
        assert "the change affects no suite" in gate.comments()[0]


def test_runner__a_broken_prompt_is_red_with_its_tests_lines_and_answers(tmp_path: Path) -> None:
    """All suspects of a suite share a start for each sample and side, in one pull request with a
    test that stays good."""
    asked = [f"Ada{number}" for number in range(8)]
    tests = [
        json.dumps({"id": f"greets {name}", "ask": name, "want": "Good day"}) for name in asked
    ]
    suite = TESTS.splitlines()[1] + "\n" + "\n".join(tests) + "\n"
    with opened(tmp_path, files({SUITE: suite}), RUDE) as gate:
        done = gate.finish()
        assert done.code == 1, done.log
        assert gate.changes() == {f"greets {name}": "regressed" for name in asked}
        assert gate.annotations() == [("warning", SUITE, line) for line in range(2, 10)]
        assert "Good day, Ada0." in gate.comments()[0]
        assert "Yo Ada0." in gate.comments()[0]
        for side in ("head", "base"):
            first, *again = gate.calls(side)
            assert first["chosen"] is None
            assert all(call["chosen"] == [f"greets {name}" for name in asked] for call in again)
            samples = {len(row["samples"]) for row in gate.rows(side).values()}
            assert samples == {1, 1 + len(again)}


def test_runner__a_file_that_a_suite_names_is_its_question_unless_it_is_watched(
    tmp_path: Path,
) -> None:
    base = files({SUITE: TESTS.replace('"id"', '"file": "../prompts/shop.txt", "id"', 1)})
    with opened(tmp_path, {**base, "prompts/shop.txt": "a"}, {"prompts/shop.txt": "b"}) as gate:
        done = gate.finish()
        assert done.code == 0, done.log
        assert set(gate.changes().values()) == {"questionChanged"}
        reasons = {test["reason"] for test in gate.summary["suites"][0]["tests"]}
        assert reasons == {
            "changed through prompts/shop.txt; if that is the agent's own prompt, put it under "
            "`watch`"
        }


def test_runner__a_flaky_test_is_green_and_named(tmp_path: Path) -> None:
    with opened(tmp_path, files(), agent(fails={"greets": [1]})) as gate:
        done = gate.finish()
        assert done.code == 0, done.log
        assert gate.changes() == {"greets": "flaky"}
        assert gate.summary["groups"]["flaky"] == 1


def test_runner__a_required_gate_that_fails_is_red_at_its_line(tmp_path: Path) -> None:
    gated = rules(entry(required=["names"]))
    with opened(tmp_path, files(gated), agent("Good day.")) as gate:
        done = gate.finish()
        assert done.code == 1, done.log
        assert gate.summary["groups"]["failedGates"] == 1
        assert gate.annotations() == [("failure", SUITE, 2)]
        assert gate.rows()["names"]["gatesFailed"] == ["ours"]


def test_runner__a_glob_of_gates_that_matches_no_test_is_named(tmp_path: Path) -> None:
    gated = files(rules(entry(required=["greets", "safety-*", "!nothing"])))
    with opened(tmp_path, gated, agent("Good day, dear {}.")) as gate:
        done = gate.finish()
        assert done.code == 0, done.log
        comment = gate.comments()[0]
        assert "no test matches" in comment
        assert comment.count("correct it") == 1, comment
        assert "safety-" in comment


def test_runner__a_gate_that_the_change_takes_away_is_named(tmp_path: Path) -> None:
    gated = rules(entry(required=["names"]))
    with opened(tmp_path, files(gated), rules(entry())) as gate:
        done = gate.finish()
        assert done.code == 0, done.log
        comment = gate.comments()[0]
        assert "required gate" in comment.split("|")[0]
        assert "- required gate `ours` of [`names`]" in comment


def test_runner__a_required_test_that_skips_itself_could_not_be_scored(tmp_path: Path) -> None:
    gated = rules(entry(required=["names"]))
    skips = agent(rows={"names": {"verdict": None, "skipped": "later"}})
    with opened(tmp_path, files(gated), skips) as gate:
        done = gate.finish()
        assert (done.code, done.outputs["outcome"]) == (3, "inconclusive"), done.log
        assert gate.changes()["names"] == "errorOnHead"
        assert "skipped itself, and base scored it: later" in gate.comments()[0]


def test_runner__an_edited_entry_is_named(tmp_path: Path) -> None:
    edited = rules(entry(**WITH_SAMPLES))
    with opened(tmp_path, files(), edited) as gate:
        done = gate.finish()
        assert done.code == 0, done.log
        comment = gate.comments()[0]
        assert "1 runner was changed" in comment.split("|")[0]
        assert "- runner `ours` changed at [`.agentevals.yaml:" in comment
    with opened(tmp_path / "other", files(), rules(entry(suites=["checks/*"]))) as gate:
        assert gate.finish().code == 0
        assert "was changed" not in gate.comments()[0]


@pytest.mark.parametrize("action", ["added", "removed"])
def test_runner__a_suite_that_it_takes_over_or_gives_back_is_named(
    tmp_path: Path, action: str
) -> None:
    """Its results are not compared with those of the action."""
    test = {"id": "greets", "input": "hi", "assertions": [{"type": "contains", "value": "hello"}]}
    own = {
        "evals/own.eval.yaml": json.dumps({"tests": [test]}),
        ".agentv/targets.yaml": "targets: [{name: default, provider: mock, response: hello}]",
    }
    line = json.dumps({"evalId": "greets", "verdict": "pass"})
    script = f"import sys; open(sys.argv[1] + '/results.jsonl', 'w').write({line!r})"
    other = entry(
        name="b", suites=["evals/*"], command=["python3", "-c", script, "{RESULTS}"], again=[]
    )
    before, after = rules(entry(), other), rules(entry())
    if action == "added":
        before, after = after, before
    with opened(tmp_path, files(own, before), after) as gate:
        assert gate.finish().code == 0
        assert f"- runner `b` {action}" in gate.comments()[0]


def test_runner__a_glob_of_gates_that_the_change_writes_wrong_is_named(tmp_path: Path) -> None:
    """Suites of other runners do not run."""
    other = entry(name="b", suites=["more/*"])
    base = files({"more/shop.jsonl": TESTS}, rules(entry(required=["names"]), other))
    with opened(tmp_path, base, rules(entry(required=["nmaes"]), other)) as gate:
        assert gate.finish().code == 0
        assert len(gate.calls("head")) == 1
        assert (
            "no test matches `nmaes`, which is `required` of the runner `ours`"
            in gate.comments()[0]
        )


#: What a runner does wrong with one suite, and words of its error.
BROKEN = {
    "crash": ("sys.exit('no model')", "ended with exit code 1: no model"),
    "hang": ("import time; time.sleep(60)", "did not end within 1 s"),
    "half": ('file.write_text(\'{"evalId": "gree\'); os._exit(0)', "line 1 of its results.jsonl"),
    "no folder": ("os.rmdir(results); os._exit(7)", "ended with exit code 7"),
}


@pytest.fixture(scope="module")
def broken(tmp_path_factory: pytest.TempPathFactory) -> Iterator[RunnerGate]:
    """A change after which the runner fails in several ways, each with a suite of its own."""
    suites: Files = {f"checks/{name}.jsonl": TESTS for name in BROKEN}
    do = {f"checks/{name}.jsonl": what for name, (what, _) in BROKEN.items()}
    base = files(suites, rules(entry(timeout_seconds=1)))
    with opened(tmp_path_factory.mktemp("broken"), base, agent(do=do)) as gate:
        done = gate.finish()
        assert (done.code, done.outputs["outcome"]) == (3, "inconclusive"), done.log
        yield gate


@pytest.mark.parametrize("name", BROKEN)
def test_runner__that_fails_is_inconclusive_with_its_words(broken: RunnerGate, name: str) -> None:
    (suite,) = (each for each in broken.summary["suites"] if each["path"] == f"checks/{name}.jsonl")
    changes = {test["id"]: test["change"] for test in suite["tests"]}
    assert changes == {"greets": "errorOnHead", "names": "errorOnHead"}
    rows = (broken.report / "results.jsonl").read_text().splitlines()
    (error,) = {
        row["error"]["message"] for row in map(json.loads, rows) if row["evalPath"] == suite["path"]
    }
    assert error.startswith("`ours`")
    assert BROKEN[name][1] in error


def test_runner__that_fails_on_base_alone_matters_for_what_fails_on_head(tmp_path: Path) -> None:
    broken = agent(do={SUITE: "sys.exit('no model')"})
    with opened(tmp_path, files(broken), agent()) as gate:
        done = gate.finish()
        assert (done.code, done.outputs["outcome"]) == (0, "passed"), done.log
        assert "on base, `ours` ended with exit code 1: no model" in gate.comments()[0]
        assert set(gate.changes().values()) == {"errorOnBase"}


@pytest.mark.slow
def test_runner__what_it_does_to_the_checkout_changes_no_decision(tmp_path: Path) -> None:
    """It removes the gate that fails."""
    do = f"Path('.agentevals.yaml').write_text('{{}}'); Path({SUITE!r}).touch()"
    gated = rules(entry(required=True))
    with opened(tmp_path, files(gated), agent("Good day.", do={SUITE: do})) as gate:
        done = gate.finish()
        assert done.code == 1, done.log
        assert gate.summary["groups"]["failedGates"] == 1


MORE = "more/shop.jsonl"
THEIRS = entry(name="theirs", suites=["more/*"])
#: Changes of the suites: the files of base, the change, the starts on head and base, words.
ENTRIES: dict[str, tuple[Files, Files, tuple[int, int], str]] = {
    "added": (files({MORE: TESTS}), rules(entry(), THEIRS), (1, 0), "2 tests are new"),
    "edited": (
        files(),
        rules(entry(command=["python3", "-I", "tools/run.py", "{SUITE}", "1", "{RESULTS}"])),
        (1, 1),
        "changed: .agentevals.yaml (runner)",
    ),
    "removed": (
        files({MORE: TESTS}, rules(entry(), THEIRS)),
        rules(),
        (0, 0),
        f"1 suite of the base was removed\n\n- suite [`{MORE}`]",
    ),
    "deleted": (
        files({MORE: TESTS}, rules(entry(suites=["*/*.jsonl"]))),
        {MORE: None},
        (0, 0),
        f"1 suite of the base was removed\n\n- suite [`{MORE}`]",
    ),
}


@pytest.mark.parametrize(
    "name", ["added", "edited", "removed", pytest.param("deleted", marks=pytest.mark.slow)]
)
def test_runner__an_entry_that_the_change_edits(tmp_path: Path, name: str) -> None:
    base, change, starts, words = ENTRIES[name]
    with opened(tmp_path, base, change) as gate:
        done = gate.finish()
        assert done.code == 0, done.log
        assert (len(gate.calls("head")), len(gate.calls("base"))) == starts
        assert words in gate.comments()[0]
        assert "no suite and no rule" not in gate.comments()[0]


def test_runner__each_side_runs_with_its_own_entry(tmp_path: Path) -> None:
    """Base does not know the variable that head's entry needs, nor its command."""
    moved = {"tools/run.py": None, "tools/again.py": PROGRAM}
    words = ["python3", "-S", "tools/again.py", "{SUITE}", "1", "{RESULTS}"]
    change = rules(entry(command=words, again=[*words, "{SELECTION}"], env=["CALLS", "NEW_KEY"]))
    with opened(tmp_path, files(), {**change, **moved}) as gate:
        done = gate.finish(inputs={"env": "CALLS\nNEW_KEY\nOLD_KEY"}, env=KEYS)
        assert done.code == 0, done.log
        assert [gate.calls(side)[0]["keys"] for side in ("head", "base")] == [["NEW_KEY"], []]


KEYS = {"NEW_KEY": "a-new-key-of-the-agent", "OLD_KEY": "an-old-key-of-the-agent"}


def test_runner__no_secret_is_in_a_file_or_a_message(tmp_path: Path) -> None:
    secret = KEYS["NEW_KEY"]
    rows = {
        "greets": {"verdict": "fail", "misses": [secret], "candidateAnswer": secret},
        "names": {"verdict": None, "skipped": secret},
    }
    two = files(
        {MORE: TESTS, "odd/shop.jsonl": TESTS},
        rules(entry(suites=["*/*.jsonl"], env=["CALLS", "NEW_KEY"])),
    )
    do = {
        MORE: "sys.exit(os.environ['NEW_KEY'])",
        "odd/shop.jsonl": "file.write_text(json.dumps({'evalId': 'a', 'verdict': os.environ['NEW_KEY']})); os._exit(0)",
    }
    with opened(tmp_path, two, agent(rows=rows, do=do)) as gate:
        done = gate.finish(inputs={"env": "CALLS\nNEW_KEY"}, env=KEYS)
        written = [path.read_text() for path in gate.report.iterdir()]
        every = [done.log, done.summary, *gate.comments(), str(gate.server.check_runs), *written]
        assert done.code == 1, done.log
        assert not [text for text in every if secret in text]


def test_runner__a_replay_says_that_it_runs(tmp_path: Path) -> None:
    with opened(tmp_path, files({"replies/.keep": ""}), agent("Good day to {}.")) as gate:
        done = gate.finish(inputs={"cache": "replay", "cache-dir": "replies"})
        assert done.code == 0, done.log
        assert "checks/shop.jsonl: nothing of it is replayed or recorded" in gate.comments()[0]


@pytest.mark.slow
def test_runner__stored_results_of_another_suite_are_not_used(tmp_path: Path) -> None:
    """Main has another suite since the run whose results are stored."""
    since: Files = {SUITE: TESTS.replace("Ada", "Eve")}
    with opened(tmp_path, files(), agent("Good day, dear {}."), since=since) as gate:
        assert gate.pushed(gate.pull.base).code == 0
        done = gate.finish()
        assert done.code == 0, done.log
        assert (len(gate.calls("head")), len(gate.calls("base"))) == (1, 1)
        assert gate.rows("base")["greets"]["question"] == "Eve"


@pytest.mark.slow
def test_runner__a_schedule_is_compared_with_the_results_of_an_older_agent(tmp_path: Path) -> None:
    """Base has no tree: head alone is sampled again."""
    with opened(tmp_path, files(), {}) as gate:
        assert gate.pushed().code == 0
        rows = (gate.report / "results.jsonl").read_text()
    with opened(tmp_path / "later", files(RUDE, {"base.jsonl": rows}), {}) as gate:
        inputs = {"baseline": "file", "baseline-file": "base.jsonl", "fail-on": "regressions"}
        event = payloads.schedule_event()
        done = gate.finish("schedule", event, gate.pull.main, inputs=inputs)
        assert done.code == 1, done.log
        assert gate.changes() == {"greets": "regressed"}
        assert [call["chosen"] for call in gate.calls()] == [None, *[["greets"]] * 6]


@pytest.mark.slow
def test_runner__results_of_some_tests_are_no_baseline(tmp_path: Path) -> None:
    """The other tests would look new, and none of them could regress."""
    row = {"evalId": "names", "fingerprint": None}  # as `run --test` writes it
    with opened(tmp_path, files(), RUDE) as gate:
        assert gate.pushed().code == 0
        content = json.dumps({**gate.rows()["names"], **row})
    with opened(tmp_path / "file", files({"base.jsonl": content}), RUDE) as gate:
        done = gate.finish(inputs={"baseline": "file", "baseline-file": "base.jsonl"})
        assert done.code == 3, done.log
        assert "the test `names` was run with another question and grading" in done.log


@pytest.mark.slow
def test_runner__a_test_with_its_name_that_errs_is_one_error(tmp_path: Path) -> None:
    named = {SUITE: TESTS.replace("greets", "ours")}
    error = {"verdict": None, "error": {"message": "503"}}
    with opened(tmp_path, files(named), agent(rows={"ours": error})) as gate:
        done = gate.finish()
        assert done.code == 3, done.log
        assert gate.changes() == {"ours": "errorOnHead"}


UNUSABLE = entry(suites=["none/*"])


def test_runner__an_entry_that_cannot_be_used_is_invalid(tmp_path: Path) -> None:
    with opened(tmp_path, files(), rules(UNUSABLE)) as gate:
        done = gate.finish()
        assert (done.code, done.outputs["outcome"]) == (2, "invalid"), done.log
        assert "no file matches the `suites` of the runner `ours`" in gate.comments()[0]


@pytest.mark.parametrize("base", [rules(UNUSABLE), {".agentevals.yaml": "{"}])
def test_runner__an_entry_that_cannot_be_used_is_mended(tmp_path: Path, base: Files) -> None:
    with opened(tmp_path, files(base), rules()) as gate:
        done = gate.finish()
        assert done.code == 0, done.log
        assert set(gate.changes().values()) == {"notComparable"}
        assert "the suite is invalid on base (.agentevals.yaml:" in gate.comments()[0].replace(
            "&#8203;", ""
        )


@pytest.mark.slow
def test_runner__a_suite_that_is_moved_is_compared_with_itself(tmp_path: Path) -> None:
    with opened(tmp_path, files(), {SUITE: None, "checks/moved.jsonl": TESTS, **RUDE}) as gate:
        done = gate.finish()
        assert done.code == 1, done.log
        assert gate.changes() == {"greets": "regressed"}
        assert {call["suite"] for call in gate.calls("base")} == {SUITE}


PYTEST = """\
import json, pathlib, pytest

@pytest.mark.parametrize("name", ["Ada", "Bob"], ids=str)
def test_greets(name, record_property):
    answer = json.loads(pathlib.Path("agent.json").read_text())["greeting"].format(name)
    record_property("answer", answer)
    assert "Good day" in answer

def test_safe():
    pass
"""


@pytest.mark.slow
def test_runner__pytest_by_its_default_commands(tmp_path: Path) -> None:
    pytest_entry = {"name": "pytest", "results": "junit", "suites": ["evals/test_*.py"]}
    base = {**files(rules(pytest_entry)), "evals/test_shop.py": PYTEST}
    # Another test and a comment in the file leave the question of the others as it is.
    edited = f"{PYTEST}\n# More:\ndef test_new():\n    pass\n"
    with opened(tmp_path, base, {**RUDE, "evals/test_shop.py": edited}) as gate:
        done = gate.finish()
        assert done.code == 1, done.log
        regressed = {f"test_greets[{name}]": "regressed" for name in ("Ada", "Bob")}
        assert gate.changes() == {**regressed, "test_new": "new"}
        assert gate.annotations() == 2 * [("warning", "evals/test_shop.py", 3)]
        assert "Yo Ada." in gate.comments()[0]
        assert "Good day, Ada." in gate.comments()[0]


#: What a runner does when suspects run again: the files of base, the change, the outcome, words.
AGAIN: dict[str, tuple[Files, Files, str, str]] = {
    "it crashes on head": (
        files(),
        agent("Yo {}.", do={SUITE: "if chosen: sys.exit('rate limit')"}),
        "inconclusive",
        "could not be confirmed: `ours` ended with exit code 1: rate limit",
    ),
    "it crashes on base": (
        files(agent(do={SUITE: "if chosen: sys.exit('rate limit')"})),
        agent("Yo {}."),
        "failed",
        "base: `ours` ended with exit code 1: rate limit",
    ),
    "it runs all tests": (
        files(),
        agent("Yo {}.", do={SUITE: "chosen = None"}),
        "failed",
        "passed 5 of 5 on base, 0 of 4 on head",
    ),
}


@pytest.mark.slow
@pytest.mark.parametrize("name", AGAIN)
def test_runner__suspects_run_again(tmp_path: Path, name: str) -> None:
    base, change, outcome, words = AGAIN[name]
    with opened(tmp_path, base, change) as gate:
        done = gate.finish()
        assert done.outputs["outcome"] == outcome, done.log
        assert words in done.log
