"""Inputs as a workflow writes them, and the runner's facts: typed, with every fault at once."""

import json
from pathlib import Path

import pytest

from agentevals_action.errors import ExitCode, InvalidInput
from agentevals_action.model.watch import WatchRule
from agentevals_action.settings import INPUTS, Runner, Settings

RUNNER = {
    "GITHUB_ACTIONS": "true",
    "GITHUB_EVENT_NAME": "pull_request",
    "GITHUB_EVENT_PATH": "/github/workflow/event.json",
    "GITHUB_REPOSITORY": "acme/agent",
    "GITHUB_SHA": "a" * 40,
    "GITHUB_REF": "refs/pull/7/merge",
    "GITHUB_WORKSPACE": "/github/workspace",
    "GITHUB_RUN_ID": "42",
    "GITHUB_RUN_ATTEMPT": "3",
    "GITHUB_ACTOR": "ada",
}


def read(**inputs: str) -> Settings:
    return Settings.from_environ(
        {f"INPUT_{name.replace('_', '-').upper()}": value for name, value in inputs.items()}
    )


def errors(**inputs: str) -> tuple[str, ...]:
    with pytest.raises(InvalidInput) as caught:
        read(**inputs)
    assert caught.value.exit_code == ExitCode.INVALID
    return caught.value.errors


def test_settings__nothing_said_is_what_the_table_says() -> None:
    written = {
        f"INPUT_{name.upper()}": one.default
        for name, one in INPUTS.items()
        if name != "github-token"
    }
    assert Settings.from_environ({}) == Settings.from_environ(written) == Settings()


def test_settings__an_empty_text_means_the_default() -> None:
    assert read(**dict.fromkeys((name.replace("-", "_") for name in INPUTS), " ")) == Settings()


def test_settings__every_input_has_its_field() -> None:
    assert {name.replace("-", "_") for name in INPUTS} == set(Settings.__dataclass_fields__)


def test_settings__typed() -> None:
    settings = read(
        samples="3",
        timeout="2.5",
        strict="true",
        check_run="false",
        min_pass_rate=".9",
        fail_on="gates, failures",
        env="API_KEY,\n REGION",
        report_dir="./out/report/",
        select="all",
    )
    assert (
        settings.samples,
        settings.timeout,
        settings.strict,
        settings.check_run,
        settings.min_pass_rate,
    ) == (3, 2.5, True, False, 0.9)
    assert settings.fail_on == frozenset({"gates", "failures"})
    assert settings.env == ("API_KEY", "REGION")
    assert settings.report_dir == "out/report"


def test_settings__lists_by_lines_and_commas_but_not_inside_braces() -> None:
    assert read(suites="a/**,b/*.{yaml,yml}\n\n  !c/** ").suites == (
        "a/**",
        "b/*.{yaml,yml}",
        "!c/**",
    )


def test_settings__watch_rules() -> None:
    rules = read(watch="src/**\nsrc/billing/** => evals/billing/**\n!src/**/*.md").watch
    assert rules == (
        WatchRule("src/**"),
        WatchRule("src/billing/**", "evals/billing/**"),
        WatchRule("!src/**/*.md"),
    )


@pytest.mark.parametrize("rule", ["=> evals/**", "src/** =>", "a => b => c", "!"])
def test_settings__a_watch_rule_without_a_side(rule: str) -> None:
    assert errors(watch=rule)[0].endswith("write `glob` or `glob => suite glob`, one a line")


@pytest.mark.parametrize("text", ["True", "yes", "1", "on", "TRUE", "falsex"])
def test_settings__booleans_are_true_or_false_and_nothing_else(text: str) -> None:
    assert errors(strict=text) == (
        f"input `strict`: {text!r} is not understood; write `true` or `false`",
    )


