"""`explain`: what one test comes to, on real suites in a process of its own."""

import json
import re
from pathlib import Path
from typing import Any

import pytest

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


def explained(
    folder: Path, *arguments: str, env: dict[str, str] | None = None
) -> list[dict[str, Any]]:
    done = command.run(folder, "explain", *arguments, "--json", env=env)
    assert done.code == 0, done.err
    found: list[dict[str, Any]] = json.loads(done.out)
    return found


def test_explain__as_people_read_it(folder: Path, golden: Golden) -> None:
    done = command.run(folder, "explain", "refund-*", "evals")

    assert (done.code, done.err) == (0, "")
    golden.check("explain.txt", re.sub(r"\b[0-9a-f]{64}\b", "<digest>", done.out))


def test_explain__without_a_terminal_nothing_is_wrapped_coloured_or_taken_for_a_command(
    folder: Path,
) -> None:
    name = "long-" * 50
    suites.write(
        folder,
        {
            "evals/EVAL.yaml": f'name: suite\ntests:\n  - {{id: {name}, input: "::error::x", assert: [{{name: "::error::y", type: is_json}}]}}\n'
        },
    )
    done = command.run(folder, "explain", "long-*")

    assert done.code == 0, done.err
    assert "\x1b" not in done.out
    assert f"{name} (evals/EVAL.yaml:3:5)" in done.out
    assert [line for line in done.out.splitlines() if line.strip().startswith("::")] == []


def test_explain__json_has_all_of_it(folder: Path) -> None:
    (test,) = explained(folder, "refund-window", "evals")

    assert [message["text"] for message in test["input"]] == [
        "You are kind.",
        'Can I return these?\n::error::no\n{"n": 1}',
    ]
    assert test["input"][1]["files"] == ["evals/order.txt"]
    assert [
        (one["name"], one["type"], one["origin"], one["location"]["line"])
        for one in test["evaluators"]
    ] == [
        ("contains-DENIED", "contains", "test", 22),
        ("regex-[0-9]+", "regex", "test", 23),
        ("rubrics", "rubric", "rubrics", 20),
        ("polite", "llm_judge", "suite", 5),
        ("release", "composite", "suite", 6),
    ]
    denied, digits, _, polite, release = test["evaluators"]
    assert (denied["negate"], denied["threshold"], denied["judge"]) == (True, 0.8, None)
    assert digits["config"] == {"note": "digits"}
    assert polite["judge"] == {
        "name": "judge",
        "reason": "`judge_target` of `default`",
        "provider": "mock",
        "what": "1 response",
        "location": {"path": ".agentv/targets.yaml", "line": 3, "column": 5},
        "maxConcurrency": None,
        "requestsPerMinute": None,
        "timeoutSeconds": None,
        "retries": 2,
        "price": None,
        "priceSource": "",
        "cacheKey": [],
    }
    assert [
        (child["name"], child["judge"] and child["judge"]["name"]) for child in release["children"]
    ] == [
        ("safe", "judge"),
        ("contains-30 days", None),
    ]
    assert [gate["name"] for gate in test["gates"]] == [
        "contains-DENIED",
        "release",
        "release/safe/legal",
    ]
    assert (test["timeLimit"], test["target"]["name"]) == (60, "default")
    assert {file["path"]: file["role"] for file in test["files"]} == {
        "evals/order.txt": "file",
        "evals/prompts/polite.md": "prompt",
        "evals/agent.txt": "target's command",
        ".agentv/targets.yaml": "targets file",
    }


def test_explain__what_was_run_has_the_same_fingerprint(folder: Path) -> None:
    assert command.run(
        folder, "run", "evals", "--test", "refund-model", "--output", "results.jsonl"
    ).code in (0, 1, 3)
    row = json.loads((folder / "results.jsonl").read_text())

    assert [test["fingerprint"] for test in explained(folder, "refund-model")] == [
        row["fingerprint"]
    ]


@pytest.mark.parametrize(
    ("arguments", "name", "reason"),
    [
        (
            ["refund-window", "evals"],
            "default",
            "no target is named, and this one is called `default`",
        ),
        (["refund-model"], "model", "the test's `execution.target`"),
        (["refund-model", "--target", "judge"], "judge", "the input `target`"),
    ],
)
def test_explain__target_and_why(
    folder: Path, arguments: list[str], name: str, reason: str
) -> None:
    (test,) = explained(folder, *arguments)

    assert (test["target"]["name"], test["target"]["reason"]) == (name, reason)


