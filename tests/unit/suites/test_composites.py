"""Evaluators inside evaluators: their files and options are part of the suite. Their effective form
is in `tests/data/valid`."""

from pathlib import Path

import pytest

from agentevals_action.execution.fingerprint import Fingerprints
from agentevals_action.review.inputs.selection import Change, select_suites
from agentevals_action.system.git import ChangedFile
from tests.support import suites

HEAD = "name: suite\ntests:\n  - id: a\n    input: q\n    assert:\n"


@pytest.fixture
def root(tmp_path: Path) -> Path:
    return suites.write(
        tmp_path / "repository",
        {".agentv/targets.yaml": suites.TARGETS, "prompts/tone.md": "{{answer}}"},
    )


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
