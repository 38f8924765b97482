"""Targets and configuration: where they are found, inheritance, faults, and which one a test is put
to."""

from pathlib import Path

import pytest

from agentevals_action.model.suite import NamedFile
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
    ("entry", "said"),
    [
        (
            "{name: x, provider: mcok, responses: []}",
            "1:23: the provider `mcok` is unknown; did you mean `mock`?",
        ),
        (
            "{name: x, provider: zzz}",
            "1:23: the provider `zzz` is unknown; write one of `cli` or `mock`",
        ),
        ("{name: x}", "1:3: `provider` is missing; every target needs it"),
        (
            "{name: x, provider: mock, price: {input: 1, output: 1, cachd_input: 0.1}}",
            "1:58: the field `cachd_input` of this price is unknown; did you mean `cached_input`?",
        ),
        (
            "{provider: mock}",
            "1:3: this target has no `name`; write the name by which suites refer to it",
        ),
        (
            "{name: 3, provider: mock}",
            "1:10: `name` is the number 3; write the name by which suites refer to it",
        ),
        ("3", "1:3: a target is the number 3; write an object with `name` and `provider`"),
        (
            "{name: x, provider: mock, responses: 3}",
            "1:40: `responses` is the number 3; write a list",
        ),
        (
            "{name: x, provider: pi-cli}",
            "1:23: the provider `pi-cli` of AgentV is not supported; run the agent with a target of provider `cli`",
        ),
        (
            "{name: x, provider: cli, command: c, temperature: 0}",
            "1:40: `temperature` of AgentV is not supported; write it in `config`, as the model's API names it",
        ),
        (
            "{name: x, provider: cli, command: c, provider_batching: true}",
            "1:59: `provider_batching`: it is not supported: each test is a separate call; leave it out",
        ),
        (
            "{name: x, provider: cli, command: c, max_concurrency: 0}",
            "1:57: `max_concurrency` is the number 0; write a number that is 1 or more",
        ),
        (
            "{name: x, provider: cli, command: c, cache_key: 5}",
            '1:51: `cache_key`: the number 5 is not a list of globs; write the files that the agent consists of, as `["agent/**", "*.md"]`',
        ),
        (
            "{name: x, provider: cli, command: c, retries: many}",
            "1:49: `retries` is the text 'many'; write a whole number",
        ),
        (
            "{name: x, provider: cli, command: c, judge_target: nobody}",
            "1:54: there is no judge target `nobody`; write `default` or `x`",
        ),
        (
            "{name: x, extends: nobody}",
            "1:22: there is no target `nobody` to extend; write one of `default` or `x`",
        ),
        (
            "{name: x, extends: x}",
            "1:22: the target `x` extends itself, by x → x; break the circle",
        ),
        (
            "{name: default, provider: cli, command: c}",
            "2:10: there is a second target `default`; give each its own name",
        ),
        (
            "{name: x, provider: cli, command: c, requests_per_minute: 0}",
            "1:61: `requests_per_minute` is the number 0; write a number that is 1 or more",
        ),
        (
            "{name: x, provider: cli, use_target: default}",
            "1:13: `provider` has no effect beside `use_target`; remove one of them",
        ),
        (
            "{name: x, use_target: 3}",
            "1:25: `use_target` is the number 3; write the name of a target",
        ),
        (
            "{name: x, use_target: nobody}",
            "1:25: there is no target `nobody`; write one of `default` or `x`",
        ),
        (
            "{name: x, use_target: x}",
            "1:25: the target `x` leads to itself, by x → x; break the circle",
        ),
    ],
)
def test_fault__in_a_targets_file(tmp_path: Path, entry: str, said: str) -> None:
    default = "{name: default, provider: mock, responses: []}"
    used = SUITE[:-1] + ", {id: b, input: q, criteria: c, execution: {target: x}}]"
    suites.write(tmp_path, {"EVAL.yaml": used, TARGETS: f"- {entry}\n- {default}\n"})

    assert f"{TARGETS}:{said}" in suites.errors(tmp_path)


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


def test_target__above_is_no_substitute_for_an_invalid_one(tmp_path: Path) -> None:
    far = "- {name: default, provider: mock, responses: []}\n"
    suites.write(
        tmp_path, {"a/EVAL.yaml": SUITE, f"a/{TARGETS}": "- {name: default}\n", TARGETS: far}
    )

    assert suites.errors(tmp_path, "a/EVAL.yaml") == [
        f"a/{TARGETS}:1:3: `provider` is missing; every target needs it"
    ]


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


