"""Targets: where they are found, what they inherit, and which a suite uses. Their errors are in
`tests/data/invalid`."""

from pathlib import Path

import pytest

from agentevals_action.model.diagnostic import NamedFile
from agentevals_action.model.target import Price
from tests.support import suites

SUITE = "name: suite\ntests: [{id: a, input: q, criteria: c}]"
TARGETS = ".agentv/targets.yaml"
MOCK = "provider: mock, response: ok"


def test_files__the_nearest_has_precedence_and_those_above_complete_it(tmp_path: Path) -> None:
    near = "targets: [{name: default, extends: base, judge_target: grader}]"
    far = (
        f"- {{name: default, {MOCK}}}\n- {{name: grader, {MOCK}}}\n"
        "- {name: base, provider: cli, command: x}\n"
    )
    files = {"EVAL.yaml": SUITE, "a/b/EVAL.yaml": SUITE, f"a/{TARGETS}": near, TARGETS: far}
    suites.write(tmp_path, files)

    above, below = suites.load_valid(tmp_path), suites.load_valid(tmp_path, "a/b/EVAL.yaml")

    assert (above.targets.path, above.targets.targets["default"].provider) == (TARGETS, "mock")
    target = below.targets.targets["default"]
    assert (below.targets.path, target.provider) == (f"a/{TARGETS}", "cli")
    assert below.used_targets == ("default", "grader")
    assert NamedFile(TARGETS, "targets file") in below.files


def test_files__one_of_the_user_replaces_the_search(tmp_path: Path) -> None:
    mine = f"[{{name: default, {MOCK}}}]"
    suites.write(tmp_path, {"EVAL.yaml": SUITE, TARGETS: "broken", "mine.yaml": mine})

    suite = suites.load_valid(tmp_path, targets_file=tmp_path / "mine.yaml")

    assert suite.targets.path == "mine.yaml"
    assert suites.errors(tmp_path, targets_file=tmp_path / "other.yaml") == [
        "other.yaml:1:1: there is no such targets file; correct the input `targets`"
    ]


def test_files__without_one_nothing_is_checked(tmp_path: Path) -> None:
    suites.write(tmp_path, {"EVAL.yaml": SUITE + "\nexecution: {target: any}"})

    suite = suites.load_valid(tmp_path)

    assert (suite.default_target, suite.targets.path, suite.targets.targets) == ("any", None, {})


def test_files__one_that_leaves_the_repository_is_an_error(tmp_path: Path) -> None:
    root = suites.write(tmp_path / "repository", {"EVAL.yaml": SUITE, ".agentv/x": ""})
    suites.write(tmp_path, {"outside.yaml": "{}"})
    (root / TARGETS).symlink_to(tmp_path / "outside.yaml")

    (error,) = suites.errors(root)

    assert "leaves the repository" in error


def test_target__has_the_fields_of_those_that_it_extends(tmp_path: Path) -> None:
    text = f"""\
- name: base
  provider: cli
  command: [python3, agent.py, "${{{{ KEY }}}}"]
  grader_target: judge
  workers: 3
  max_retries: 0
  timeout_seconds: 1.5
  price: {{input: 1, output: 2.5, cached_input: 0.1, cache_write: 1.5}}
- name: default
  extends: base
  max_concurrency: 5
- {{name: judge, {MOCK}}}
- {{name: other, provider: cli, command: [./other.py]}}
"""
    suites.write(tmp_path, {"EVAL.yaml": SUITE, TARGETS: text, "agent.py": "", "other.py": ""})

    suite = suites.load_valid(tmp_path)
    target = suite.targets.targets["default"]

    assert (target.name, target.provider, target.judge_target) == ("default", "cli", "judge")
    assert (target.max_concurrency, target.retries, target.timeout_seconds) == (5, 0, 1.5)
    assert target.price == Price(input=1, output=2.5, cached_input=0.1, cache_write=1.5)
    assert (target.variables, target.files) == (("KEY",), (NamedFile("agent.py", "command"),))
    assert (target.is_model, suite.targets.targets["judge"].is_model) == (False, True)
    assert target.definition["command"] == ["python3", "agent.py", "${{ KEY }}"]
    assert str(target.location) == f"{TARGETS}:9:3"
    assert suite.files == (
        NamedFile("EVAL.yaml", "suite"),
        NamedFile(TARGETS, "targets file"),
        NamedFile("agent.py", "target's command"),
    )


@pytest.mark.parametrize(
    "entry",
    [
        "{name: x}",
        "{name: x, provider: pi-cli}",
        "{name: x, provider: vscode}",
        "{name: x, provider: cli, command: c, retries: many, typo: 1}",
        "{name: x, extends: nobody}",
        "{name: x, use_target: '${{ UNSET }}'}",
    ],
)
def test_target__that_no_test_uses_has_warnings(tmp_path: Path, entry: str) -> None:
    suites.write(
        tmp_path, {"EVAL.yaml": SUITE, TARGETS: f"- {entry}\n- {{name: default, {MOCK}}}\n"}
    )

    suite = suites.load_valid(tmp_path)
    assert suite.used_targets == ("default",)
    assert {warning.location.path for warning in suite.warnings} == {TARGETS}


