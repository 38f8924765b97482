"""`fail-on: pairwise`: worse answers block if base's calibration supports the judge, and fresh
answers of both sides show the same."""

import json
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import pytest

from tests.support import command, payloads
from tests.support.openai_server import OpenAIServer, Received, Reply
from tests.support.repositories import Files, Repository
from tests.support.runner_gate import opened

NAMES = tuple("abcdefgh")
AGENT = "echo 'ok, please'\n"
RUDE: Files = {"agent.sh": "echo 'ok, what'\n"}
WORSE = "much worse in 8 of 8 pairs and much better in 0, and in 8 of 8 with fresh answers"
FAIL_ON = ("--fail-on", "pairwise")


class Judge(OpenAIServer):
    """Finds the polite answer in either place."""

    is_dumb = False
    #: Another model replies about these questions.
    moved = ""

    def reply(self, received: Received) -> Reply:
        if self.is_dumb:
            return Reply(text="I cannot say.")
        answers = received.prompt.split("<answer B ")
        better = "A" if "please" in answers[0].split("<answer A ")[1] else "B"
        text = json.dumps({"better": better, "by": "much", "reasoning": "it is polite"})
        is_moved = any(f"\n{name}\n" in received.prompt for name in self.moved)
        return Reply(text=text, fields={"model": "served-2" if is_moved else "served-1"})


@dataclass
class Calibrated:
    """A judge behind HTTP, and the key of its way of judging."""

    server: Judge
    key: str = ""

    def base(self, **calibration: Any) -> Files:
        """The files of base; `calibration` has the lower bounds, and replaces other fields."""
        tests = "".join(f"  - {{id: {name}, input: {name}}}\n" for name in NAMES)
        of_model = f"provider: openai, model: m, base_url: '{self.server.url}', api_key: k"
        files = {
            "agent.sh": AGENT,
            "evals/EVAL.yaml": "name: shop\nassert:\n  - {type: contains, value: ok}\n"
            f"  - {{type: pairwise, criteria: Is polite.}}\ntests:\n{tests}",
            ".agentv/targets.yaml": "targets:\n"
            "  - {name: default, provider: cli, command: [sh, agent.sh], cwd: /, judge_target: m}\n"
            f"  - {{name: m, {of_model}}}\n",
            ".agentevals.yaml": json.dumps({"watch": ["agent.sh"]}),
            ".gitignore": "/agentevals-report/\n",
        }
        return (
            {**files, "calibration.json": self.calibration(**calibration)} if calibration else files
        )

    def calibration(self, agreement: float, **fields: Any) -> str:
        known = {"value": 1, "low": agreement}
        judge = {
            **{"models": ["served-1"], "type": "pairwise"},
            **{"evaluators": ["pairwise"], "target": "m", "unstable": None},
            **{"passes": 30, "fails": 20, "tests": 50},
            **dict.fromkeys(("agreement", "sensitivity", "specificity", "kappa"), known),
            "length": {"value": 0.95, "low": 0.85},
            **fields,
        }
        judges = {judge.pop("key", self.key): judge}
        return json.dumps({"version": 1, "day": "2026-01-01", "samples": 1, "judges": judges})


@pytest.fixture(scope="module")
def judge(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Calibrated]:
    """A judge whose key is known."""
    with Judge() as server:
        found = Calibrated(server)
        folder = tmp_path_factory.mktemp("key")
        assert review(folder, found.base(), RUDE, "--fail-on", "gates").code == 0
        (key,) = {
            result["judge"]["key"]
            for row in rows(folder).values()
            for result in row["pairs"][0]["evaluatorResults"]
        }
        yield Calibrated(server, key)


def repository(folder: Path, base: Files, change: Files) -> Path:
    made = Repository.create(folder / "work", base)
    made.git("checkout", "--quiet", "-b", "change")
    made.commit("change", change)
    return made.path


def review(folder: Path, base: Files, change: Files, *options: str) -> command.Done:
    path = repository(folder, base, change)
    return command.run(path, "review", "--base", "main", *options)


def rows(folder: Path, side: str = "results") -> dict[str, Any]:
    file = folder / f"work/agentevals-report/{side}.jsonl"
    return {row["evalId"]: row for row in map(json.loads, file.read_text().splitlines())}


def summary(folder: Path) -> dict[str, Any]:
    return dict(json.loads((folder / "work/agentevals-report/summary.json").read_text()))


