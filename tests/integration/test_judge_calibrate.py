"""`judge calibrate`: labelled answers, and a judge of known verdicts over HTTP."""

import json
import re
import subprocess
import sys
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

import pytest
import yaml

from agentevals_action.judges.calibration_file import parse_calibration
from agentevals_action.judges.labels import answer_digest
from agentevals_action.model.judge import Estimate, JudgeCalibration
from agentevals_action.results.jsonl import read_results
from tests.support import command, data
from tests.support.openai_server import OpenAIServer, Received, Reply

pytest.importorskip("statsmodels", reason="needs the extra `judges`")

MODEL = "judge-2026-01-01"
TARGETS = """\
targets:
  - {name: default, provider: mock, response: answer no. 0}
  - {name: judge, provider: openai, model: alias, base_url: "%s", api_key: "${{ KEY }}", price: {input: 1, output: 10}}
"""
ENV = {"KEY": "key-of-the-judge"}
IS_RIGHT = {"type": "llm_judge", "name": "is-right", "target": "judge"}
FORM = {
    "type": "rubric",
    "name": "form",
    "target": "judge",
    "rubrics": [{"id": "polite", "outcome": "is polite"}, {"id": "short", "outcome": "is short"}],
}


class Judge(OpenAIServer):
    """Says of the answer with a number one thing after another: a score, or a reply in full."""

    def __init__(self, opinions: Mapping[int, Sequence[float | str]]) -> None:
        super().__init__()
        self._opinions = {number: list(own) for number, own in opinions.items()}

    def reply(self, received: Received) -> Reply:
        number = int(re.findall(r"answer no\. (\d+)", received.data.decode())[-1])
        own = self._opinions[number]
        said = own.pop(0) if len(own) > 1 else own[0]
        score = {"score": said, "reasoning": f"the reason of {number}"}
        text = said if isinstance(said, str) else json.dumps(score)
        return Reply(text=text, fields={"model": MODEL})


def checks(**satisfied: bool) -> str:
    """A judge's reply about the criteria of a rubric."""
    found = [
        {"id": name, "satisfied": is_met, "reasoning": f"why {name}"}
        for name, is_met in satisfied.items()
    ]
    return json.dumps({"checks": found})


def label(test: str, number: int, verdict: str | float, **fields: Any) -> dict[str, Any]:
    answer = {} if "digest" in fields else {"answer": f"answer no. {number}"}
    return {"test": test, **answer, "label": verdict, "who": "ann", **fields}


def write(
    folder: Path, url: str, labels: Sequence[Mapping[str, Any]], *evaluators: Mapping[str, Any]
) -> Path:
    """A suite of the tests of these labels, and the labels."""
    tests = [
        {"id": name, "input": f"question of {name}", "criteria": "is right"}
        for name in dict.fromkeys(str(each["test"]) for each in labels)
    ]
    suite = {"name": "orders", "tests": tests, "assert": evaluators or [IS_RIGHT]}
    (folder / ".agentv").mkdir(exist_ok=True)
    (folder / ".agentv/targets.yaml").write_text(TARGETS % url)
    (folder / "EVAL.yaml").write_text(json.dumps(suite))
    (folder / "EVAL.labels.jsonl").write_text("".join(f"{json.dumps(row)}\n" for row in labels))
    return folder


def calibrate(folder: Path, *options: str) -> command.Done:
    return command.run(folder, "judge", "calibrate", *options, env=ENV)


def read(folder: Path) -> Sequence[JudgeCalibration]:
    return [*read_by_key(folder).values()]


def read_by_key(folder: Path) -> Mapping[str, JudgeCalibration]:
    content = parse_calibration((folder / "calibration.json").read_bytes())
    assert content.errors == ()
    assert content.calibration is not None
    return content.calibration.judges


