"""Targets and configuration: where they are found, inheritance, faults, and which one a test is put
to."""

from pathlib import Path

import pytest

from agentevals_action.model.files import NamedFile
from agentevals_action.model.target import Price
from agentevals_action.targets.providers import PROVIDERS_BY_NAME
from tests.support import suites

SUITE = "name: suite\ntests: [{id: a, input: q, criteria: c}]"
TARGETS = ".agentv/targets.yaml"


def test_file__nearest_to_the_suite(tmp_path: Path) -> None:
    suites.write(
        tmp_path,
        {
            "a/EVAL.yaml": SUITE,
            "a/b/EVAL.yaml": SUITE,
            TARGETS: "- {name: default, provider: mock, responses: []}",
            f"a/b/{TARGETS}": "targets: [{name: default, provider: cli, command: x, judge_target: default}]",
        },
    )

    far, near = (
        suites.load_valid(tmp_path, "a/EVAL.yaml"),
        suites.load_valid(tmp_path, "a/b/EVAL.yaml"),
    )

    assert (far.targets.path, far.targets.targets["default"].provider) == (TARGETS, "mock")
    assert (near.targets.path, near.targets.targets["default"].provider) == (
        f"a/b/{TARGETS}",
        "cli",
    )
    assert NamedFile(TARGETS, "targets file") in far.files


def test_file__of_the_user_takes_the_place_of_the_search(tmp_path: Path) -> None:
    suites.write(
        tmp_path,
        {
            "EVAL.yaml": SUITE,
            TARGETS: "broken",
            "mine.yaml": "[{name: default, provider: mock, responses: []}]",
        },
    )

    assert (
        suites.load_valid(tmp_path, targets_file=tmp_path / "mine.yaml").targets.path == "mine.yaml"
    )


def test_file__of_the_user_that_is_missing_is_a_fault(tmp_path: Path) -> None:
    suites.write(tmp_path, {"EVAL.yaml": SUITE})

    assert suites.errors(tmp_path, targets_file=tmp_path / "mine.yaml") == [
        "mine.yaml:1:1: there is no such targets file; correct the input `targets`"
    ]


def test_file__without_one_nothing_is_checked(tmp_path: Path) -> None:
    suites.write(tmp_path, {"EVAL.yaml": SUITE + "\nexecution: {target: any}"})

    suite = suites.load_valid(tmp_path)

    assert (suite.default_target, suite.targets.path, suite.targets.targets) == ("any", None, {})


def test_fields__of_all_targets(tmp_path: Path) -> None:
    text = """\
- name: base
  provider: cli
  command: [python3, /agent.py, "${{ KEY }}"]
  grader_target: judge
  max_concurrency: 3
  retries: 0
  timeout_seconds: 1.5
  price: {input: 1, output: 2.5, cached_input: 0.1, cache_write: 1.5}
- name: default
  extends: base
  max_concurrency: 5
- {name: judge, provider: mock, responses: []}
"""
    suites.write(tmp_path, {"EVAL.yaml": SUITE, TARGETS: text, "agent.py": ""})

    suite = suites.load_valid(tmp_path)
    target = suite.targets.targets["default"]

    assert (target.provider, target.judge_target, target.max_concurrency, target.retries) == (
        "cli",
        "judge",
        5,
        0,
    )
    assert (target.timeout_seconds, target.price, target.variables) == (
        1.5,
        Price(1, 2.5, cached_input=0.1, cache_write=1.5),
        ("KEY",),
    )
    assert (target.is_model, suite.targets.targets["judge"].is_model) == (False, True)
    assert target.files == ("agent.py",)
    assert target.definition["command"] == ["python3", "/agent.py", "${{ KEY }}"]
    assert type(target.definition["command"]) is list
    assert str(target.location) == f"{TARGETS}:9:3"
    assert suite.targets.targets["judge"].variables == ("MOCK_KEY",)
    assert NamedFile("agent.py", "target's command") in suite.files


def test_files__of_targets_that_the_suite_does_not_use_are_not_its_own(tmp_path: Path) -> None:
    text = "- {name: default, provider: mock, responses: []}\n- {name: other, provider: cli, command: [./agent.py]}"
    suites.write(tmp_path, {"EVAL.yaml": SUITE, TARGETS: text, "agent.py": ""})

    assert [file.path for file in suites.load_valid(tmp_path).files] == ["EVAL.yaml", TARGETS]


@pytest.mark.parametrize(
    "entry",
    [
        "{name: x}",
        "{name: x, provider: pi-cli}",
        "{name: x, provider: cli, command: c, retries: many, typo: 1}",
        "{name: x, extends: nobody}",
        "{name: x, use_target: nobody}",
        "{name: x, provider: cli, command: c, judge_target: nobody}",
    ],
)
def test_fault__of_a_target_that_no_test_uses_is_none(tmp_path: Path, entry: str) -> None:
    default = "{name: default, provider: mock, responses: []}"
    suites.write(tmp_path, {"EVAL.yaml": SUITE, TARGETS: f"- {entry}\n- {default}\n"})

    suite = suites.load_valid(tmp_path, strict=True)

    assert suite.used_targets == ("default",)


