"""A judge that people's labels do not support is advisory: it is shown, and decides nothing."""

import json
import shutil
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import pytest

from tests.support import payloads
from tests.support.openai_server import OpenAIServer, Reply, failure
from tests.support.repositories import Files
from tests.support.runner_gate import RunnerGate, opened

FLOOR = {"judge-floor": "specificity:0.7"}
AGENT = 'read name; echo "Good day, $name."\n'
RUDE = {"agent.sh": AGENT.replace("Good day", "Yo")}
HEY = {"agent.sh": AGENT.replace("Good day", "Hey")}
SILENT = {"agent.sh": "read name; echo Yo\n"}
#: A gate of a word, with a judge beside it.
MIXED = (
    "{id: greets, input: Ada, criteria: polite, "
    "assert: [{type: contains, value: Ada, required: true}, {type: llm_judge, name: kind}]}"
)
ALONE = "{id: alone, input: Bob, criteria: polite, assert: [{type: llm_judge, name: kind}]}"
INSIDE = (
    "{id: inside, input: Cleo, criteria: polite, assert: [{type: composite, name: both, "
    "assertions: [{type: contains, value: Cleo, required: true}, {type: llm_judge, name: kind}]}]}"
)


@dataclass
class Judge:
    """A model that finds every greeting but `Good day` rude. `key` identifies the way of judging,
    `served` is the name that its replies give."""

    server: OpenAIServer
    served: str = "served-1"
    key: str = ""
    extra: str = ""
    tests: tuple[str, ...] = (MIXED,)
    files: dict[str, str | None] = field(default_factory=dict)

    def base(self, **files: str) -> Files:
        """The files of base."""
        lines = "".join(f"  - {test}\n" for test in self.tests)
        model = f"provider: openai, model: m{self.extra}, base_url: '{self.server.url}', api_key: k"
        return {
            "agent.sh": AGENT,
            "evals/EVAL.yaml": f"name: greeter\ntests:\n{lines}",
            ".agentv/targets.yaml": "targets:\n"
            "  - {name: default, provider: cli, command: [sh, agent.sh], cwd: /, judge_target: m}\n"
            f"  - {{name: m, {model}}}\n",
            ".agentevals.yaml": json.dumps({"watch": ["agent.sh"]}),
            **files,
        }

    def calibration(self, specificity: float = 0.9, **fields: Any) -> str:
        """A calibration with this lower bound."""
        known = {"value": min(specificity + 0.05, 1), "low": specificity}
        judge = {
            **{"models": [self.served], "type": "llm_judge"},
            **{"evaluators": ["kind"], "target": "m", "unstable": None},
            **{"passes": 30, "fails": 20, "tests": 50},
            **dict.fromkeys(("agreement", "sensitivity", "specificity", "kappa"), known),
            **fields,
        }
        judges = {self.key: judge}
        return json.dumps({"version": 1, "day": "2026-01-01", "samples": 1, "judges": judges})


@contextmanager
def serve() -> Iterator[OpenAIServer]:
    """The model; about `Hey`, another one replies."""
    replies = {
        words: Reply(text=json.dumps({"score": score, "misses": misses}), fields={"model": name})
        for words, score, misses, name in (
            ("Good day", 1, [], "served-1"),
            (r"\bYo\b", 0, ["it is rude"], "served-1"),
            ("Hey", 0, ["it is rude"], "served-2"),
        )
    }
    with OpenAIServer(replies) as server:
        yield server


@pytest.fixture(scope="module")
def measured(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Judge]:
    """A judge whose key is known."""
    with serve() as server:
        judge = Judge(server)
        with opened(tmp_path_factory.mktemp("key"), judge.base(), RUDE) as gate:
            gate.finish()
            judge.key = judge_of(gate, "greets")["judge"]["key"]
        yield judge


@pytest.fixture
def judge(measured: Judge) -> Judge:
    return Judge(measured.server, key=measured.key)


def judge_of(gate: RunnerGate, test: str, side: str = "head") -> dict[str, Any]:
    """The result of the judge of a test."""
    results = gate.rows(side)[test]["samples"][0]["evaluatorResults"]
    results += [inner for result in results for inner in result["evaluatorResults"]]
    return next(result for result in results if result["name"] == "kind")