def test_calibrate__a_public_calibration_has_its_published_figures(tmp_path: Path) -> None:
    """Agreement of 92 % and kappa of 0.55 show little: the interval by test begins below 0."""
    tests = data.read("judges/obsidian-gemini.json")["tests"]
    pairs = [(name, *each.split("/")) for name, own in tests.items() for each in own]
    labels = [label(name, number, verdict) for number, (name, verdict, _) in enumerate(pairs)]
    with Judge({number: [float(said == "pass")] for number, (*_, said) in enumerate(pairs)}) as url:
        done = calibrate(write(tmp_path, url.url, labels))
        again = calibrate(tmp_path)
    assert (done.code, again.code) == (0, 0), done.err
    (judge,) = read(tmp_path)
    assert (judge.passes, judge.fails, judge.tests, judge.models) == (84, 6, 30, (MODEL,))
    assert judge.agreement == Estimate(value=0.9222, low=0.8255)
    # The six fails are of three tests.
    found = [each and (each.value, each.low) for each in (judge.specificity, judge.kappa)]
    expected = (pytest.approx((0.833, 0.075), abs=0.005), pytest.approx((0.55, -0.02), abs=0.03))
    assert found == [*expected]
    assert "judges disagree with people about 7 of 90 answers" in done.out
    assert re.search(r"92\.2% \(≥ 82\.6%\) .* 0\.55 \(−0\.03 to 0\.86\)", done.out)
    assert "of people's passes it passes 78 and fails 6, of their fails it passes 1 and" in done.out
    assert "people pass 93.3% of the answers" in done.out
    assert again.out == done.out
    assert "This calibration cost" in done.err


def test_calibrate__shows_disagreements_first_and_what_passed_wrongly_before(
    tmp_path: Path,
) -> None:
    labels = [
        label("a", 0, "pass"),
        label("b", 1, "pass", note="it is what the manual says"),
        label("c", 2, 0.2, who="bob"),
        label("d", 3, "pass"),
        label("d", 3, "fail", who="bob"),
        label("e", 4, "fail", who="model"),
    ]
    with Judge({0: [1.0], 1: [0.5], 2: [0.9], 3: [1.0]}) as server:
        done = calibrate(write(tmp_path, server.url, labels))
        asked = len(server.requests)
    assert done.code == 0, done.err
    assert asked == 3  # neither the answer that people disagree about, nor a model's label
    assert done.out.startswith(
        """\
EVAL.yaml d is-right: people disagree (ann: pass, bob: fail), and no label counts
judges disagree with people about 2 of 3 answers

EVAL.yaml c is-right
  people    0.2 (bob)
  judge     pass (0.90): the reason of 2
  question  question of c
  criteria  is right
  answer    answer no. 2

EVAL.yaml b is-right
  people    pass (ann): it is what the manual says
  judge     fail (0.50): the reason of 1
"""
    )
    conflict = "EVAL.yaml d is-right: people disagree (ann: pass, bob: fail), and no label counts"
    assert done.out.index(conflict) < done.out.index("sensitivity")
    (judge,) = read(tmp_path)
    assert (judge.passes, judge.fails, judge.unstable) == (2, 1, None)
    alone = calibrate(write(tmp_path, server.url, labels[3:5]))
    assert (alone.code, alone.out) == (2, f"{conflict}\n")


def test_calibrate__several_judgements_show_how_often_a_judge_disagrees_with_itself(
    tmp_path: Path,
) -> None:
    labels = [label("a", 0, "pass"), label("b", 1, "fail"), label("c", 2, "pass")]
    with Judge({0: [1, 0, 1], 1: [0], 2: [1]}) as server:
        done = calibrate(write(tmp_path, server.url, labels), "--samples", "3")
    assert done.code == 0, done.err
    (judge,) = read(tmp_path)
    assert judge.unstable == pytest.approx(1 / 3, abs=1e-4)
    assert (judge.sensitivity or Estimate(value=0, low=0)).value == 0.8333
    assert "judge     fail (0.00, 1 of 3 times): the reason of 0" in done.out
    assert "it disagrees with itself about 33.3% of the answers" in done.out


def test_calibrate__what_got_no_verdict_is_left_out_and_exit_code_3(tmp_path: Path) -> None:
    labels = [label("a", 0, "pass"), label("b", 1, "fail")]
    with Judge({0: [1.0], 1: ["I would rather not say."]}) as server:
        done = calibrate(write(tmp_path, server.url, labels))
    assert done.code == 3
    assert "warning: EVAL.yaml b is-right: the judge's reply cannot be read" in done.err
    (judge,) = read(tmp_path)
    assert (judge.passes, judge.fails, judge.specificity) == (1, 0, None)
    assert "no label is `fail`, so that its specificity is unknown; label answers" in done.out