def test_explain__target_of_suite_and_none(folder: Path) -> None:
    suite = "name: suite\ntests: [{id: a, input: q, criteria: c}]\n"
    suites.write(
        folder,
        {
            "one/EVAL.yaml": "execution: {target: model}\n" + suite,
            "two/EVAL.yaml": suite,
        },
    )
    (named,) = explained(folder, "a", "one")
    (folder / ".agentv/targets.yaml").unlink()
    (none,) = explained(folder, "a", "two")

    assert (named["target"]["name"], named["target"]["reason"]) == (
        "model",
        "the suite's `execution.target`",
    )
    assert (none["target"]["name"], none["evaluators"][0]["judge"]["name"]) == (None, None)
    assert none["target"]["reason"] == "no target is named, and none is called `default`"


@pytest.mark.parametrize(
    ("arguments", "name", "reason"),
    [
        ([], "judge", "`judge_target` of `default`"),
        (["--judge-target", "model"], "model", "the input `judge-target`"),
        (["--target", "model"], "model", "the agent's own target, which is a model"),
    ],
)
def test_explain__judge_and_why(folder: Path, arguments: list[str], name: str, reason: str) -> None:
    (test,) = explained(folder, "refund-window", "evals", *arguments)

    assert [
        (one["judge"]["name"], one["judge"]["reason"]) for one in test["evaluators"] if one["judge"]
    ] == [(name, reason)] * 2


def test_explain__judge_that_the_evaluator_names(folder: Path) -> None:
    suites.write(
        folder,
        {
            "EVAL.yaml": "name: suite\ntests: [{id: a, input: q, assert: [{type: llm_judge, prompt: x, target: model}]}]\n"
        },
    )
    (test,) = explained(folder, "a", "EVAL.yaml", "--judge-target", "judge")

    assert (test["evaluators"][0]["judge"]["name"], test["evaluators"][0]["judge"]["reason"]) == (
        "model",
        "the evaluator's `target`",
    )


@pytest.mark.parametrize(
    ("arguments", "limit", "reason"),
    [
        (["refund-model"], 5, "the test's `execution.timeout_seconds`"),
        (["refund-window", "more.eval.yaml"], 300, "the input `timeout`"),
        (["refund-window", "more.eval.yaml", "--timeout", "7"], 7, "the input `timeout`"),
    ],
)
def test_explain__time_limit_and_why(
    folder: Path, arguments: list[str], limit: float, reason: str
) -> None:
    (test,) = explained(folder, *arguments)

    assert (test["timeLimit"], test["timeLimitReason"]) == (limit, reason)


def test_explain__an_id_of_several_suites_is_listed_of_each(folder: Path) -> None:
    assert [test["suite"] for test in explained(folder, "refund-window")] == [
        "evals/EVAL.yaml",
        "more.eval.yaml",
    ]
    done = command.run(folder, "explain", "refund-window")
    assert [line.split()[1] for line in done.out.splitlines() if line.startswith("suite ")] == [
        "evals/EVAL.yaml",
        "more.eval.yaml",
    ]


def test_explain__an_exact_id_wins_over_a_glob(folder: Path) -> None:
    text = "name: suite\ntests:\n" + "".join(
        f"  - {{id: '{name}', input: q, criteria: c}}\n" for name in ("a[1]", "a1")
    )
    suites.write(folder, {"EVAL.yaml": text})

    assert [test["id"] for test in explained(folder, "a[1]")] == ["a[1]"]
    assert [test["id"] for test in explained(folder, "a*")] == ["a[1]", "a1"]


def test_explain__an_unknown_id_is_exit_code_2_with_the_nearest(folder: Path) -> None:
    done = command.run(folder, "explain", "refund-windw")

    assert (done.code, done.out) == (2, "")
    assert "no test has the id 'refund-windw'" in done.err
    assert "did you mean 'refund-window'?" in done.err
    assert "`agentevals-action list` prints every id" in command.run(folder, "explain", "zzz").err


def test_explain__without_a_suite_there_is_nothing_to_explain(tmp_path: Path) -> None:
    done = command.run(tmp_path, "explain", "a")

    assert done.code == 2
    assert "no suite" in done.err


def test_explain__a_broken_suite_beside_it_is_listed_and_one_that_may_hold_the_test_is_an_error(
    folder: Path,
) -> None:
    suites.write(folder, {"bad.eval.yaml": "name: bad\ntests:\n  - {id: other, input: q}\n"})
    found, lost = (
        command.run(folder, "explain", "refund-model"),
        command.run(folder, "explain", "other"),
    )

    assert (found.code, found.err) == (
        0,
        "warning: bad.eval.yaml has errors and was not searched\n",
    )
    assert lost.code == 2
    assert "bad.eval.yaml:3:5: the test `other` has no evaluator" in lost.err