#: The lower bound of the calibration (none: no file), the change, the exit code, words of the comment.
DECISIONS: Mapping[str, tuple[float | None, Files, int, str]] = {
    "without a calibration": (None, RUDE, 0, "there is no `calibration.json`"),
    "under the floor": (
        0.52,
        RUDE,
        0,
        "its specificity is at least 0.52 (95 %), under the floor of 0.7",
    ),
    "above the floor": (0.75, RUDE, 1, "1 test regressed"),
    "a gate fails without a calibration": (None, SILENT, 1, "failed a required gate"),
    "a gate fails above the floor": (0.75, SILENT, 1, "failed a required gate"),
}


@pytest.mark.parametrize("name", DECISIONS)
@pytest.mark.parametrize("test", [MIXED, INSIDE], ids=["beside", "in a composite"])
def test_judge_floor__of_a_pull_request(tmp_path: Path, judge: Judge, name: str, test: str) -> None:
    bound, change, code, words = DECISIONS[name]
    judge.tests = (test,)
    files = {} if bound is None else {"calibration.json": judge.calibration(bound)}
    with opened(tmp_path, judge.base(**files), change) as gate:
        done = gate.finish(inputs=FLOOR)

        assert done.code == code, done.log
        assert words in gate.comments()[0], gate.comments()[0]
        is_advisory = bound is None or bound < 0.7
        assert bool(gate.summary["advisoryJudges"]) is is_advisory
        for text in (gate.comments()[0], done.log, str(gate.server.check_runs[-1].summary)):
            assert ("is advisory: " in text) is is_advisory, text


def test_judge_floor__is_off_by_default(tmp_path: Path, judge: Judge) -> None:
    with opened(tmp_path, judge.base(), RUDE) as gate:
        done = gate.finish()
        assert done.code == 1, done.log
        assert "advisory" not in (gate.report / "results.jsonl").read_text()
        assert "advisory" not in gate.comments()[0]


def test_advisory_judge__says_what_it_would_have_said(tmp_path: Path, judge: Judge) -> None:
    with opened(tmp_path, judge.base(), RUDE) as gate:
        gate.finish(inputs=FLOOR)
        (found,) = gate.summary["advisoryJudges"]
        assert found["models"] == ["served-1"]
        assert (found["passed"], found["failed"], found["worse"]) == (0, 1, 1)
        assert "Of 1 answer it passes 0 and fails 1 (1 passed on base)" in gate.comments()[0]
        assert "1 judge is advisory and decides nothing" in gate.comments()[0]
        row = gate.rows()["greets"]
        assert (row["verdict"], row["score"], row["misses"]) == ("pass", 1.0, [])


def test_advisory_judge__alone_scores_no_test(tmp_path: Path, judge: Judge) -> None:
    judge.tests = (ALONE,)
    with opened(tmp_path, judge.base(), RUDE) as gate:
        done = gate.finish(inputs={**FLOOR, "min-pass-rate": "1"})
        assert done.code == 3, done.log
        assert "the suite `evals/EVAL.yaml` scored no test" in gate.comments()[0]
        assert gate.rows()["alone"]["error"]["kind"] == "advisory"
        assert "ended in an error" not in gate.comments()[0]
        assert done.outputs["passed"] == done.outputs["errored"] == "0"
        assert done.outputs["pass-rate"] == ""


def test_advisory_judge__beside_scored_tests_is_named_and_does_not_block(
    tmp_path: Path, judge: Judge
) -> None:
    judge.tests = (ALONE, MIXED)
    with opened(tmp_path, judge.base(), RUDE) as gate:
        done = gate.finish(inputs={**FLOOR, "min-pass-rate": "1"})
        assert done.code == 0, done.log
        assert gate.changes() == {"alone": "advisory"}
        comment = gate.comments()[0]
        assert "1 test is not scored, because only advisory judges score it" in comment
        assert "`alone`" in comment
        assert done.outputs["pass-rate"] == "1.0000"
        assert gate.summary["suites"][0]["head"]["advisory"] == 1
        assert len(gate.rows()["alone"]["samples"]) == 1