def pairwise(folder: Path) -> dict[str, Any]:
    (suite,) = summary(folder)["suites"]
    (found,) = suite["pairwise"]
    return dict(found)


def test_worse_answers__block_if_fresh_ones_are_worse(tmp_path: Path, judge: Calibrated) -> None:
    judge.server.requests.clear()
    done = review(tmp_path, judge.base(agreement=0.8), RUDE, *FAIL_ON)
    assert done.code == 1, done.out + done.err
    assert f"head's answers to `evals/EVAL.yaml` are worse than base's: {WORSE}" in done.out
    assert len(judge.server.requests) == 2 * 2 * len(NAMES)
    comment = (tmp_path / "work/agentevals-report/comment.md").read_text()
    assert WORSE in comment
    assert "(advisory)" not in comment
    row = rows(tmp_path)["a"]
    assert [len(row[name]) for name in ("samples", "suiteSamples", "pairs")] == [1, 1, 2]
    assert [len(row["suiteSamples"]) for row in rows(tmp_path, "base").values()] == [1] * len(NAMES)
    page = (tmp_path / "work/agentevals-report/report.html").read_text()
    assert "fresh answers: head" in page


def test_equal_answers__do_not_block(tmp_path: Path, judge: Calibrated) -> None:
    same: Files = {"agent.sh": f"{AGENT}# The same.\n"}
    done = review(tmp_path, judge.base(agreement=0.8), same, *FAIL_ON)
    assert done.code == 0, done.out + done.err
    found = pairwise(tmp_path)
    assert (found["ties"], found["outcome"], found["fresh"]) == (len(NAMES), "passed", None)


def test_better_answers__do_not_block(tmp_path: Path, judge: Calibrated) -> None:
    base = {**judge.base(agreement=0.8), **RUDE}
    done = review(tmp_path, base, {"agent.sh": AGENT}, *FAIL_ON)
    assert done.code == 0, done.out + done.err
    assert pairwise(tmp_path)["finding"] == "better"


def test_loss__that_fresh_answers_do_not_show_does_not_block(
    tmp_path: Path, judge: Calibrated
) -> None:
    once = f"read name; mkdir '{tmp_path}'/$name 2>&- && echo 'ok, what' || echo 'ok, please'\n"
    done = review(tmp_path, judge.base(agreement=0.8), {"agent.sh": once}, *FAIL_ON)
    assert done.code == 0, done.out + done.err
    found = pairwise(tmp_path)
    assert (found["finding"], found["fresh"]["finding"]) == ("worse", "too few pairs")
    assert "fresh answers: head's answer is much better in 0 and much worse in 0 of 8" in done.out


def test_confirm_0__blocks_by_the_first_answers(tmp_path: Path, judge: Calibrated) -> None:
    done = review(tmp_path, judge.base(agreement=0.8), RUDE, *FAIL_ON, "--confirm", "0")
    assert done.code == 1, done.out + done.err
    assert "much worse in 8 of 8 pairs and much better in 0" in done.out
    assert "fresh answers" not in done.out


#: A calibration on base, and why it does not support the judge.
ADVISORY: Mapping[str, tuple[dict[str, Any], str]] = {
    "none": ({}, "there is no `calibration.json`"),
    "agreement": (
        {"agreement": 0.41},
        "its agreement is at least 0.41 (95 %), under the floor of 0.5",
    ),
    "another way of judging": (
        {"agreement": 0.8, "key": "0" * 64},
        "it is not calibrated with its present prompt",
    ),
    "another model": ({"agreement": 0.8, "models": ["old"]}, "`served-1` judged, and `old` was"),
    "length": (
        {"agreement": 0.8, "length": {"value": 0.7, "low": 0.55}},
        "filler turns up to 45% of its verdicts (95 %), over the limit of 20%",
    ),
    "length unknown": (
        {"agreement": 0.8, "length": None},
        "it is not known whether filler turns its verdicts",
    ),
}


@pytest.mark.parametrize("name", ADVISORY)
def test_judge_without_a_calibration__is_advisory(
    tmp_path: Path, judge: Calibrated, name: str
) -> None:
    calibration, reason = ADVISORY[name]
    done = review(tmp_path, judge.base(**calibration), RUDE, *FAIL_ON)
    assert done.code == 0, done.out + done.err
    assert "head's answers are worse than base's in 1 suite (advisory)" in done.out
    assert f"advisory: {reason}" in done.out
    assert f"advisory: {reason}" in (tmp_path / "work/agentevals-report/comment.md").read_text()
    found = pairwise(tmp_path)
    assert (found["finding"], found["outcome"], found["fresh"]) == ("worse", None, None)