@pytest.mark.parametrize(
    ("name", "text", "advice"),
    [
        ("samples", "0", "write a whole number from 1 to 100"),
        ("samples", "1.5", "write a whole number from 1 to 100"),
        ("samples", "١", "write a whole number from 1 to 100"),
        ("max_concurrency", "-1", "write a whole number from 1 to 1000"),
        ("timeout", "0", "write a number from 1 to 3600"),
        ("timeout", "nan", "write a number from 1 to 3600"),
        ("max_cost_usd", "2000000", "write a number from 0 to 1000000"),
        ("min_pass_rate", "80", "write a number from 0 to 1"),
        ("min_pass_rate", "80%", "write a number from 0 to 1"),
        ("on_inconclusive", "failure", "write `fail`, or one of `fail`, `neutral`, `pass`"),
        ("comment", "never", "write one of `always`, `changes`, `failures`, `off`"),
        ("select", "change", "write `changed`, or one of `changed`, `all`"),
        (
            "fail_on",
            "gates,regression",
            "write `regressions`, or one of `gates`, `regressions`, `failures`, `never`",
        ),
        (
            "fail_on",
            "gates,never",
            "write any of `gates`, `regressions`, `failures`, or `never` alone",
        ),
        ("fail_on", ",", "write any of `gates`, `regressions`, `failures`, or `never` alone"),
        ("baseline_branch", "a..b", "write the name of a branch"),
        ("baseline_branch", "-x", "write the name of a branch"),
        ("baseline_branch", "a/.b", "write the name of a branch"),
        ("baseline_max_age", "-1", "write a number from 0 to 3650"),
        ("confirm", "101", "write a whole number from 0 to 100"),
        ("alpha", "0", "write a number between 0 and 1, without these"),
        ("alpha", "1", "write a number between 0 and 1, without these"),
        ("accept_label", "a\tb", "write one line of at most 100 characters"),
        ("baseline", "main", "write one of `auto`, `branch`, `artifact`, `rerun`, `file`, `none`"),
        ("comment_id", "a--b", "write up to 64 letters, digits, `.`, `_` and single `-`"),
        ("comment_id", "x -->", "write up to 64 letters, digits, `.`, `_` and single `-`"),
        ("check_name", "two\nlines", "write one line of at most 100 characters"),
        ("report_dir", "../out", "write a path relative to the workspace, without `..`"),
        ("report_dir", "/tmp/out", "write a path relative to the workspace, without `..`"),
        ("report_dir", ".", "write the name of a folder of its own"),
        ("report_dir", ".git/hooks", "write the name of a folder of its own"),
        ("working_directory", "a/../../b", "write a path relative to the workspace, without `..`"),
        ("targets", "/etc/targets.yaml", "write a path relative to the workspace, without `..`"),
        (
            "env",
            "KEY=value",
            "write names of environment variables alone; their values come from `env:` of the step",
        ),
        (
            "env",
            "GITHUB_TOKEN",
            "`GITHUB_TOKEN` is never handed on; give a value of your own another name in `env:` of the step",
        ),
        (
            "env",
            "ACTIONS_RUNTIME_TOKEN",
            "`ACTIONS_RUNTIME_TOKEN` is never handed on; give a value of your own another name in `env:` of the step",
        ),
    ],
)
def test_settings__a_value_that_means_nothing(name: str, text: str, advice: str) -> None:
    assert errors(**{name: text}) == (
        f"input `{name.replace('_', '-')}`: {text!r} is not understood; {advice}",
    )


def test_settings__all_faults_at_once() -> None:
    told = errors(samples="none", strict="yes", baseline="main")
    assert [diagnostic.split("`")[1] for diagnostic in told] == ["samples", "strict", "baseline"]


def test_settings__a_long_value_is_cut() -> None:
    assert len(errors(select="x" * 10_000)[0]) < 250


def test_settings__the_token_is_in_no_representation() -> None:
    settings = read(github_token="ghs_secret")
    assert settings.github_token == "ghs_secret"
    assert "ghs_secret" not in repr(settings)


def test_runner__facts() -> None:
    runner = Runner.from_environ(
        {**RUNNER, "GITHUB_SERVER_URL": "https://ghe.example/", "RUNNER_DEBUG": "1"}
    )
    assert (runner.event_name, runner.sha, runner.run_attempt, runner.in_actions, runner.debug) == (
        "pull_request",
        "a" * 40,
        3,
        True,
        True,
    )
    assert runner.run_url == "https://ghe.example/acme/agent/actions/runs/42/attempts/3"
    assert runner.api_url == "https://api.github.com"
    assert runner.output_path is None


def test_runner__another_machine() -> None:
    with pytest.raises(InvalidInput) as caught:
        Runner.from_environ({"PATH": "/bin"})
    assert "the variable GITHUB_EVENT_NAME is missing" in caught.value.errors
    assert len(caught.value.errors) == 4
    assert "review --base" in caught.value.hint


def test_runner__a_commit_that_is_none() -> None:
    with pytest.raises(InvalidInput) as caught:
        Runner.from_environ({**RUNNER, "GITHUB_SHA": "--upload-pack=touch x"})
    assert caught.value.errors == ("the variable GITHUB_SHA is no such thing as GitHub sets there",)


def test_payload__the_event(tmp_path: Path) -> None:
    (tmp_path / "event.json").write_text(json.dumps({"action": "opened"}))
    runner = Runner.from_environ({**RUNNER, "GITHUB_EVENT_PATH": str(tmp_path / "event.json")})
    assert runner.payload() == {"action": "opened"}


@pytest.mark.parametrize("content", [None, "{", "[]", b"\xff"])
def test_payload__unreadable(tmp_path: Path, content: str | bytes | None) -> None:
    path = tmp_path / "event.json"
    if content is not None:
        path.write_bytes(content if isinstance(content, bytes) else content.encode())
    with pytest.raises(InvalidInput, match="the event file"):
        Runner.from_environ({**RUNNER, "GITHUB_EVENT_PATH": str(path)}).payload()


def test_settings__a_baseline_of_a_file_needs_one() -> None:
    assert errors(baseline="file") == (
        "input `baseline`: there is no file for `file`; name one in `baseline-file`",
    )
    assert read(baseline="file", baseline_file="evals/base.json").baseline_file == "evals/base.json"