def test_advisory_judge__that_cannot_be_asked_is_no_error(tmp_path: Path, judge: Judge) -> None:
    with OpenAIServer(otherwise=failure(400, "no")) as broken:
        judge.server = broken
        with opened(tmp_path, judge.base(), RUDE) as gate:
            done = gate.finish(inputs=FLOOR)
            assert done.code == 0, done.log
            assert "could not be judged" in gate.comments()[0]
            done = gate.finish()
            assert done.code == 3, done.log


#: What head does to base's calibration, its bound, and the exit code that base's calibration gives.
EDITS: Mapping[str, tuple[float, str | None, int]] = {
    "lowers it": (0.75, "0.1", 1),
    "deletes it": (0.75, None, 1),
    "raises it": (0.1, "0.99", 0),
}


@pytest.mark.parametrize("edit", EDITS)
def test_calibration__of_base_decides(tmp_path: Path, judge: Judge, edit: str) -> None:
    bound, of_head, code = EDITS[edit]
    written = judge.calibration(float(of_head)) if of_head else None
    base = judge.base(**{"calibration.json": judge.calibration(bound)})
    with opened(tmp_path, base, {**RUDE, "calibration.json": written}) as gate:
        done = gate.finish(inputs=FLOOR)
        assert done.code == code, done.log
        assert "this calibration differs from that of base" in gate.comments()[0]


@pytest.mark.parametrize(
    "content",
    ['{"version": 1', '{"version": 1, "judges": NaN}', "[]", '{"version": 1, "judges": 3}', ""],
)
def test_calibration__that_the_change_breaks_is_invalid(
    tmp_path: Path, judge: Judge, content: str
) -> None:
    base = judge.base(**{"calibration.json": judge.calibration(0.75)})
    with opened(tmp_path, base, {**RUDE, "calibration.json": content}) as gate:
        done = gate.finish(inputs=FLOOR)
        assert done.code == 2, done.log
        assert "in `calibration.json`" in gate.comments()[0]
        assert ("failure", "calibration.json", 1) in gate.annotations()


def test_calibration__that_is_broken_on_base_calibrates_nothing(
    tmp_path: Path, judge: Judge
) -> None:
    base = judge.base(**{"calibration.json": '{"<img src=x>": 1}'})
    with opened(tmp_path, base, RUDE) as gate:
        done = gate.finish(inputs=FLOOR)
        assert done.code == 0, done.log
        comment = gate.comments()[0]
        assert "the calibration of base is invalid" in comment
        assert "<img" not in comment.replace("`<img src=x>`", "")


def test_calibration__of_another_model_does_not_hold(tmp_path: Path, judge: Judge) -> None:
    calibrated = judge.calibration(0.9, models=["older-`<b>`"])
    with opened(tmp_path, judge.base(**{"calibration.json": calibrated}), RUDE) as gate:
        done = gate.finish(inputs=FLOOR)
        assert done.code == 0, done.log
        assert "`served-1` judged, and" in gate.comments()[0]
        assert "<b>" not in gate.comments()[0].replace("`older-<b>`", "")


#: The change, the exit code, and words of the comment.
FLIPS: Mapping[str, tuple[Files, int, str]] = {
    "it passes without the judge": (HEY, 0, "`kind` decides on one side alone"),
    "it fails without the judge": (
        {"agent.sh": "read name; echo Hey\n"},
        3,
        "1 test failed and has no result on base",
    ),
}


@pytest.mark.parametrize("name", FLIPS)
def test_model__that_replies_on_one_side_alone_makes_a_test_incomparable(
    tmp_path: Path, judge: Judge, name: str
) -> None:
    change, code, words = FLIPS[name]
    judge.tests = (MIXED.replace(", required: true", ""),)
    base = judge.base(**{"calibration.json": judge.calibration(0.9)})
    with opened(tmp_path, base, change) as gate:
        done = gate.finish(inputs=FLOOR)
        assert done.code == code, done.log
        assert gate.changes() == {"greets": "notComparable"}
        assert words in gate.comments()[0], gate.comments()[0]
        assert "`served-2` judged, and `served-1` was calibrated" in gate.comments()[0]


