"""`judge label` as a person uses it: keys on a terminal, and the file of labels beside the suite."""

import signal
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest
import yaml

from agentevals_action.judges.labels import answer_digest
from agentevals_action.model.result import SampleResult
from agentevals_action.results.jsonl import encode_row
from tests.support import command
from tests.support.repositories import Repository
from tests.support.results import evaluated, result
from tests.support.terminal import Terminal

SUITE = """\
name: support
tests:
  - {id: returns, input: Can I return shoes?, criteria: Offers the refund.}
  - id: steps
    input: How do I return them?
    assert:
      - type: rubric
        name: quality
        rubrics: [names the period, {id: easy, outcome: is easy to follow}]
  - {id: fixed, input: q, assert: [{type: contains, value: x}]}
"""
TARGETS = """\
- {name: default, provider: mock, response: "Within 30 days.", judge_target: judge}
- name: judge
  provider: mock
  responses:
    - pattern: '- id: easy'
      response: '{"checks": [{"id": "rubric-1", "satisfied": true}, {"id": "easy", "satisfied": false, "reasoning": "no steps"}]}'
    - {pattern: '', response: '{"score": 0.9, "reasoning": "it is polite"}'}
"""
FILES = {
    "evals/EVAL.yaml": SUITE,
    ".agentv/targets.yaml": TARGETS,
    ".gitignore": "/agentevals-report/\n",
}
KEYS = "p pass · f fail · s skip · u undo · q quit"
RESULTS = "agentevals-report/results.jsonl"


@pytest.fixture
def labelled(tmp_path: Path) -> Repository:
    """A repository with the results of a run."""
    repository = Repository.create(tmp_path / "repository", FILES)
    repository.git("config", "user.name", "Ada")
    assert command.run(repository.path, "run").code == 1  # a criterion is not met
    return repository


def labels(repository: Repository) -> list[dict[str, Any]]:
    file = repository.path / "evals/EVAL.labels.yaml"
    found: list[dict[str, Any]] = yaml.safe_load(file.read_text()) if file.exists() else []
    return found


@contextmanager
def labelling(repository: Repository, *arguments: str) -> Iterator[Terminal]:
    with Terminal(repository.path, "judge", "label", *arguments, has_keys=True) as terminal:
        yield terminal


def asks(number: int) -> Callable[[list[str]], bool]:
    """Whether a screen asks for the n-th time, from 1."""
    return lambda lines: sum(line == KEYS for line in lines) >= number


def press_at(terminal: Terminal, number: int, keys: str) -> None:
    """Presses keys when one is asked for the n-th time: what is typed before has no effect."""
    terminal.read_until(asks(number))
    while terminal.shows_keys:
        assert terminal.process.poll() is None, terminal.lines
        time.sleep(0.01)
    terminal.press(keys)


def press(terminal: Terminal, keys: str) -> str:
    """Presses each key when it is asked for; what is shown at the end."""
    for number, key in enumerate(keys, 1):
        press_at(terminal, number, key)
    return "\n".join(terminal.read_to_end())


def test_labels__are_written_after_each_key_and_the_next_call_continues(
    labelled: Repository,
) -> None:
    with labelling(labelled) as terminal:
        shown = press(terminal, "pq")
    (label,) = labels(labelled)
    first = {"test": "steps", "answer": "Within 30 days.", "evaluator": "quality"}
    first["question"] = label["question"]
    assert labels(labelled) == [
        {**first, "criterion": "rubric-1", "label": "pass", "who": "Ada"},
    ]
    assert "evals/EVAL.yaml steps: 1 of 3" in shown  # its judge fails it
    for words in ("How do I return them?", "Within 30 days.", "names the period"):
        assert words in shown
    assert "evals/EVAL.labels.yaml" in shown
    assert "`quality` has 1 pass, 0 fail; specificity:0.7 needs at least 9 more fail" in shown
    assert "`criteria` has 0 pass, 0 fail" in shown
    assert "no steps" not in shown

    with labelling(labelled, "--show-judge") as terminal:
        shown = press(terminal, "fp")
    assert [(label.get("criterion"), label["label"]) for label in labels(labelled)] == [
        ("rubric-1", "pass"),
        ("easy", "fail"),
        (None, "pass"),
    ]
    assert "fail: no steps" in shown
    assert "pass: it is polite" in shown
    assert command.run(labelled.path, "validate").code == 0

    with labelling(labelled) as terminal:
        assert "nothing to label: " in "\n".join(terminal.read_to_end())
    with labelling(
        labelled, "--who", "ben", "--judge-floor", "sensitivity:0.5,agreement:0.9"
    ) as terminal:
        shown = press(terminal, "pq")
    assert "steps: 1 of 3" in shown
    needs = "sensitivity:0.5 needs at least 4 more pass; agreement:0.9 needs at least 27 more"
    assert needs in shown.replace("\n", "")


