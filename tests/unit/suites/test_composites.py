"""Evaluators inside evaluators, and plain strings among them: read, named, gated, refused."""

from pathlib import Path

import pytest

from agentevals_action.evaluators import base
from agentevals_action.evaluators.composite import Composite
from agentevals_action.evaluators.judges.rubric import Rubric
from agentevals_action.execution.fingerprint import Fingerprints
from agentevals_action.model.changed_file import ChangedFile
from agentevals_action.model.suite import Evaluator, Test
from agentevals_action.review.change.selection import Change, select_suites
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
    assert isinstance(evaluator.options, Composite)
    return [child.name for child in evaluator.options.children()]


def criteria(evaluator: Evaluator) -> list[str]:
    assert isinstance(evaluator.options, Rubric)
    return [criterion.outcome for criterion in evaluator.options.rubrics]


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
    judge = list(base.walk(outer))[3]
    assert (judge.weight, judge.threshold, judge.config, judge.target, judge.origin) == (
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
        for child in base.walk(evaluator)
    } == {"suite"}


CHILD = "[{type: is_json}]"
BAD = {
    "no evaluators": (
        "{type: composite}",
        "6:9: `evaluators` is missing; every evaluator needs it",
    ),
    "empty": (
        "{type: assert-set, assertions: []}",
        "6:40: `assertions` is an empty list; write at least one item",
    ),
    "no list": (
        "{type: composite, evaluators: {}}",
        "6:39: `evaluators` is an object; write a list of evaluators",
    ),
    "a bad child": (
        "{type: composite, evaluators: [{type: contians}], aggregator: {weights: {x: 1}}}",
        "6:47: the evaluator type `contians` is unknown; did you mean `contains`?",
    ),
    "a bad child far down": (
        "{type: composite, evaluators: [{type: composite, assert: [{type: is_json, weight: -1}]}]}",
        "6:91: `weight` is the number -1; write a number that is 0 or more",
    ),
    "an unknown name in weights": (
        f"{{name: m, type: composite, evaluators: {CHILD}, aggregator: {{weights: {{is_jsn: 1}}}}}}",
        "6:98: `aggregator.weights.is_jsn`: there is no evaluator `is_jsn` in it; did you mean `is_json`?",
    ),
    "an unknown name in required": (
        f"{{type: composite, evaluators: {CHILD}, aggregator: {{type: safety_gate, required: [is_json, x]}}}}",
        "6:110: `aggregator.required[1]`: there is no evaluator `x` in it; write `is_json`",
    ),
    "an unknown aggregator": (
        f"{{type: composite, evaluators: {CHILD}, aggregator: {{type: minimun}}}}",
        "6:77: `aggregator.type`: there is no aggregator 'minimun'; did you mean `minimum`?",
    ),
    "an aggregator of another type": (
        f"{{type: composite, evaluators: {CHILD}, aggregator: {{type: 3}}}}",
        "6:77: `aggregator.type` is the number 3; write `weighted_average`, `minimum`, `maximum`, `safety_gate`, `all_or_nothing`, `threshold`, `code_judge` or `llm_judge`",
    ),
    "an empty aggregator": (
        f"{{type: composite, evaluators: {CHILD}, aggregator: }}",
        "6:70: `aggregator` is empty; write an object",
    ),
    "a safety gate without required": (
        f"{{type: composite, evaluators: {CHILD}, aggregator: {{type: safety_gate}}}}",
        "6:70: `aggregator`: a `safety_gate` without `required` has no effect; name the evaluators that must reach 0.6",
    ),
    "a threshold where none belongs": (
        f"{{type: composite, evaluators: {CHILD}, aggregator: {{type: minimum, threshold: 0.7}}}}",
        "6:97: `aggregator.threshold`: it does not belong to `minimum`; write `type: all_or_nothing`, or `required: 0.7` at the evaluator "
        "for a gate at 0.7",
    ),
    "two ways to a score": (
        f"{{type: assert-set, assertions: {CHILD}, threshold: 0.5, aggregator: {{type: minimum}}}}",
        "6:70: `threshold`: `aggregator` decides the score already; remove one of them",
    ),
    "a threshold of 0": (
        f"{{type: assert-set, assertions: {CHILD}, threshold: 0}}",
        "6:70: `threshold` is the number 0; write a number over 0",
    ),
    "a negated gate": (
        "{type: composite, negate: true, evaluators: [{type: is_json, required: true}]}",
        "6:27: an evaluator with a gate inside cannot be negated; remove `negate`, or the gate",
    ),
    "a negated safety gate": (
        f"{{type: composite, negate: true, evaluators: {CHILD}, aggregator: {{type: safety_gate, required: [is_json]}}}}",
        "6:27: an evaluator with a gate inside cannot be negated; remove `negate`, or the gate",
    ),
    "a negated gate inside": (
        "{type: composite, assert: [{type: composite, negate: true, assert: [{type: is_json, required: true}]}]}",
        "6:54: an evaluator with a gate inside cannot be negated; remove `negate`, or the gate",
    ),
    "a judge for all": (
        f"{{type: composite, target: judge, evaluators: {CHILD}}}",
        "6:27: `target` is not passed on to the evaluators inside; write it at each evaluator that asks this judge",
    ),
    "an unknown judge inside": (
        "{type: composite, evaluators: [{type: composite, assert: [{type: llm_judge, target: jugde}]}]}",
        "6:93: there is no target `jugde`; did you mean `judge`?",
    ),
    "evaluators of another type": (
        f"{{type: contains, value: x, assert: {CHILD}}}",
        "6:36: `assert` is not known to this type of evaluator; write an evaluator of `type: composite`",
    ),
    "a missing prompt inside": (
        "{type: composite, assert: [{type: llm_judge, prompt: ./no.md}]}",
        "6:62: `prompt`: there is no file './no.md' (looked for no.md); name a file that exists, from the folder of this one",
    ),
}