@pytest.mark.parametrize(
    ("text", "kind"),
    [
        ("", "empty"),
        ("x: 1", "empty"),
        ("targets: 3", "the number 3"),
        ("hello", "the text 'hello'"),
    ],
)
def test_fault__targets_that_are_no_list(tmp_path: Path, text: str, kind: str) -> None:
    suites.write(tmp_path, {"EVAL.yaml": SUITE, TARGETS: text})

    (said,) = suites.errors(tmp_path)

    assert said.endswith(
        f"the targets are {kind}; write a list of targets, or an object with `targets`"
    )


def test_fault__of_all_targets_and_of_the_provider_are_told_at_once(tmp_path: Path) -> None:
    suites.write(
        tmp_path,
        {
            "EVAL.yaml": SUITE,
            TARGETS: "- {name: default, provider: mock, retries: eleven, responses: x}",
        },
    )

    assert suites.errors(tmp_path) == [
        f"{TARGETS}:1:44: `retries` is the text 'eleven'; write a whole number",
        f"{TARGETS}:1:63: `responses` is the text 'x'; write a list",
    ]


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


def test_provider__vscode_needs_a_desktop(tmp_path: Path) -> None:
    suites.write(tmp_path, {"EVAL.yaml": SUITE, TARGETS: "- {name: default, provider: vscode}"})

    assert suites.errors(tmp_path) == [
        f"{TARGETS}:1:29: the provider `vscode` needs a desktop, which a runner has not; use a `cli` target"
    ]