def test_alias__is_the_target_that_it_names(tmp_path: Path) -> None:
    text = """\
- {name: default, use_target: agent}
- {name: agent, use_target: "${{ AGENT }}"}
- {name: real, provider: cli, command: [./agent.py], judge_target: judge}
- {name: judge, provider: mock, responses: []}
"""
    suites.write(tmp_path, {"EVAL.yaml": SUITE, TARGETS: text, "agent.py": ""})

    suite = suites.load_valid(tmp_path, environ={"AGENT": "real"})

    target = suite.targets.targets["default"]
    assert (target.name, target.provider, target.judge_target) == ("real", "cli", "judge")
    assert suite.used_targets == ("default", "judge")
    assert NamedFile("agent.py", "target's command") in suite.files


def test_alias__by_a_variable_of_a_dotenv_file(tmp_path: Path) -> None:
    text = "- {name: default, use_target: '${{ AGENT }}'}\n- {name: real, provider: mock, responses: []}\n"
    suites.write(tmp_path, {"a/EVAL.yaml": SUITE, TARGETS: text, ".env": "AGENT=real\n"})

    assert suites.load_valid(tmp_path, "a/EVAL.yaml").targets.targets["default"].name == "real"


def test_alias__without_its_variable_is_an_error_of_the_run_only(tmp_path: Path) -> None:
    text = "- {name: default, use_target: '${{ AGENT }}'}\n"
    suites.write(tmp_path, {"EVAL.yaml": SUITE, TARGETS: text})

    target = suites.load_valid(tmp_path).targets.targets["default"]

    assert (target.variables, str(target.location)) == (("AGENT",), f"{TARGETS}:1:3")


def test_alias__with_an_unknown_value_does_not_show_it(tmp_path: Path) -> None:
    text = "- {name: default, use_target: '${{ SECRET }}'}\n"
    suites.write(tmp_path, {"EVAL.yaml": SUITE, TARGETS: text})

    assert suites.errors(tmp_path, environ={"SECRET": "sk-1234567890"}) == [
        f"{TARGETS}:1:31: there is no target `${{{{ SECRET }}}}`, with the value that the variable has; write one of `default`"
    ]


def test_target__that_the_nearest_file_lacks_is_looked_up_above(tmp_path: Path) -> None:
    near = "- {name: default, provider: cli, command: cat, judge_target: grader}\n"
    far = "- {name: default, provider: mock, responses: []}\n- {name: grader, provider: mock, responses: []}\n"
    suites.write(tmp_path, {"a/EVAL.yaml": SUITE, f"a/{TARGETS}": near, TARGETS: far})

    suite = suites.load_valid(tmp_path, "a/EVAL.yaml")

    assert (suite.targets.path, suite.targets.targets["default"].provider) == (
        f"a/{TARGETS}",
        "cli",
    )
    assert suite.used_targets == ("default", "grader")
    assert NamedFile(TARGETS, "targets file") in suite.files


def test_target__at_the_root_of_a_suite(tmp_path: Path) -> None:
    suites.write(tmp_path, {"EVAL.yaml": SUITE + "\ntarget: judge", TARGETS: suites.TARGETS})

    assert suites.load_valid(tmp_path).default_target == "judge"

    suites.write(tmp_path, {"EVAL.yaml": SUITE + "\ntarget: judge\nexecution: {target: default}"})
    assert suites.errors(tmp_path) == [
        "EVAL.yaml:3:1: `target` and `execution.target` are the same field and differ; keep one of them"
    ]


def test_spellings__of_the_reference_runner(tmp_path: Path) -> None:
    text = "- {name: default, provider: codex, workers: 2, max_retries: 1, stream_log: raw, log_dir: x}\n"
    suites.write(
        tmp_path,
        {"EVAL.yaml": SUITE.replace("criteria: c", "assert: [{type: is_json}]"), TARGETS: text},
    )

    target = suites.load_valid(tmp_path, providers=PROVIDERS_BY_NAME, strict=True).targets.targets[
        "default"
    ]

    assert (target.provider, target.max_concurrency, target.retries) == ("codex-cli", 2, 1)


def test_provider__one_that_cannot_run_is_refused_where_it_is_used(tmp_path: Path) -> None:
    text = "- {name: desktop, provider: vscode}\n- {name: default, provider: mock, responses: []}"
    suites.write(
        tmp_path,
        {
            "EVAL.yaml": SUITE,
            "used/EVAL.yaml": SUITE + "\nexecution: {target: desktop}",
            TARGETS: text,
        },
    )

    suites.load_valid(tmp_path)
    assert suites.errors(tmp_path, "used/EVAL.yaml") == [
        f"{TARGETS}:1:29: the provider `vscode` needs a desktop, which a runner has not; use a `cli` target"
    ]