@pytest.mark.parametrize("case", BAD)
def test_fault__place_problem_and_advice(root: Path, case: str) -> None:
    evaluator, said = BAD[case]

    assert errors(root, f"      - {evaluator}\n") == [f"EVAL.yaml:{said}"]


def test_faults__of_children_and_aggregator_together(root: Path) -> None:
    text = f"      - {{type: composite, assert: [{{type: contians}}], aggregator: {{type: minimum, weights: {{a: 1}}}}, weight: -1}}\n      - {CHILD}\n"

    assert [line.split(": ")[1].split("`")[1] for line in errors(root, text)[:3]] == [
        "contians",
        "aggregator.weights",
        "weight",
    ]
    assert len(errors(root, text)) == 4


def test_judge__missing_for_a_child_is_told(root: Path) -> None:
    suites.write(
        root, {".agentv/targets.yaml": "targets: [{name: default, provider: cli, command: [cat]}]"}
    )

    (said,) = errors(
        root, "      - {type: composite, assert: [{type: is_json}, {name: j, type: llm_judge}]}\n"
    )

    assert said.startswith("EVAL.yaml:6:53: `j` has no judge: ")


def test_unknown_field__inside_is_an_error(root: Path) -> None:
    text = "      - {type: composite, wieght: 1, assert: [{type: is_json, negte: true}], aggregator: {tpye: minimum}}\n"
    found = suites.errors(suites.write(root, {"EVAL.yaml": HEAD + text}))

    assert [error.partition(": ")[2] for error in found] == [
        "the field `wieght` of this evaluator is unknown; did you mean `weight`?",
        "the field `negte` of this evaluator is unknown; did you mean `negate`?",
        "the field `tpye` of this aggregator is unknown; did you mean `type`?",
    ]


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
            + "  - {name: other, provider: mock, responses: [{pattern: a}]}\n"
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
    assert [criteria(child) for child in list(base.walk(outer))[1::2]] == [
        ["is polite", "is short"],
        ["x"],
    ]


def test_strings__in_a_row_of_jsonl(root: Path) -> None:
    rows = '{"id": "a", "input": "q", "assertions": ["is polite", {"type": "composite", "assert": ["is short"]}, "is kind"]}\n'
    suites.write(root, {"EVAL.yaml": "name: suite\ntests: rows.jsonl", "rows.jsonl": rows})
    rubric, outer = suites.only_test(root).evaluators

    assert criteria(rubric) == ["is polite", "is kind"]
    assert inside(outer) == ["rubric"]


@pytest.mark.parametrize(
    "text", ["is_json", "is-json", "rubrics", "llm-grader", "assert-set", " contains "]
)
def test_strings__that_are_types_are_no_criteria(root: Path, text: str) -> None:
    (said,) = errors(root, f"      - is polite\n      - '{text}'\n")

    assert (
        said
        == f"EVAL.yaml:7:9: `{text.strip()}` alone is the type of an evaluator and not a criterion; write an object with a `type`"
    )