def test_undo__takes_back_what_was_said_last(labelled: Repository) -> None:
    with labelling(labelled) as terminal:
        press(terminal, "upsuuffusp")

    assert [(label["test"], label["label"]) for label in labels(labelled)] == [
        ("steps", "fail"),
        ("returns", "pass"),
    ]


def test_keys__that_are_none_of_these_label_nothing(labelled: Repository) -> None:
    with labelling(labelled) as terminal:
        for number, keys in enumerate(("\x1b[A", "\x1bf", "pp", "x", "é", "\x04"), 1):
            press_at(terminal, number, keys)
        terminal.read_to_end()
        assert terminal.shows_keys

    assert labels(labelled) == []


def test_keys__that_were_typed_before_an_answer_was_shown_are_dropped(
    labelled: Repository,
) -> None:
    with labelling(labelled) as terminal:
        terminal.press("fff")
        press(terminal, "pq")

    assert [label["label"] for label in labels(labelled)] == ["pass"]


@pytest.mark.slow
@pytest.mark.parametrize("number", [signal.SIGTERM, signal.SIGKILL])
def test_labels__stay_when_the_command_is_killed(
    labelled: Repository, number: signal.Signals
) -> None:
    with labelling(labelled) as terminal:
        press_at(terminal, 1, "f")
        terminal.read_until(asks(2))
        terminal.process.send_signal(number)
        shown = "\n".join(terminal.read_to_end())
        if number != signal.SIGKILL:
            assert terminal.process.returncode == 128 + number
            assert terminal.shows_keys
            assert "`quality` has 0 pass, 1 fail" in shown

    assert [label["label"] for label in labels(labelled)] == ["fail"]
    with labelling(labelled) as terminal:
        assert "steps: 1 of 2" in press(terminal, "q")


def sample(answer: str, *, passes: bool = True, **fields: Any) -> SampleResult:
    """A sample with one message, which the judge lets pass or not."""
    messages = ({"role": "assistant", "content": answer},)
    judge = evaluated("criteria", float(passes), passed=passes)
    fields = {"output_messages": messages, **fields}
    return SampleResult(candidate_answer=answer, evaluator_results=(judge,), **fields)


def write_results(repository: Repository, *samples: SampleResult, **fields: Any) -> None:
    """Results of the test `returns`."""
    row = replace(result("returns", question="Can I return shoes?", **fields), samples=samples)
    (repository.path / RESULTS).write_bytes(encode_row(row) + b"\n")


def test_answers__one_of_each_test_unless_all_are_asked_for(labelled: Repository) -> None:
    write_results(labelled, sample("good"), sample("bad", passes=False), sample("good"))

    with labelling(labelled) as terminal:
        shown = press(terminal, "f")
    assert "1 of 1" in shown
    with labelling(labelled, "--all-answers") as terminal:
        shown = press(terminal, "p")
    assert "1 of 1" in shown
    assert [label["answer"] for label in labels(labelled)] == ["bad", "good"]


def test_answers__of_another_question_are_left_out(labelled: Repository) -> None:
    write_results(labelled, sample("yes"), input_messages=({"role": "system", "content": "old"},))

    with labelling(labelled) as terminal:
        shown = "\n".join(terminal.read_to_end())

    assert "the tests ask other questions by now" in shown


def test_labels__of_an_earlier_question_do_not_count(labelled: Repository) -> None:
    with labelling(labelled) as terminal:
        press(terminal, "ppf")
    labelled.write({"evals/EVAL.yaml": SUITE.replace("Can I return shoes?", "Can I return hats?")})
    command.run(labelled.path, "run")

    validated = command.run(labelled.path, "validate")
    with labelling(labelled) as terminal:
        shown = press(terminal, "p")

    warning = "this label of `returns` is about an earlier question and does not count; remove it"
    assert (validated.code, validated.err.count(warning)) == (0, 1)
    assert f"warning: evals/EVAL.labels.yaml:15:3: {warning}" in validated.err
    assert "evals/EVAL.yaml returns: 1 of 1" in shown
    assert "`criteria` has 1 pass, 0 fail" in shown


