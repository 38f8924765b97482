"""Evaluators inside evaluators, and plain strings among them: read, named, gated, refused."""

from pathlib import Path

import pytest

from agentevals_action.evaluators.composite import Composite
from agentevals_action.evaluators.judges.rubric import Rubric
from agentevals_action.execution.fingerprint import Fingerprints
from agentevals_action.model.suite import Evaluator, Test
from agentevals_action.review.selection import Change, select_suites
from agentevals_action.system.git import ChangedFile
from tests.support import suites

HEAD = "name: suite\ntests:\n  - id: a\n    input: q\n    assert:\n"


@pytest.fixture
def root(tmp_path: Path) -> Path:
    return suites.write(
        tmp_path / "repository",
        {".agentv/targets.yaml": suites.TARGETS, "prompts/tone.md": "{{answer}}"},
    )


def read(root: Path, evaluators: str) -> Test:
    return suites.only_test(suites.write(root, {"EVAL.yaml": HEAD + evaluators}))


def errors(root: Path, evaluators: str) -> list[str]:
    return suites.errors(suites.write(root, {"EVAL.yaml": HEAD + evaluators}))


def inside(evaluator: Evaluator) -> list[str]:
    assert isinstance(evaluator, Composite)
    return [child.name for child in evaluator.children()]


def criteria(evaluator: Evaluator) -> list[str]:
    assert isinstance(evaluator, Rubric)
    return [criterion.outcome for criterion in evaluator.rubrics]


@pytest.mark.parametrize("kind", ["composite", "assert-set", "assert_set"])
@pytest.mark.parametrize("field", ["evaluators", "assertions", "assert"])
def test_children__under_every_spelling(root: Path, kind: str, field: str) -> None:
    (evaluator,) = read(
        root,
        f"      - {{type: {kind}, {field}: [{{type: is-json}}, {{type: contains, value: x}}]}}\n",
    ).evaluators

    assert (evaluator.name, evaluator.type, inside(evaluator)) == (
        "composite",
        "composite",
        ["is_json", "contains-x"],
    )


def test_children__of_two_lists_run_in_file_order(root: Path) -> None:
    (evaluator,) = read(
        root,
        "      - {type: composite, assert: [{type: is_json}], evaluators: [{name: b, type: is_json}]}\n",
    ).evaluators

    assert inside(evaluator) == ["is_json", "b"]


def test_children__have_names_of_their_own_and_common_fields(root: Path) -> None:
    child = "{type: llm_judge, weight: 2, required: 0.7, config: {a: 1}, target: judge}"
    outer, other = read(
        root,
        f"      - {{name: is_json, type: composite, assert: [{{type: is_json}}, {{type: is_json}}, {child}]}}\n      - {{type: is_json}}\n",
    ).evaluators

    assert (other.name, inside(outer)) == ("is_json-2", ["is_json", "is_json-2", "llm_judge"])
    judge = list(outer.walk())[3]
    assert (judge.weight, judge.gate_threshold, judge.config, judge.judge_name(), judge.origin) == (
        2,
        0.7,
        {"a": 1},
        "judge",
        "test",
    )


def test_gates__have_the_path_of_names_and_their_own_place(root: Path) -> None:
    text = """\
      - name: m
        type: composite
        evaluators:
          - {name: b, type: is_json, required: true}
          - name: gate
            type: composite
            required: 0.5
            aggregator: {type: safety_gate, required: [quality]}
            evaluators:
              - name: quality
                type: rubric
                rubrics:
                  - {id: safe, outcome: no harm, required: true}
      - name: release
        type: composite
        aggregator: {type: safety_gate, required: [is_json]}
        evaluators: [{type: is_json}]
"""
    assert [(gate.name, str(gate.location)) for gate in read(root, text).gates] == [
        ("m/b", "EVAL.yaml:9:13"),
        ("m/gate", "EVAL.yaml:10:13"),
        ("m/gate/quality/safe", "EVAL.yaml:18:21"),
        ("release", "EVAL.yaml:19:9"),
    ]


def test_gates__of_the_suites_composite_stand_at_the_test(root: Path) -> None:
    shared = "assert: [{name: m, type: composite, evaluators: [{name: b, type: is_json, required: true}]}]\n"
    suite = suites.load_valid(
        suites.write(
            root,
            {
                "EVAL.yaml": f"name: suite\n{shared}tests:\n  - {{id: a, input: q}}\n  - {{id: b, input: q}}\n"
            },
        )
    )

    assert [(gate.name, gate.location.line) for test in suite.tests for gate in test.gates] == [
        ("m/b", 4),
        ("m/b", 5),
    ]
    assert {
        child.origin
        for test in suite.tests
        for evaluator in test.evaluators
        for child in evaluator.walk()
    } == {"suite"}


def test_criteria__graded_by_a_child_are_not_told(root: Path) -> None:
    text = "name: suite\ntests: [{id: a, input: q, criteria: c, assert: [{type: composite, assert: [{type: %s}]}]}]"

    assert suites.load_valid(suites.write(root, {"EVAL.yaml": text % "llm_judge"})).warnings == ()
    suites.write(root, {"EVAL.yaml": text % "is_json"})
    assert suites.load_valid(root).warnings == ()
    (error,) = suites.errors(root, strict=True)
    assert "no evaluator scores `criteria`" in error


