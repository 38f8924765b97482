"""Pairs of answers: a judge compares head's with base's, and a review shows it."""

import json
from collections.abc import Mapping
from pathlib import Path
from typing import Any

from tests.support import command
from tests.support.openai_server import OpenAIServer
from tests.support.repositories import Files, Repository

KEY = "sk-not-for-anybody-123456"
NAMES = tuple("abcdef")
SUITE = """\
name: shop
assert:
  - {type: contains, value: ok}
  - {type: pairwise, criteria: Is polite.}
tests:
""" + "".join(f"  - {{id: {name}, input: {name}}}\n" for name in NAMES)
#: An agent whose answer is a file of the repository, and a judge behind HTTP.
TARGETS = """\
targets:
  - {name: default, provider: cli, command: [cat, ../answer.txt], judge_target: judge}
  - {name: judge, provider: openai, model: m, base_url: "${{ MODEL_URL }}", api_key: "${{ MODEL_KEY }}"}
"""
FILES: Files = {
    "evals/EVAL.yaml": SUITE,
    ".agentv/targets.yaml": TARGETS,
    ".agentevals.yaml": "watch: [answer.txt]\n",
    ".gitignore": "/agentevals-report/\n",
    "answer.txt": "ok, please",
}
RUDE: Files = {"answer.txt": "ok, what"}
PREFERS_A = '{"better": "A", "by": "much", "reasoning": "it is first"}'
PREFERS_B = '{"better": "B", "by": "much", "reasoning": "it is polite"}'
#: A judge that finds the polite answer in either place.
FAIR = {r"answer A \w+>\nok, please": PREFERS_A, r"answer B \w+>\nok, please": PREFERS_B}


def review(
    folder: Path, judge: Mapping[str, str], change: Files, *options: str, base: Files = FILES
) -> tuple[command.Done, OpenAIServer]:
    repository = Repository.create(folder / "work", base)
    repository.git("checkout", "--quiet", "-b", "change")
    repository.commit("change", change)
    with OpenAIServer(judge) as server:
        environ = {"MODEL_KEY": KEY, "MODEL_URL": server.url}
        done = command.run(repository.path, "review", "--base", "main", *options, env=environ)
    return done, server


def suite(folder: Path) -> dict[str, Any]:
    summary = json.loads((folder / "work/agentevals-report/summary.json").read_text())
    (found,) = summary["suites"]
    return dict(found)


def figures(folder: Path) -> tuple[int, int, int, int]:
    (found,) = suite(folder)["pairwise"]
    return found["wins"], found["losses"], found["ties"], found["flips"]


def comment(folder: Path) -> str:
    return (folder / "work/agentevals-report/comment.md").read_text()


def test_review__shows_worse_answers_and_does_not_block(tmp_path: Path) -> None:
    done, server = review(tmp_path, FAIR, RUDE)
    assert done.code == 0, done.out + done.err
    assert figures(tmp_path) == (0, 6, 0, 0)
    assert len(server.requests) == 12
    words = "head's answer is much better in 0 and much worse in 6 of 6 pairs: worse than base's"
    assert words in done.out
    assert words in comment(tmp_path)
    assert "head's answers are worse than base's in 1 suite (advisory)" in done.out
    page = (tmp_path / "work/agentevals-report/report.html").read_text()
    assert "much worse in 6 of 6 pairs" in page
    assert "it is polite" in page


def test_judge_that_prefers_the_first_answer__gives_only_ties(tmp_path: Path) -> None:
    done, _ = review(tmp_path, {".": PREFERS_A}, RUDE)
    assert done.code == 0, done.out + done.err
    assert figures(tmp_path) == (0, 0, 6, 6)
    assert "6 ties, 6 of them flips): with 0 decisive pairs nothing could be found" in done.out