def test_key__another_form_of_a_reference_is_reported(tmp_path: Path) -> None:
    """`$KEY` would be sent as it is, and `secrets.KEY` never has a value."""
    target = "- {{name: default, provider: openai, model: m, api_key: '{}'}}"
    suites.write(tmp_path, {"EVAL.yaml": SUITE, TARGETS: target.format("$OPENAI_API_KEY")})
    warned = suites.load_valid(tmp_path, providers=PROVIDERS_BY_NAME).warnings
    suites.write(tmp_path, {TARGETS: target.format("${{ secrets.OPENAI_API_KEY }}")})
    refused = suites.errors(tmp_path, providers=PROVIDERS_BY_NAME)

    assert (
        f"{TARGETS}:1:56: `api_key` is the text '$OPENAI_API_KEY', which is not resolved; write `${{{{ OPENAI_API_KEY }}}}`"
        in map(str, warned)
    )
    assert refused == [
        f"{TARGETS}:1:56: `${{{{ secrets.OPENAI_API_KEY }}}}` is not a variable of the environment; write `${{{{ OPENAI_API_KEY }}}}`, and set OPENAI_API_KEY in the workflow's `env:`"
    ]


@pytest.mark.parametrize(
    ("catalog", "said"),
    [
        (
            {"target": "nobody"},
            "EVAL.yaml:1:1: the input `target` names `nobody`, which is not in .agentv/targets.yaml; write `default` or `judge`",
        ),
        (
            {"judge_target": "nobody"},
            "EVAL.yaml:1:1: the input `judge-target` names `nobody`, which is not in .agentv/targets.yaml; write `default` or `judge`",
        ),
    ],
)
def test_override__that_does_not_exist_is_a_fault(
    tmp_path: Path, catalog: dict[str, str], said: str
) -> None:
    suites.write(tmp_path, {"EVAL.yaml": SUITE, TARGETS: suites.TARGETS})

    assert suites.errors(tmp_path, **catalog) == [said]


def test_override__stands_in_for_a_target_that_does_not_exist(tmp_path: Path) -> None:
    suites.write(
        tmp_path, {"EVAL.yaml": SUITE + "\nexecution: {target: nobody}", TARGETS: suites.TARGETS}
    )

    suite = suites.load_valid(tmp_path, target="judge")

    assert suite.targets.agent(suite.default_target) == "judge"


def test_judge__is_not_asked_for_where_nothing_asks_one(tmp_path: Path) -> None:
    text = "name: suite\ntests: [{id: a, input: q, assert: [{type: is_json}]}]"
    suites.write(
        tmp_path, {"EVAL.yaml": text, TARGETS: "- {name: default, provider: cli, command: cat}"}
    )

    suites.load_valid(tmp_path)


def test_judge__is_asked_for_where_a_code_judge_has_a_proxy(tmp_path: Path) -> None:
    text = "name: suite\ntests:\n  - {{id: a, input: q, assert: [{{type: code_judge, script: [x], target: {}}}]}}\n"
    suites.write(tmp_path, {TARGETS: "- {name: default, provider: cli, command: cat}"})
    for target in ("true", "{max_calls: 3}"):
        suites.write(tmp_path, {"EVAL.yaml": text.format(target)})
        assert suites.errors(tmp_path) == [
            "EVAL.yaml:3:32: `code_judge` has no judge: the target `default` is not a model and names no `judge_target`; "
            f"write `judge_target` in {TARGETS}"
        ]

    suites.write(tmp_path, {"EVAL.yaml": text.format("false")})
    suites.load_valid(tmp_path)


@pytest.mark.parametrize("name", [TARGETS])
def test_file__that_leaves_the_repository_is_refused(tmp_path: Path, name: str) -> None:
    root = suites.write(tmp_path / "repository", {"EVAL.yaml": SUITE, ".agentv/x": ""})
    suites.write(tmp_path, {"outside.yaml": "{}"})
    (root / name).symlink_to(tmp_path / "outside.yaml")

    (said,) = suites.errors(root)

    assert "leaves the repository" in said


def test_used_targets__are_those_of_the_tests_and_of_their_judges(tmp_path: Path) -> None:
    targets = (
        suites.TARGETS
        + "  - {name: unused, provider: mock, responses: []}\n  - {name: other, provider: cli, command: [cat]}\n"
    )
    judge = "assert: [{type: llm_judge}]"
    for execution, more, used in [
        ("", "", ("default",)),
        ("", judge, ("default", "judge")),
        ("execution: {target: unused}\n", "execution: {target: other}", ("other",)),
        (
            "execution: {target: other}\n",
            "assert: [{type: llm_judge, target: unused}]",
            ("other", "unused"),
        ),
        ("", "assert: [{type: code_judge, script: [x], target: true}]", ("default", "judge")),
    ]:
        graded = "" if "assert" in more else ", assert: [{type: is_json}]"
        text = f"name: suite\n{execution}tests:\n  - {{id: a, input: q{graded}{', ' if more else ''}{more}}}\n"
        suites.write(tmp_path, {"EVAL.yaml": text, TARGETS: targets})
        assert suites.load_valid(tmp_path).used_targets == used