def test_answer__of_a_model_does_not_control_the_terminal(labelled: Repository) -> None:
    hostile = "before\x1b[2J\x1b]0;title\x07\x9b1m\u202eafter\r\nlast"
    write_results(labelled, sample(hostile))

    with labelling(labelled) as terminal:
        shown = press(terminal, "f")

    for sequence in (b"\x1b[2J", b"\x1b]0", b"\x07", "\x9b".encode(), "\u202e".encode()):
        assert sequence not in terminal.written
    assert "before�[2J" in shown
    (label,) = labels(labelled)
    assert label["answer"] == hostile
    assert command.run(labelled.path, "validate").code == 0


@pytest.mark.parametrize(
    ("more", "shown"),
    [
        ({"file_changes": "+ a line"}, "  + a line"),
        (
            {
                "output_messages": (
                    {
                        "role": "assistant",
                        "content": "",
                        "tool_calls": [{"tool": "refund", "input": {"order": 7}, "output": "ok"}],
                    },
                    {"role": "assistant", "content": "done"},
                )
            },
            '[calls refund {"order": 7} → ok]',
        ),
        ({"answer": "long " * 5_000 + "end"}, " long end"),
    ],
)
def test_answer__that_is_more_than_a_text_has_a_digest(
    labelled: Repository, more: dict[str, Any], shown: str
) -> None:
    made = sample(**{"answer": "done", **more})
    write_results(labelled, made)

    with labelling(labelled) as terminal:
        screen = press(terminal, "p")

    assert shown in screen
    (label,) = labels(labelled)
    assert (label["digest"], "answer" in label) == (answer_digest(made), False)
    assert command.run(labelled.path, "validate").code == 0


def test_results__that_are_missing_or_empty(labelled: Repository) -> None:
    (labelled.path / "empty.jsonl").write_text("")
    (labelled.path / "broken.jsonl").write_text("{}\n")
    (labelled.path / RESULTS).unlink()
    for arguments, code, words in (
        ((), 2, "there are no results in"),
        (("--results", "empty.jsonl"), 0, "nothing to label: "),
        (("--results", "broken.jsonl"), 2, "broken.jsonl:1: not a valid result"),
        (("--results", "none.jsonl"), 2, "'none.jsonl' does not exist"),
        (("evals/none.yaml",), 2, "there is no file or folder evals/none.yaml"),
    ):
        with labelling(labelled, *arguments) as terminal:
            shown = "".join(terminal.read_to_end())
        assert (terminal.process.returncode, words in shown) == (code, True), shown


def test_label__without_a_terminal_a_name_or_valid_labels_is_refused(labelled: Repository) -> None:
    done = command.run(labelled.path, "judge", "label")
    assert (done.code, done.err) == (
        2,
        "`judge label` asks a person, and this is no terminal\nstart it in a terminal\n",
    )
    labelled.write({"evals/EVAL.labels.yaml": "- {test: retrns, answer: a, label: pass, who: b}\n"})
    with labelling(labelled) as terminal:
        shown = "".join(terminal.read_to_end())
    assert "evals/EVAL.labels.yaml:1:10: evals/EVAL.yaml has no test `retrns`" in shown
    labelled.write({"evals/EVAL.labels.yaml": None})
    labelled.git("config", "--unset", "user.name")
    with labelling(labelled, "--who", " ") as terminal:
        assert "write `--who NAME`" in "".join(terminal.read_to_end())


def test_label__a_file_that_somebody_changes_meanwhile_keeps_the_change(
    labelled: Repository,
) -> None:
    file = labelled.path / "evals/EVAL.labels.yaml"
    with labelling(labelled) as terminal:
        press_at(terminal, 1, "f")
        terminal.read_until(asks(2))
        file.write_text(f"# ours\n{file.read_text()}")
        press_at(terminal, 2, "p")
        terminal.read_until(asks(3))
        file.write_text(f"{file.read_text()}# mine\n")
        press_at(terminal, 3, "u")
        shown = "".join(terminal.read_to_end())

    assert "somebody changed" in shown
    assert file.read_text().startswith("# ours\n")
    assert len(labels(labelled)) == 2