def test_equal_answers__cost_no_call(tmp_path: Path) -> None:
    done, server = review(tmp_path, FAIR, {".agentv/targets.yaml": f"{TARGETS}# Changed.\n"})
    assert done.code == 0, done.out + done.err
    assert figures(tmp_path) == (0, 0, 6, 0)
    assert not server.requests


def test_judge_that_fails__leaves_pairs_unjudged_and_scores_standing(tmp_path: Path) -> None:
    done, _ = review(tmp_path, {".": "I cannot say."}, RUDE)
    assert done.code == 0, done.out + done.err
    (found,) = suite(tmp_path)["pairwise"]
    assert found["notJudged"] == [*NAMES]
    assert "cannot be read, also when asked again" in found["problem"]
    assert "not judged" in comment(tmp_path)


def test_stored_answers__are_compared_if_they_can_be_read(tmp_path: Path) -> None:
    repository = Repository.create(tmp_path / "work", FILES)
    with OpenAIServer(FAIR) as server:
        environ = {"MODEL_KEY": KEY, "MODEL_URL": server.url}
        assert command.run(repository.path, "run", env=environ).code == 0
        rows = (repository.path / "agentevals-report/results.jsonl").read_text()
        stored = rows.replace('"content":"ok, please"', '"content":5', 1)
        assert stored != rows
        repository.commit("baseline", {"base.jsonl": stored})
        repository.git("checkout", "--quiet", "-b", "change")
        repository.commit("change", RUDE)
        options = ("--baseline", "file", "--baseline-file", "base.jsonl")
        done = command.run(repository.path, "review", "--base", "main", *options, env=environ)
    assert done.code == 0, done.out + done.err
    assert figures(tmp_path) == (0, 5, 0, 0)


def test_secret_that_the_judge_repeats__is_in_no_file(tmp_path: Path) -> None:
    reply = PREFERS_A.replace("it is first", f"the key is {KEY}")
    done, _ = review(tmp_path, {".": reply}, RUDE)
    assert done.code == 0, done.out + done.err
    files = [*(tmp_path / "work/agentevals-report").iterdir()]
    assert [file.name for file in files if KEY in file.read_text()] == []
    assert any("the key is" in file.read_text() for file in files)


def test_changed_question__is_not_compared(tmp_path: Path) -> None:
    change = {**RUDE, "evals/EVAL.yaml": SUITE.replace("input: a}", "input: other}")}
    done, _ = review(tmp_path, FAIR, change)
    assert done.code == 0, done.out + done.err
    assert figures(tmp_path) == (0, 5, 0, 0)


def test_pairwise_that_head_adds__is_named_and_scores_nothing_again(tmp_path: Path) -> None:
    without = SUITE.replace("  - {type: pairwise, criteria: Is polite.}\n", "")
    base = {**FILES, "evals/EVAL.yaml": without}
    done, _ = review(tmp_path, FAIR, {**RUDE, "evals/EVAL.yaml": SUITE}, base=base)
    assert done.code == 0, done.out + done.err
    assert figures(tmp_path) == (0, 6, 0, 0)
    assert "evaluator `pairwise` of 6 tests added" in done.out
    assert not any(test["rescored"] for test in suite(tmp_path)["tests"])


def test_shards__have_the_pairs_of_all(tmp_path: Path) -> None:
    repository = Repository.create(tmp_path / "work", FILES)
    repository.git("checkout", "--quiet", "-b", "change")
    repository.commit("change", RUDE)
    with OpenAIServer(FAIR) as server:
        environ = {"MODEL_KEY": KEY, "MODEL_URL": server.url}
        for number in (1, 2):
            folder = f"agentevals-report/shards/{number}"
            options = ("--shard", f"{number}/2", "--report-dir", folder)
            done = command.run(repository.path, "review", "--base", "main", *options, env=environ)
            assert done.code == 0, done.out + done.err
    done = command.run(repository.path, "merge")
    assert done.code == 0, done.out + done.err
    assert figures(tmp_path) == (0, 6, 0, 0)