@pytest.mark.parametrize(
    ("targets", "advice"),
    [
        (
            "- {name: one, provider: mock, responses: []}",
            "write `execution: {target: one}` in the suite, or call a target `default`",
        ),
        (
            "- {name: judge, provider: mock, responses: []}\n"
            "- {name: two, provider: mock, responses: [], judge_target: judge}\n",
            "write `execution: {target: two}` in the suite, or call a target `default`",
        ),
        (
            "- {name: b, provider: mock, responses: []}\n"
            "- {name: a, provider: mock, responses: []}\n"
            "- {name: pi, provider: pi}\n",
            "write `execution: {target: a}` (or `b`) in the suite, or call a target `default`",
        ),
        (
            "- {name: pi, provider: pi}",
            "write `execution: {target: …}` with `pi` in the suite, or call a target `default`",
        ),
    ],
)
def test_target__without_a_default_the_error_says_what_to_write(
    tmp_path: Path, targets: str, advice: str
) -> None:
    suites.write(tmp_path, {"EVAL.yaml": SUITE, TARGETS: targets})

    assert suites.errors(tmp_path) == [
        f"EVAL.yaml:1:1: no target is named, and {TARGETS} has none called `default`; {advice}"
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


def test_judge__none_to_be_had_is_a_fault_once(tmp_path: Path) -> None:
    text = "name: suite\nassert:\n  - {name: quality, type: llm_judge}\ntests:\n  - {id: a, input: q}\n  - {id: b, input: q}\n"
    suites.write(
        tmp_path, {"EVAL.yaml": text, TARGETS: "- {name: default, provider: cli, command: cat}"}
    )

    assert suites.errors(tmp_path) == [
        f"EVAL.yaml:3:5: `quality` has no judge: the target `default` is not a model and names no `judge_target`; "
        f"write `judge_target` in {TARGETS}, or `target` here"
    ]


def test_judge__of_the_default_evaluator_is_checked_too(tmp_path: Path) -> None:
    suites.write(
        tmp_path, {"EVAL.yaml": SUITE, TARGETS: "- {name: default, provider: cli, command: cat}"}
    )

    (said,) = suites.errors(tmp_path)

    assert said.startswith("EVAL.yaml:2:9: `criteria` has no judge: ")


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


def test_configuration__defaults_stand_below_the_suites_own(tmp_path: Path) -> None:
    config = "required_version: 1\ndefaults: {target: judge, timeout_seconds: 7}\n"
    own = SUITE + "\nexecution: {target: default, timeout_seconds: 9}"
    suites.write(
        tmp_path,
        {
            "EVAL.yaml": SUITE,
            "own/EVAL.yaml": own,
            ".agentv/config.yaml": config,
            TARGETS: suites.TARGETS,
        },
    )

    bare, full = suites.load_valid(tmp_path), suites.load_valid(tmp_path, "own/EVAL.yaml")

    assert (bare.targets.agent(bare.default_target), bare.timeout_seconds) == ("judge", 7)
    assert (full.targets.agent(full.default_target), full.timeout_seconds) == ("default", 9)
    assert NamedFile(".agentv/config.yaml", "configuration") in bare.files


@pytest.mark.parametrize(
    ("config", "said"),
    [
        (
            "defaults: {target: nobody}",
            "1:20: there is no target `nobody`; write `default` or `judge`",
        ),
        (
            "defaults: {timeout_seconds: x}",
            "1:29: `defaults.timeout_seconds` is the text 'x'; write a number",
        ),
        ("eval_patterns: x", "1:16: `eval_patterns` is the text 'x'; write a list"),
        ("- x", "1:1: this file is a list; write an object with `eval_patterns` or `defaults`"),
        (
            "a: 1\na: 2",
            "2:1: the key 'a' is repeated (first on line 1); keep one of them",
        ),
    ],
)
def test_configuration__faults(tmp_path: Path, config: str, said: str) -> None:
    suites.write(
        tmp_path, {"EVAL.yaml": SUITE, ".agentv/config.yaml": config, TARGETS: suites.TARGETS}
    )

    assert suites.errors(tmp_path) == [f".agentv/config.yaml:{said}"]


@pytest.mark.parametrize("name", [TARGETS, ".agentv/config.yaml"])
def test_file__that_leaves_the_repository_is_refused(tmp_path: Path, name: str) -> None:
    root = suites.write(tmp_path / "repository", {"EVAL.yaml": SUITE, ".agentv/x": ""})
    suites.write(tmp_path, {"outside.yaml": "{}"})
    (root / name).symlink_to(tmp_path / "outside.yaml")

    (said,) = suites.errors(root)

    assert "leaves the repository" in said


@pytest.mark.parametrize(
    ("fields", "error"),
    [
        *(
            (f"{fields}, {name}: ", f"`{name}` is empty; write a value, or leave it out")
            for fields, name in (
                ("provider: cli, command: c", "trace"),
                ("provider: cli, command: c", "price"),
                ("provider: http, url: http://x/", "messages_path"),
                ("provider: http, url: http://x/", "usage_path"),
                ("provider: python, target: 'a:b'", "trace"),
            )
        ),
        (
            "provider: mock, response: a, price: {input: 1, output: 1, cached_input: }",
            "`price.cached_input` is empty; write a value, or leave it out",
        ),
        (
            "provider: python, target: 'a:b', python: uv run python",
            "`python`: it has arguments ('uv run python'), but one program is started; write the "
            "path of the interpreter, as `.venv/bin/python`, with `./` in front if it contains "
            "spaces",
        ),
        (
            "provider: python, target: 'class.a:def'",
            "`target`: `class` is a keyword of Python, which no module or function is called; "
            "write `module:function` with the names that Python imports",
        ),
    ],
)
def test_target__an_empty_or_impossible_value_is_refused(
    tmp_path: Path, fields: str, error: str
) -> None:
    suites.write(tmp_path, {"EVAL.yaml": SUITE, TARGETS: f"- {{name: default, {fields}}}\n"})

    (found,) = suites.errors(tmp_path, providers=PROVIDERS_BY_NAME)

    assert found.startswith(f"{TARGETS}:1:")
    assert found.endswith(f": {error}")


@pytest.mark.parametrize(
    ("provider", "fields"),
    [
        ("openai, model: m", "system_prompt thinking_budget"),
        ("cli, command: c", "system_prompt max_turns tools"),
        ("claude", "bypass_permissions max_budget_usd model_reasoning_effort"),
        ("codex", "variant subprovider thinking fallback_targets"),
    ],
)
def test_target__a_field_of_agentv_is_refused_by_its_name(
    tmp_path: Path, provider: str, fields: str
) -> None:
    written = "".join(f", {name}: 1" for name in fields.split())
    text = f"- {{name: default, provider: {provider}{written}}}\n"
    suites.write(tmp_path, {"EVAL.yaml": SUITE, TARGETS: text})

    found = suites.errors(tmp_path, providers=PROVIDERS_BY_NAME)

    assert len(found) == len(fields.split())
    assert not any("is unknown" in error for error in found)


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


def test_extends__more_than_twenty_deep_is_refused(tmp_path: Path) -> None:
    chain = "".join(f"- {{name: t{number}, extends: t{number + 1}}}\n" for number in range(25))
    suites.write(
        tmp_path,
        {
            "EVAL.yaml": SUITE,
            TARGETS: f"- {{name: default, extends: t0}}\n{chain}- {{name: t25, provider: cli, command: cat}}",
        },
    )

    said = suites.errors(tmp_path)

    assert (
        f"{TARGETS}:21:24: the target `default` extends more than 20 others in turn; make the chain shorter"
        in said
    )
