"""Any content of a file: a suite or its errors, never an exception."""

import tempfile
from pathlib import Path

import pytest
from hypothesis import example, given, settings
from hypothesis import strategies as st

from agentevals_action.model.suite import BrokenSuite, Suite
from tests.support import suites

WORDS = st.sampled_from(
    [
        "name",
        "tests",
        "evalcases",
        "execution",
        "assert",
        "assertions",
        "evaluators",
        "input",
        "input_messages",
        "id",
        "criteria",
        "expected_outcome",
        "expected_output",
        "rubrics",
        "metadata",
        "type",
        "value",
        "weight",
        "required",
        "negate",
        "target",
        "role",
        "content",
        "user",
        "contains",
        "llm_judge",
        "rubric",
        "code_judge",
        "regex",
        "file",
        "image",
        "json",
        "text",
        "script",
        "prompt",
        "timeout_seconds",
        "skip_defaults",
        "default",
        "outcome",
        "score_ranges",
        "min_score",
        "tool_calls",
        "function",
        "arguments",
        "./x.md",
        "../x",
        "/",
        "EVAL.yaml",
        "[(",
        "yes",
        "~",
        "{{x}}",
        "${{",
        "X",
        "}}",
        "threshold",
        "workspace",
        "extends",
        "provider",
        "targets",
    ]
)
SCALARS = (
    WORDS
    | st.none()
    | st.booleans()
    | st.integers(-3, 5000)
    | st.floats(allow_nan=False, allow_infinity=False)
    | st.text(max_size=5)
)
DATA = st.recursive(
    SCALARS,
    lambda inner: (
        st.lists(inner, max_size=4)
        | st.dictionaries(WORDS | st.text(max_size=3), inner, max_size=6)
    ),
    max_leaves=30,
)


def flow(value: object) -> str:
    """A value as YAML in flow style, carelessly: what is hard to read is part of the exercise."""
    if isinstance(value, dict):
        return "{" + ", ".join(f"{flow(key)}: {flow(item)}" for key, item in value.items()) + "}"
    if isinstance(value, list):
        return "[" + ", ".join(flow(item) for item in value) + "]"
    if value is None:
        return "~"
    return str(value).lower() if isinstance(value, bool) else str(value)


def check(files: dict[str, str | bytes], path: str) -> None:
    with tempfile.TemporaryDirectory() as folder:
        suite = suites.load(suites.write(Path(folder), files), path)
        if isinstance(suite, BrokenSuite):
            assert suite.errors
            assert all(
                diagnostic.location.line >= 1
                and diagnostic.location.column >= 1
                and diagnostic.problem
                for diagnostic in suite.errors
            )
            assert all(
                "\n" not in str(diagnostic) and "Traceback" not in str(diagnostic)
                for diagnostic in suite.errors
            )
        else:
            assert isinstance(suite, Suite)
            assert list(suite.tests)


@settings(max_examples=4 * settings().max_examples)
@given(st.binary(max_size=200))
@example(b"\xef\xbb\xbf")
@example(b"\x00")
@example(b"a: &a [*a, *a]")
def test_any_bytes__of_a_suite(data: bytes) -> None:
    check({"EVAL.yaml": data}, "EVAL.yaml")
    check({"x.jsonl": data}, "x.jsonl")


@settings(max_examples=4 * settings().max_examples)
@given(DATA)
def test_any_data__of_a_suite(data: object) -> None:
    check({"EVAL.yaml": flow(data)}, "EVAL.yaml")


@pytest.mark.slow
@settings(max_examples=4 * settings().max_examples)
@given(st.dictionaries(WORDS, DATA, max_size=6), DATA, DATA)
def test_any_data__in_a_test_and_in_an_evaluator(
    test: dict[str, object], entry: object, targets: object
) -> None:
    test = {"id": "a", "input": "q", "criteria": "c", **test}
    text = f"name: suite\nassert: [{flow(entry)}]\ntests:\n  - {flow(test)}\n"
    check(
        {
            "EVAL.yaml": text,
            ".agentv/targets.yaml": flow(targets),
        },
        "EVAL.yaml",
    )


@pytest.mark.slow
@settings(max_examples=4 * settings().max_examples)
@given(
    st.dictionaries(WORDS, DATA, max_size=6),
    st.sampled_from(["contains", "regex", "rubric", "llm_judge", "code_judge", "contains-any"]),
)
def test_any_data__in_the_fields_of_each_type(fields: dict[str, object], name: str) -> None:
    check(
        {
            "EVAL.yaml": f"name: suite\ntests: [{{id: a, input: q, assert: [{flow({**fields, 'type': name})}]}}]"
        },
        "EVAL.yaml",
    )