def test_prompt__that_the_change_edits_is_not_calibrated(tmp_path: Path, judge: Judge) -> None:
    base = judge.base(**{"calibration.json": judge.calibration(0.9)})
    edited = str(base["evals/EVAL.yaml"]).replace("name: kind", "name: kind, temperature: 1")
    with opened(tmp_path, base, {**RUDE, "evals/EVAL.yaml": edited}) as gate:
        done = gate.finish(inputs=FLOOR)
        comment = gate.comments()[0]
        assert done.code == 3, done.log
        assert "it is not calibrated with its present prompt" in comment
        assert "1 test passes only with the changed evaluators" in comment
        assert "1 test got worse by a judge of base that the change makes advisory" in comment
        label = "agentevals:accept"
        event = payloads.pull_request_event(gate.pull.head, gate.pull.main, action="labeled")
        event |= {"label": {"name": label}, "sender": payloads.user("ada")}
        gate.announced.labels = {label}
        accepted = gate.job(event=event, inputs=FLOOR).finish()
        assert accepted.code == 0, accepted.log
        assert "1 test accepted by `ada`" in accepted.summary


def test_prompt__of_a_judge_that_is_advisory_on_both_sides_is_no_error(
    tmp_path: Path, judge: Judge
) -> None:
    judge.tests = (ALONE, MIXED)
    base = judge.base()
    edited = str(base["evals/EVAL.yaml"]).replace("name: kind", "name: kind, temperature: 1")
    with opened(tmp_path, base, {**RUDE, "evals/EVAL.yaml": edited}) as gate:
        done = gate.finish(inputs=FLOOR)
        comment = gate.comments()[0]
        assert done.code == 0, done.log
        assert "· advisory → advisory" in comment
        assert "with base's evaluators" not in comment
        assert comment.count("there is no `calibration.json`") == 1  # not for each test


@pytest.mark.slow
@pytest.mark.parametrize("test", [MIXED, INSIDE, ALONE], ids=["beside", "composite", "alone"])
def test_stored_results__of_another_floor(tmp_path: Path, judge: Judge, test: str) -> None:
    """The stored results are of a run without a floor. Where the judge is inside a composite, base
    runs again."""
    judge.tests = (test,) if test == MIXED else (test, MIXED)
    with opened(tmp_path, judge.base(), RUDE) as gate:
        assert gate.pushed().code == 0
        done = gate.finish(inputs=FLOOR)
        assert done.code == 0, done.log
        assert gate.summary["baseline"]["source"] == ("rerun" if test == INSIDE else "branch")
        name = test.split(",")[0].removeprefix("{id: ")
        assert judge_of(gate, name, "base")["advisory"]


@pytest.mark.slow
def test_stored_results__of_advisory_judges_spare_base(tmp_path: Path, judge: Judge) -> None:
    judge.tests = (ALONE, MIXED)
    with opened(tmp_path, judge.base(), RUDE) as gate:
        event = payloads.push_event("0" * 40, gate.pull.main)
        assert gate.finish("push", event, gate.pull.main, inputs=FLOOR).code == 0
        assert gate.finish(inputs=FLOOR).code == 0
        assert gate.summary["baseline"]["source"] == "branch"
        done = gate.finish()
        assert done.code == 1, done.log
        assert gate.summary["baseline"]["source"] == "branch"
        assert gate.changes() == {"alone": "regressed", "greets": "regressed"}


@pytest.mark.slow
def test_shards__have_the_floor_in_common(tmp_path: Path, judge: Judge) -> None:
    judge.tests = (MIXED, ALONE)
    with opened(tmp_path, judge.base(), RUDE) as gate:
        reports = []
        for shard in ("1/2", "2/2"):
            done = gate.finish(inputs={"shard": shard, **FLOOR})
            assert done.code == 0, done.log
            reports.append(gate.report)
        for inputs, code in ((FLOOR, 0), ({}, 3)):
            job = gate.job(inputs={"mode": "merge", **inputs})
            for number, report in enumerate(reports, 1):
                shutil.copytree(report, job.workspace / f"agentevals-report/shards/{number}-1")
            merged = job.finish()
            assert merged.code == code, merged.log
        assert "`judge-floor`" in merged.log