@pytest.mark.parametrize(
    ("moved", "code", "outcome"), [("a", 1, "failed"), ("abcd", 3, "inconclusive")]
)
def test_pairs__that_another_model_judged_are_not_judged(
    tmp_path: Path, judge: Calibrated, moved: str, code: int, outcome: str
) -> None:
    base = judge.base(agreement=0.8)
    judge.server.moved = moved
    done = review(tmp_path, base, RUDE, *FAIL_ON)
    judge.server.moved = ""
    assert done.code == code, done.out + done.err
    found = pairwise(tmp_path)
    assert (found["notJudged"], found["outcome"]) == ([*moved], outcome)
    assert "`served-2` judged, and `served-1` was calibrated" in done.out


#: What base's bound is, what the change does besides the edit, and the exit code.
EDITED: Mapping[str, tuple[float, Files, int]] = {
    "worse answers": (0.8, RUDE, 3),
    "equal answers": (0.8, {}, 0),
    "a judge that did not decide": (0.3, RUDE, 0),
}


@pytest.mark.parametrize("name", EDITED)
def test_judge__that_the_change_edits_cannot_be_switched_off(
    tmp_path: Path, judge: Calibrated, name: str
) -> None:
    bound, change, code = EDITED[name]
    base = judge.base(agreement=bound)
    edited = str(base["evals/EVAL.yaml"]).replace("polite.}", "polite., temperature: 1}")
    done = review(tmp_path, base, {**change, "evals/EVAL.yaml": edited}, *FAIL_ON)
    assert done.code == code, done.out + done.err
    assert ("the change makes their judge advisory" in done.out) is (code == 3)


def test_calibration_of_head__does_not_count(tmp_path: Path, judge: Calibrated) -> None:
    change = {**RUDE, "calibration.json": judge.calibration(0.1)}
    done = review(tmp_path, judge.base(agreement=0.8), change, *FAIL_ON)
    assert done.code == 1, done.out + done.err
    assert "this calibration differs from that of base" in done.out


def test_judge_that_cannot_be_asked__is_inconclusive(tmp_path: Path, judge: Calibrated) -> None:
    base = judge.base(agreement=0.8)
    judge.server.is_dumb = True
    done = review(tmp_path, base, RUDE, *FAIL_ON)
    judge.server.is_dumb = False
    assert done.code == 3, done.out + done.err
    assert "are worse than base's could not be decided: " in done.out


@pytest.mark.slow
def test_shards__each_confirms_its_part_and_the_merge_decides(
    tmp_path: Path, judge: Calibrated
) -> None:
    path = repository(tmp_path, judge.base(agreement=0.8), RUDE)
    for number in (1, 2):
        folder = f"agentevals-report/shards/{number}"
        options = ("--shard", f"{number}/2", "--report-dir", folder, *FAIL_ON)
        done = command.run(path, "review", "--base", "main", *options)
        assert done.code in (0, 3), done.out + done.err  # four pairs can show nothing
    done = command.run(path, "merge")
    assert done.code == 1, done.out + done.err
    assert WORSE in done.out


@pytest.mark.slow
def test_schedule__worse_answers_without_the_tree_of_base_are_not_confirmed(
    tmp_path: Path, judge: Calibrated
) -> None:
    asks = "test -n \"$RUDE\" && echo 'ok, what' || echo 'ok, please'\n"
    base = {**judge.base(agreement=0.8), "agent.sh": asks}
    inputs = {"fail-on": "pairwise", "env": "RUDE"}
    with opened(tmp_path, base, {"README.md": "x"}) as gate:
        main = gate.pull.main
        event = payloads.push_event("0" * 40, main)
        done = gate.finish("push", event, main, inputs=inputs, env={"RUDE": ""})
        assert done.code == 0, done.log
        event = payloads.schedule_event()
        for rude, code in (("", 0), ("1", 3)):
            done = gate.finish("schedule", event, main, inputs=inputs, env={"RUDE": rude})
            assert done.code == code, done.log
        assert "could not be decided: base has stored results alone" in done.log