def test_explain__secrets_are_not_shown(folder: Path) -> None:
    text = "name: suite\ntests: [{id: a, input: a-secret-of-ours, criteria: c}]\n"
    suites.write(folder, {"EVAL.yaml": text})
    for arguments in ([], ["--json"]):
        done = command.run(
            folder, "explain", "a", "EVAL.yaml", *arguments, env={"API_TOKEN": "a-secret-of-ours"}
        )
        assert done.code == 0, done.err
        assert "a-secret-of-ours" not in done.out
        assert "***" in done.out


def test_explain__watch_tells_what_is_the_agent_s_own(folder: Path) -> None:
    (plain,), (watched,) = (
        explained(folder, "refund-window", "evals"),
        explained(folder, "refund-window", "evals", "--watch", "evals/order.txt"),
    )

    assert plain["fingerprint"]["question"] != watched["fingerprint"]["question"]
    assert plain["fingerprint"]["grading"] == watched["fingerprint"]["grading"]


TALK = """\
name: talk
workspace:
  template: template
  isolation: shared
  repos:
    - {path: lib, repo: "https://git.test/lib.git", commit: v1}
  hooks:
    before_all: {command: [sh, -c, "echo a b"], cwd: tools, timeout_ms: 2500}
    after_each: {command: make tidy, reset: fast}
tests:
  - {id: one, input: q, criteria: c, conversation_id: chat}
  - {id: alone, input: q, criteria: c, workspace: {isolation: per_test}}
  - {id: two, input: q, criteria: c, conversation_id: chat}
  - {id: model, input: q, criteria: c, conversation_id: chat, execution: {target: model}}
"""
LIMITED = """\
targets:
  - {name: default, provider: cli, command: [cat, agent.txt], judge_target: model, max_concurrency: 3, requests_per_minute: 60, retries: 0,
     timeout_seconds: 9, cache_key: ["agent/**"]}
  - {name: model, provider: openai, model: m, price: {input: 1, output: 2}}
"""


@pytest.fixture
def talk(tmp_path: Path) -> Path:
    files = {
        "evals/EVAL.yaml": TALK,
        ".agentv/targets.yaml": LIMITED,
        "evals/template/a.txt": "a",
        "evals/tools/x": "",
    }
    return suites.write(tmp_path / "talk", files)


def test_explain__conversation_workspace_and_limits_as_people_read_them(talk: Path) -> None:
    done = command.run(talk, "explain", "two")

    assert (done.code, done.err) == (0, "")
    lines = [re.sub(r" +", " ", line).rstrip() for line in done.out.splitlines()]
    first = next(place for place, line in enumerate(lines) if line.startswith("target"))
    assert lines[first : first + 10] == [
        "target default (cli cat agent.txt, .agentv/targets.yaml:2:5): no target is named, and this one is called `default`",
        " limits 3 concurrent, 60 per minute, 9 s, 0 retries, cached by agent/**",
        "conversation chat, turn 2 of 3; the agent may remember earlier turns, which run first",
        "time-out 300 s: the input `timeout`",
        "workspace one folder for the suite's tests, one after another (evals/EVAL.yaml:3:3)",
        " template evals/template",
        " repo lib https://git.test/lib.git at v1",
        " before_all sh -c 'echo a b' in evals/tools, at most 2.5 s (evals/EVAL.yaml:8:17)",
        " after_each make tidy in evals, at most 30 s (evals/EVAL.yaml:9:17)",
        " reset fast after each test, none before",
    ]


def test_explain__conversation_and_workspace_in_json(talk: Path) -> None:
    found = {test["id"]: test for test in explained(talk, "*")}

    talks = {name: test["conversation"] for name, test in found.items()}
    assert talks["one"] == {"id": "chat", "number": 1, "total": 3, "isRemembered": True}
    assert talks["model"] == {"id": "chat", "number": 3, "total": 3, "isRemembered": False}
    assert talks["alone"] is None
    assert {
        name: test["workspace"]["isolation"] for name, test in found.items() if name != "model"
    } == {
        "one": "shared",
        "alone": "per_test",
        "two": "shared",
    }
    shared = found["one"]["workspace"]
    assert shared["repos"] == [
        {
            "path": "lib",
            "source": "https://git.test/lib.git",
            "commit": "v1",
        }
    ]
    assert [(hook["name"], hook["cwd"], hook["timeoutSeconds"]) for hook in shared["hooks"]] == [
        ("before_all", "evals/tools", 2.5),
        ("after_each", "evals", 30),
    ]
    price = found["model"]["target"]["price"]
    assert {key: value for key, value in price.items() if value is not None} == {
        "input": 1,
        "output": 2,
    }