def test_calibrate__without_a_verdict_nothing_is_written(tmp_path: Path) -> None:
    with Judge({0: ["no"]}) as server:
        done = calibrate(write(tmp_path, server.url, [label("a", 0, "pass")]))
    assert done.code == 3
    assert not (tmp_path / "calibration.json").exists()


def test_calibrate__max_cost_usd_holds(tmp_path: Path) -> None:
    labels = [label(f"t{number}", number, "pass") for number in range(4)]
    limits = ("--max-cost-usd", "0.0001", "--max-concurrency", "1")
    with Judge({number: [1.0] for number in range(4)}) as server:
        done = calibrate(write(tmp_path, server.url, labels), *limits)
        asked = len(server.requests)
    assert done.code == 3
    assert asked < 4
    assert "`max-cost-usd` ($0.0001) is reached" in done.err


def test_calibrate__with_a_cache_it_asks_only_what_is_new(tmp_path: Path) -> None:
    options = ("--cache", "on", "--cache-dir", "replies", "--samples", "2")
    labels = [label("a", 0, "pass"), label("b", 1, "pass"), label("c", 2, "fail")]
    with Judge({0: [1.0], 1: [1.0, 0.0], 2: [0.0]}) as server:
        first = calibrate(write(tmp_path, server.url, labels[:2]), *options)
        asked = len(server.requests)
        second = calibrate(write(tmp_path, server.url, labels), *options)
        more = len(server.requests) - asked
    assert (first.code, second.code, asked, more) == (0, 0, 4, 2), second.err
    (judge,) = read(tmp_path)
    assert judge.unstable == pytest.approx(1 / 3, abs=1e-4)  # a repeated judgement is its own


def test_calibrate__criteria_of_a_rubric_are_measured_one_by_one(tmp_path: Path) -> None:
    labels = [
        label(test, number, verdict, evaluator="all/form", criterion=criterion)
        for number, test in enumerate("ab")
        for criterion, verdict in (("polite", "pass"), ("short", "fail"))
    ]
    both = {"type": "composite", "name": "all", "evaluators": [FORM, IS_RIGHT]}
    replies = {0: [checks(polite=True, short=False)], 1: [checks(polite=True, short=True)]}
    with Judge(replies) as server:
        done = calibrate(write(tmp_path, server.url, labels, both))
        asked = len(server.requests)
    assert done.code == 0, done.err
    assert asked == 2  # each answer once, and only the judge with labels
    (judge,) = read(tmp_path)
    assert (judge.type, judge.evaluators, judge.target) == ("rubric", ("all/form",), "judge")
    found = {name: own.agreement and own.agreement.value for name, own in judge.criteria.items()}
    assert found == {"polite": 1.0, "short": 0.5}
    assert "EVAL.yaml b all/form short\n" in done.out
    assert "judge     pass (1.00): why short" in done.out
    assert "criteria  is short" in done.out


def test_calibrate__stored_answers_are_judged_as_the_gate_judges_them(tmp_path: Path) -> None:
    """Labels of stored answers, and the key by which the gate finds the judge."""
    with Judge({0: [0.9]}) as server:
        write(tmp_path, server.url, [label("a", 0, "pass")])
        ran = command.run(tmp_path, "run", env=ENV)
        assert ran.code == 0, ran.err
        stored = tmp_path / "agentevals-report/results.jsonl"
        row = json.loads(stored.read_text())
        (evaluator,) = row["samples"][0]["evaluatorResults"]
        digest = _digest(tmp_path)
        labels = [label("a", 0, "pass", digest=digest), label("a", 0, "fail", digest="0" * 64)]
        unknown = calibrate(write(tmp_path, server.url, labels))
        done = calibrate(write(tmp_path, server.url, labels[:1]))
        moved = stored.rename(tmp_path / "kept.jsonl")
        lost = calibrate(tmp_path)
        named = calibrate(tmp_path, "--results", moved.name)
        gone = calibrate(tmp_path, "--results", "nowhere.jsonl")
    assert done.code == 0, done.err
    assert [*read_by_key(tmp_path)] == [evaluator["judge"]["key"]]
    assert named.code == 0, named.err
    assert unknown.code == 2
    place = "EVAL.labels.jsonl:2:1"
    assert f"{place}: no result has the answer with this digest; name its file" in unknown.err
    assert (lost.code, gone.code) == (2, 2)
    assert "1 error, nothing was run" in lost.err
    assert "nowhere.jsonl: cannot be read" in gone.err