@pytest.mark.parametrize("is_in_file", [True, False])
def test_use_target__may_name_a_variable(tmp_path: Path, is_in_file: bool) -> None:
    text = (
        "- {name: default, use_target: agent}\n- {name: agent, use_target: '${{ AGENT }}'}\n"
        f"- {{name: real, {MOCK}}}\n"
    )
    suites.write(tmp_path, {"a/EVAL.yaml": SUITE, TARGETS: text})
    suites.write(tmp_path, {".env": "AGENT=real\n"} if is_in_file else {})
    environ = {} if is_in_file else {"AGENT": "real"}

    suite = suites.load_valid(tmp_path, "a/EVAL.yaml", environ=environ)

    assert suite.targets.targets["default"].provider == "mock"


@pytest.mark.parametrize(
    ("environ", "problem"),
    [
        ({}, "the variable SECRET is not set; set it in the environment"),
        ({"SECRET": "sk-1234"}, "there is no target `${{ SECRET }}` to extend; write one of"),
    ],
)
def test_use_target__with_a_variable_of_no_use_is_an_error(
    tmp_path: Path, environ: dict[str, str], problem: str
) -> None:
    """The value may be a secret, and is not shown."""
    text = "- {name: default, use_target: '${{ SECRET }}'}\n"
    suites.write(tmp_path, {"EVAL.yaml": SUITE, TARGETS: text})

    (error,) = suites.errors(tmp_path, environ=environ)

    assert error.startswith(f"{TARGETS}:1:31: {problem}")
    assert "sk-1234" not in error


def test_key__another_form_of_a_reference_is_reported(tmp_path: Path) -> None:
    """`$KEY` would be sent as it is."""
    target = "- {name: default, provider: openai, model: m, api_key: $OPENAI_API_KEY}"
    suites.write(tmp_path, {"EVAL.yaml": SUITE, TARGETS: target})

    assert [str(warning) for warning in suites.load_valid(tmp_path).warnings] == [
        f"{TARGETS}:1:56: `api_key` is the text '$OPENAI_API_KEY', which is not resolved; "
        "write `${{ OPENAI_API_KEY }}`"
    ]


@pytest.mark.parametrize("name", ["target", "judge_target"])
def test_override__that_does_not_exist_is_an_error(tmp_path: Path, name: str) -> None:
    suites.write(tmp_path, {"EVAL.yaml": SUITE, TARGETS: suites.TARGETS})

    assert suites.errors(tmp_path, **{name: "nobody"}) == [
        f"EVAL.yaml:1:1: the input `{name.replace('_', '-')}` names `nobody`, which is not in "
        f"{TARGETS}; write `default` or `judge`"
    ]


def test_override__replaces_a_target_that_does_not_exist(tmp_path: Path) -> None:
    text = SUITE + "\nexecution: {target: nobody}"
    suites.write(tmp_path, {"EVAL.yaml": text, TARGETS: suites.TARGETS})

    suite = suites.load_valid(tmp_path, target="judge")

    assert suite.targets.agent(suite.default_target) == "judge"


@pytest.mark.parametrize(
    "evaluator", ["is_json", "code_judge, script: [x], target: false", "contains, value: x"]
)
def test_judge__is_not_needed_where_nothing_asks_it(tmp_path: Path, evaluator: str) -> None:
    text = f"name: suite\ntests: [{{id: a, input: q, assert: [{{type: {evaluator}}}]}}]"
    target = "- {name: default, provider: cli, command: cat}"
    suites.write(tmp_path, {"EVAL.yaml": text, TARGETS: target})

    assert suites.load_valid(tmp_path).used_targets == ("default",)


@pytest.mark.parametrize(
    ("execution", "test", "used"),
    [
        ("", "assert: [{type: is_json}]", ("default",)),
        ("", "assert: [{type: llm_judge}]", ("default", "judge")),
        (
            "execution: {target: unused}\n",
            "execution: {target: other}, assert: [{type: is_json}]",
            ("other",),
        ),
        (
            "execution: {target: other}\n",
            "assert: [{type: llm_judge, target: unused}]",
            ("other", "unused"),
        ),
        ("", "assert: [{type: code_judge, script: [x], target: true}]", ("default", "judge")),
        ("target: other\n", "assert: [{type: is_json}]", ("other",)),
    ],
)
def test_used_targets__are_those_of_the_tests_and_of_their_judges(
    tmp_path: Path, execution: str, test: str, used: tuple[str, ...]
) -> None:
    more = f"  - {{name: unused, {MOCK}}}\n  - {{name: other, provider: cli, command: [cat]}}\n"
    text = f"name: suite\n{execution}tests:\n  - {{id: a, input: q, {test}}}\n"
    suites.write(tmp_path, {"EVAL.yaml": text, TARGETS: suites.TARGETS + more})

    assert suites.load_valid(tmp_path).used_targets == used
