"""A pull request is gated by suites that a runner of others runs, end to end."""

import json
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
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
MORE = "more/shop.jsonl"
THEIRS = entry(name="theirs", suites=["more/*"])
GATED = files(rules(entry(required=["names"])))
UNUSABLE = rules(entry(suites=["none/*"]))
NAMED_FILE = TESTS.replace('"id"', '"file": "../prompts/shop.txt", "id"', 1)
ENDS = {SUITE: "sys.exit('no model')"}
ENDS_AGAIN = {SUITE: "if chosen: sys.exit('rate limit')"}


@dataclass(frozen=True)
class Case:
    """The files of base, a change, and what the gate says of it: the exit code, what became of
    tests, annotations, the starts on head and base, words of the log or the summary, and of the
    comment."""

    base: Files
    change: Files
    code: int = 0
    changes: Mapping[str, str] | None = None
    annotations: Sequence[tuple[str, str, int]] | None = None
    starts: tuple[int, int] | None = None
    log: str = ""
    comment: tuple[str, ...] = ()


CASES = {
    "a change of something else": Case(
        files(), {"docs/a.md": "x"}, starts=(0, 0), comment=("the change affects no suite",)
    ),
    "a flaky test": Case(files(), agent(fails={"greets": [1]}), changes={"greets": "flaky"}),
    "a required gate that fails": Case(
        GATED,
        agent("Good day."),
        code=1,
        annotations=[("failure", SUITE, 2)],
        comment=("required gate `ours` failed",),
    ),
    "a gate that is taken away": Case(
        GATED,
        rules(entry()),
        comment=("1 required gate of the base was removed", "- required gate `ours` of [`names`]"),
    ),
    "a required test that skips itself": Case(
        GATED,
        agent(rows={"names": {"verdict": None, "skipped": "later"}}),
        code=3,
        changes={"names": "errorOnHead"},
        comment=("skipped itself, and base scored it: later",),
    ),
    "a test that errs and has the name of its runner": Case(
        files({SUITE: TESTS.replace("greets", "ours")}),
        agent(rows={"ours": {"verdict": None, "error": {"message": "503"}}}),
        code=3,
        changes={"ours": "errorOnHead"},
    ),
    "a glob of gates that is written wrong": Case(  # suites of other runners do not run
        files({MORE: TESTS}, rules(entry(required=["names"]), THEIRS)),
        rules(entry(required=["nmaes"]), THEIRS),
        starts=(1, 1),
        comment=("no test matches `nmaes`, which is `required` of the runner `ours`",),
    ),
    "a file that the suite names is its question": Case(
        files({SUITE: NAMED_FILE, "prompts/shop.txt": "a"}),
        {"prompts/shop.txt": "b"},
        changes={"greets": "questionChanged", "names": "questionChanged"},
        log="changed through prompts/shop.txt; if that is the agent's own prompt, put it under",
    ),
    "a suite that is moved": Case(
        files(),
        {SUITE: None, "checks/moved.jsonl": TESTS, **RUDE},
        code=1,
        changes={"greets": "regressed"},
    ),
    "an end without results on base": Case(
        files(agent(do=ENDS)),
        agent(),
        changes={"greets": "errorOnBase", "names": "errorOnBase"},
        comment=("on base, `ours` ended with exit code 1: no model",),
    ),
    "an entry is added": Case(
        files({MORE: TESTS}), rules(entry(), THEIRS), starts=(1, 0), comment=("2 tests are new",)
    ),
    "an entry is edited": Case(
        files(),
        rules(entry(command=["python3", "-I", "tools/run.py", "{SUITE}", "1", "{RESULTS}"])),
        starts=(1, 1),
        comment=("changed: .agentevals.yaml (runner)",),
    ),
    "an entry is removed": Case(
        files({MORE: TESTS}, rules(entry(), THEIRS)),
        rules(),
        starts=(0, 0),
        comment=(f"1 suite of the base was removed\n\n- suite [`{MORE}`]",),
    ),
    "a suite is deleted": Case(
        files({MORE: TESTS}, rules(entry(suites=["*/*.jsonl"]))),
        {MORE: None},
        starts=(0, 0),
        comment=(f"1 suite of the base was removed\n\n- suite [`{MORE}`]",),
    ),
    "an entry that cannot be used": Case(
        files(),
        UNUSABLE,
        code=2,
        comment=("no file matches the `suites` of the runner `ours`",),
    ),
    "an entry that could not be used": Case(
        files(UNUSABLE),
        rules(),
        changes={"greets": "notComparable", "names": "notComparable"},
        comment=("the suite is invalid on base (.agentevals.yaml:",),
    ),
    "a configuration that could not be read": Case(
        files({".agentevals.yaml": "{"}),
        rules(),
        changes={"greets": "notComparable", "names": "notComparable"},
        comment=("the suite is invalid on base (.agentevals.yaml:",),
    ),
    "suspects that run again and crash on head": Case(
        files(),
        agent("Yo {}.", do=ENDS_AGAIN),
        code=3,
        log="could not be confirmed: `ours` ended with exit code 1: rate limit",
    ),
    "suspects that run again and crash on base": Case(
        files(agent(do=ENDS_AGAIN)),
        RUDE,
        code=1,
        log="base: `ours` ended with exit code 1: rate limit",
    ),
    "suspects that run again with all tests": Case(
        files(),
        agent("Yo {}.", do={SUITE: "chosen = None"}),
        code=1,
        log="passed 5 of 5 on base, 0 of 4 on head",
    ),
}
#: Those of which another one in the default run has the same way through the program.
SLOW = {name for name in CASES if name.startswith(("suspects", "a test that errs", "a suite"))}


@pytest.mark.parametrize(
    "name", [pytest.param(name, marks=[pytest.mark.slow] * (name in SLOW)) for name in CASES]
)
def test_runner__a_change(tmp_path: Path, name: str) -> None:
    case = CASES[name]
    with opened(tmp_path, case.base, case.change) as gate:
        done = gate.finish()
        comment = gate.comments()[0].replace("&#8203;", "")
        assert done.code == case.code, done.log
        assert case.changes in (None, gate.changes())
        assert case.annotations in (None, gate.annotations())
        starts = (len(gate.calls("head")), len(gate.calls("base")))
        assert case.starts in (None, starts)
        assert case.log in done.log + json.dumps(gate.summary)
        assert [words for words in case.comment if words not in comment] == [], comment
        assert "no suite and no rule" not in comment


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


def test_runner__a_glob_of_gates_that_matches_no_test_is_named(tmp_path: Path) -> None:
    gated = files(rules(entry(required=["greets", "safety-*", "!nothing"])))
    with opened(tmp_path, gated, agent("Good day, dear {}.")) as gate:
        done = gate.finish()
        assert done.code == 0, done.log
        comment = gate.comments()[0]
        assert "no test matches" in comment
        assert comment.count("correct it") == 1, comment
        assert "safety-" in comment


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


@pytest.mark.slow
def test_runner__what_it_does_to_the_checkout_changes_no_decision(tmp_path: Path) -> None:
    """It removes the gate that fails."""
    do = f"Path('.agentevals.yaml').write_text('{{}}'); Path({SUITE!r}).touch()"
    gated = rules(entry(required=True))
    with opened(tmp_path, files(gated), agent("Good day.", do={SUITE: do})) as gate:
        done = gate.finish()
        assert done.code == 1, done.log
        assert gate.summary["groups"]["failedGates"] == 1


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