def test_calibrate__corrects_the_pass_rate_of_stored_answers(tmp_path: Path) -> None:
    labels = [label(f"t{number}", int(number < 2), "pass") for number in range(10)]
    labels += [label("t10", 1, "fail"), label("t11", 1, "fail")]
    with Judge({0: [1.0], 1: [0.0]}) as server:
        write(tmp_path, server.url, labels)
        assert command.run(tmp_path, "run", env=ENV).code == 0
        done = calibrate(tmp_path)
    assert done.code == 0, done.err
    # 1 / (0.8 + 1 - 1), which is at most 1
    expected = "passes 100% of 12 stored answers; corrected for its errors, 100% are good"
    assert expected in done.out


def _digest(folder: Path) -> str:
    (row,) = read_results(folder / "agentevals-report/results.jsonl")
    return answer_digest(row.samples[0])


@pytest.mark.parametrize(
    ("labels", "error"),
    [
        ([], "there are no labels that count\n"),
        ([label("a", 0, "fail", who="model")], "there are no labels that count\n"),
        (
            [label("a", 0, "pass"), {"test": "a"}],
            "EVAL.labels.jsonl:2:1: `label` is missing; every label needs it",
        ),
        (
            [label("a", 0, "pass", evaluator="b")],
            "EVAL.labels.jsonl:1:1: the test `a` has no judge",
        ),
    ],
)
def test_calibrate__labels_with_a_fault(
    tmp_path: Path, labels: Sequence[Mapping[str, Any]], error: str
) -> None:
    write(tmp_path, "http://127.0.0.1:9", [label("a", 0, "pass")])
    file = tmp_path / "EVAL.labels.jsonl"
    file.write_text("".join(f"{json.dumps(row)}\n" for row in labels))
    if not labels:
        file.unlink()
    done = calibrate(tmp_path)
    assert done.code == 2
    assert error in done.err
    assert not (tmp_path / "calibration.json").exists()


def test_calibrate__a_suite_with_errors_is_no_suite_without_labels(tmp_path: Path) -> None:
    write(tmp_path, "http://127.0.0.1:9", [label("a", 0, "pass")])
    (tmp_path / "EVAL.yaml").write_text("tests: 1")
    assert calibrate(tmp_path).code == 2


def test_calibrate__list_and_explain_show_the_standing_of_judges(tmp_path: Path) -> None:
    bounds = "agreement ≥ 22.4%, sensitivity ≥ 5%, specificity ≥ 5%"
    with Judge({0: [1.0], 1: [0.0]}) as server:
        write(tmp_path, server.url, [label("a", 0, "pass"), label("b", 1, "fail")])
        before = command.run(tmp_path, "list", env=ENV)
        assert calibrate(tmp_path).code == 0
        listed = command.run(tmp_path, "list", env=ENV)
        as_json = command.run(tmp_path, "list", "--json", env=ENV)
        explained = command.run(tmp_path, "explain", "a", env=ENV)
    assert "  judge is-right: not calibrated\n" in before.out
    said = re.search(r"judge is-right: (calibrated on \S+ with judge-2026-01-01: .*)\n", listed.out)
    assert said, listed.out
    assert said[1].endswith(bounds)
    assert json.loads(as_json.out)[0]["judges"] == {"is-right": said[1]}
    assert yaml.safe_load(explained.out)["calibration"] == {"is-right": said[1]}
    options = ("--judge-floor", "specificity:0.7")
    under = command.run(tmp_path, "list", *options, env=ENV).out
    assert f"{said[1]}; advisory: its specificity is at least 0.05 (95 %), under the" in under
    suite = tmp_path / "EVAL.yaml"
    suite.write_text(suite.read_text().replace('"is-right"', '"is-right", "temperature": 1'))
    assert "judge is-right: not calibrated" in command.run(tmp_path, "list", env=ENV).out
    (tmp_path / "calibration.json").write_text("{}")
    broken = command.run(tmp_path, "list", env=ENV)
    assert broken.code == 0
    assert "warning: calibration.json:1:1: `day` is missing" in broken.err