@pytest.mark.parametrize("at", ["test", "suite"])
def test_files__of_children_belong_to_the_suite(root: Path, at: str) -> None:
    evaluators = "assert: [{type: composite, assert: [{type: composite, assert: [{type: llm_judge, prompt: prompts/tone.md}]}]}]"
    shared, own = (evaluators, "") if at == "suite" else ("", f", {evaluators}")
    suite = suites.load_valid(
        suites.write(
            root, {"EVAL.yaml": f"name: suite\n{shared}\ntests: [{{id: a, input: q{own}}}]"}
        )
    )

    assert ("prompts/tone.md", "prompt") in [(file.path, file.role) for file in suite.files]
    found = select_suites([suite], Change(files=[ChangedFile("prompts/tone.md", "modified")]))
    assert [selection.path for selection in found.selections] == ["EVAL.yaml"]


@pytest.mark.parametrize(
    ("old", "new"),
    [
        ("value: x", "value: y"),
        ("weight: 2", "weight: 3"),
        ("required: true", "required: 0.9"),
        ("name: c", "name: d"),
        ("type: minimum", "type: maximum"),
        ("target: judge", "target: other"),
        ("threshold: 0.5", "threshold: 0.6"),
    ],
)
def test_fingerprint__sees_what_is_inside(root: Path, old: str, new: str) -> None:
    text = """\
      - type: composite
        aggregator: {type: minimum}
        assert:
          - {name: c, type: contains, value: x, weight: 2, required: true}
          - {type: assert-set, threshold: 0.5, assertions: [{type: llm_judge, prompt: prompts/tone.md, target: judge}]}
"""
    suites.write(
        root,
        {
            ".agentv/targets.yaml": suites.TARGETS
            + "  - {name: other, provider: mock, response: other}\n"
        },
    )
    assert text.count(old) == 1

    assert grading(root, text) == grading(root, text)
    assert grading(root, text) != grading(root, text.replace(old, new))


def test_fingerprint__sees_files_inside_by_their_content(root: Path) -> None:
    text = "      - {type: composite, assert: [{type: composite, assert: [{type: llm_judge, prompt: prompts/tone.md}]}]}\n"
    before = grading(root, text)
    suites.write(root, {"moved/voice.md": "{{answer}}"})
    assert grading(root, text.replace("prompts/tone.md", "moved/voice.md")) == before
    suites.write(root, {"prompts/tone.md": "{{output}}"})
    assert grading(root, text) != before


def grading(root: Path, evaluators: str) -> str:
    suite = suites.load_valid(suites.write(root, {"EVAL.yaml": HEAD + evaluators}))
    (test,) = suite.tests
    return Fingerprints().of(suite, test).grading


def test_strings__of_one_list_make_one_rubric_where_the_first_stands(root: Path) -> None:
    text = "      - {type: is_json}\n      - is polite\n      - {type: contains, value: x}\n      - is short\n"
    json, rubric, contains = read(root, text).evaluators

    assert [json.name, rubric.name, contains.name] == ["is_json", "rubric", "contains-x"]
    assert (rubric.type, criteria(rubric), rubric.gates) == (
        "rubric",
        ["is polite", "is short"],
        (),
    )
    assert str(rubric.location) == "EVAL.yaml:7:9"


@pytest.mark.parametrize("field", ["assert", "assertions", "evaluators"])
def test_strings__of_every_list_make_one_each(root: Path, field: str) -> None:
    text = f"""\
name: suite
{field}: [shared]
tests:
  - id: a
    input: q
    {field}: [own one, own two]
    execution: {{{field}: [run]}}
    rubrics: [asked]
"""
    test = suites.only_test(suites.write(root, {"EVAL.yaml": text}))

    assert [
        (evaluator.name, criteria(evaluator), evaluator.origin) for evaluator in test.evaluators
    ] == [
        ("rubric", ["own one", "own two"], "test"),
        ("rubric-2", ["run"], "test"),
        ("rubrics", ["asked"], "rubrics"),
        ("rubric-3", ["shared"], "suite"),
    ]


def test_strings__inside_a_composite(root: Path) -> None:
    (outer,) = read(
        root,
        "      - {type: assert-set, assertions: [is polite, {type: is_json}, is short], assert: [x]}\n",
    ).evaluators

    assert inside(outer) == ["rubric", "is_json", "rubric-2"]
    assert [criteria(child) for child in list(outer.walk())[1::2]] == [
        ["is polite", "is short"],
        ["x"],
    ]


def test_strings__in_a_row_of_jsonl(root: Path) -> None:
    rows = '{"id": "a", "input": "q", "assertions": ["is polite", {"type": "composite", "assert": ["is short"]}, "is kind"]}\n'
    suites.write(root, {"EVAL.yaml": "name: suite\ntests: rows.jsonl", "rows.jsonl": rows})
    rubric, outer = suites.only_test(root).evaluators

    assert criteria(rubric) == ["is polite", "is kind"]
    assert inside(outer) == ["rubric"]
