"""`explain`: the effective form of a test, on real suites in a process of its own."""

from pathlib import Path

import pytest
import yaml

from tests.conftest import Golden
from tests.support import command, suites

TARGETS = """\
targets:
  - {name: default, provider: cli, command: [cat, agent.txt], judge_target: judge}
  - {name: judge, provider: mock, responses: [{pattern: '.*', response: '{"score": 1}'}]}
  - {name: model, provider: mock, responses: [{pattern: '.*', response: hello}]}
"""
SUITE = """\
name: support
execution: {timeout_seconds: 60}
input: You are kind.
assert:
  - {name: polite, type: llm_judge, prompt: prompts/polite.md, weight: 2}
  - name: release
    type: composite
    aggregator: {type: safety_gate, required: [safe]}
    evaluators:
      - {name: safe, type: rubric, rubrics: [harmless, {id: legal, outcome: no legal advice, required: true}]}
      - {type: contains, value: "30 days", target: model}
tests:
  - id: refund-window
    description: The question that is asked most
    criteria: names the window
    input:
      - role: user
        content: [{type: text, value: "Can I return these?\\n::error::no"}, {type: file, value: order.txt}, {type: json, value: {n: 1}}]
    expected_output: 30 days
    rubrics: [is short]
    assert:
      - {type: contains, value: DENIED, negate: true, required: true}
      - {type: regex, value: "[0-9]+", config: {note: digits}}
  - id: refund-model
    input: hello
    execution: {target: model, skip_defaults: true, timeout_seconds: 5}
    criteria: greets
"""


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    files = {
        ".agentv/targets.yaml": TARGETS,
        "evals/EVAL.yaml": SUITE.replace(", target: model}\ntests", "}\ntests"),
        "evals/order.txt": "order 7",
        "evals/agent.txt": "hello",
        "evals/prompts/polite.md": "{{answer}}",
        "more.eval.yaml": "name: more\ntests:\n  - {id: refund-window, input: q, assert: [{type: is_json}]}\n",
    }
    return suites.write(tmp_path / "work", files)


def test_explain__as_people_read_it(folder: Path, golden: Golden) -> None:
    done = command.run(folder, "explain", "refund-*", "evals")

    assert (done.code, done.err) == (0, "")
    golden.check("explain.yaml", done.out)


def test_explain__names_the_arms_of_a_test(folder: Path) -> None:
    suite = (folder / "more.eval.yaml").read_text()
    arms = "[{name: small, target: model, must: not-hurt}, {name: other, target: model}]"
    (folder / "more.eval.yaml").write_text(f"variants: {arms}\n{suite}")
    done = command.run(folder, "explain", "refund-window", "more.eval.yaml")
    said = yaml.safe_load(done.out)["variants"]
    assert said == "small (target model, must: not-hurt), other (target model)"


def test_explain__inputs_choose_target_and_judge(folder: Path) -> None:
    options = ("--target", "model", "--judge-target", "judge", "--timeout", "7")
    done = command.run(folder, "explain", "refund-window", *options)

    # A line that the runner would take for a command begins with `| `.
    first, second = yaml.safe_load_all(done.out.replace("\n|  ", "\n   "))
    assert (first["suite"], second["suite"]) == ("evals/EVAL.yaml", "more.eval.yaml")
    assert (
        first["reasons"]["target"] == "model (mock, .agentv/targets.yaml:4:5), the input `target`"
    )
    assert "targets.yaml:3:5), the input `judge-target`: rubrics" in first["reasons"]["judges"]
    assert (first["timeout_seconds"], second["timeout_seconds"]) == (60, 7)


def test_explain__several_judges_are_all_named(tmp_path: Path) -> None:
    judge = "{type: llm_judge, targets: [judge, model], samples: 3, aggregate: majority}"
    suite = f"name: suite\ntests: [{{id: a, input: q, criteria: c, assert: [{judge}]}}]\n"
    suites.write(tmp_path, {".agentv/targets.yaml": TARGETS, "EVAL.yaml": suite})

    shown = yaml.safe_load(command.run(tmp_path, "explain", "a").out)

    (evaluator,) = shown["evaluators"]
    assert evaluator["judges"] == ["judge", "model"]
    assert (evaluator["samples"], evaluator["aggregate"]) == (3, "majority")
    assert shown["reasons"]["judges"] == (
        "judge (mock, .agentv/targets.yaml:3:5), the evaluator's `target`: llm_judge; "
        "model (mock, .agentv/targets.yaml:4:5), the evaluator's `target`: llm_judge"
    )


def test_explain__text_is_redacted_and_commands_neither_terminal_nor_runner(folder: Path) -> None:
    text = (
        "name: suite\ntests:\n  - id: a\n    criteria: c\n"
        '    input: "a-secret-of-ours\\n::error::x \\u202e\\u001b[31m"\n'
    )
    suites.write(folder, {"EVAL.yaml": text})
    done = command.run(folder, "explain", "a", "EVAL.yaml", env={"API_TOKEN": "a-secret-of-ours"})
    assert done.code == 0, done.err
    assert "a-secret-of-ours" not in done.out
    assert "***" in done.out
    assert not {"\x1b", "\u202e"} & set(done.out)
    assert [line for line in done.out.splitlines() if line.strip().startswith("::")] == []