def test_calibrate__without_the_extra_one_sentence_says_how_to_install_it(tmp_path: Path) -> None:
    write(tmp_path, "http://127.0.0.1:9", [label("a", 0, "pass")])
    script = (
        "import sys; sys.modules['scipy'] = None; sys.argv[1:] = ['judge', 'calibrate'];"
        "from agentevals_action.cli.app import main; main()"
    )
    done = subprocess.run(
        [sys.executable, "-c", script],
        cwd=tmp_path,
        env=command.environment(),
        capture_output=True,
        text=True,
        check=False,
    )
    assert done.returncode == 2
    assert "pip install 'agentevals-action[judges]'" in done.stderr
    assert "Traceback" not in done.stderr


class PairJudge(OpenAIServer):
    """Prefers the answer with the smaller number, slightly; always A where both are over 90. With
    `likes_length` the longer one, if one is."""

    likes_length = False

    def reply(self, received: Received) -> Reply:
        first, second = map(
            int, re.findall(r"<answer [AB] \w+>\nanswer no\. (\d+)", received.prompt)
        )
        better = "A" if first < second or min(first, second) > 90 else "B"
        if self.likes_length and (filler := received.prompt.find("several aspects")) >= 0:
            better = "A" if filler < received.prompt.index("<answer B") else "B"
        reply = {"better": better, "by": "slightly", "reasoning": f"{first} against {second}"}
        return Reply(text=json.dumps(reply), fields={"model": MODEL})


PAIRS = {"type": "pairwise", "name": "better", "target": "judge"}


def test_calibrate__a_judge_of_pairs_is_right_if_it_prefers_the_same_in_both_orders(
    tmp_path: Path,
) -> None:
    labels = [
        label("a", 1, "pass", other="answer no. 2"),
        label("b", 4, "fail", other="answer no. 3"),
        label("c", 5, "fail", other="answer no. 6"),  # it is wrong
        label("d", 91, "pass", other="answer no. 92"),  # a flip
        label("d", 92, "fail", other="answer no. 91"),  # a flip, too
    ]
    with PairJudge() as server:
        scored = {"type": "contains", "value": "answer"}
        done = calibrate(write(tmp_path, server.url, labels, scored, PAIRS), "--samples", "2")
        assert len(server.requests) == 2 * 20  # also with filler
    assert done.code == 0, done.err
    (judge,) = read(tmp_path)
    assert (judge.type, judge.evaluators, judge.passes, judge.fails) == (
        "pairwise",
        ("better",),
        2,
        3,
    )
    assert judge.agreement
    assert judge.agreement.value == 0.4
    assert "judges disagree with people about 3 of 5 answers" in done.out
    assert "91 against 92; 92 against 91" in done.out
    shown = command.run(tmp_path, "explain", "a", "EVAL.yaml", env=ENV)
    assert "better: 'calibrated on" in shown.out, shown.out + shown.err


@pytest.mark.parametrize(
    ("likes_length", "expected", "words"),
    [
        (False, Estimate(value=1, low=0.5493), "100% (≥ 54.9%)"),
        (True, Estimate(value=0, low=0), "0% (≥ 0%)"),
    ],
)
def test_calibrate__filler_behind_the_worse_answer_turns_no_verdict_of_a_judge_of_pairs(
    tmp_path: Path, likes_length: bool, expected: Estimate, words: str
) -> None:
    labels = [
        label("t0", 1, "pass", other="answer no. 2"),
        *(label(f"t{number}", 4, "fail", other="answer no. 3") for number in range(1, 5)),
        label("t5", 5, "fail", other="answer no. 6"),  # it is wrong without filler
    ]
    with PairJudge() as server:
        server.likes_length = likes_length
        scored = {"type": "contains", "value": "answer"}
        done = calibrate(write(tmp_path, server.url, labels, scored, PAIRS), "--probe")
    assert done.code == 0, done.err
    assert "order:" not in done.out  # it is always asked in both
    (judge,) = read(tmp_path)
    assert judge.length == expected
    sentence = f"of its right verdicts {words} stay so with filler behind the worse answer"
    assert sentence in done.out
