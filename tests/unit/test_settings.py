"""Inputs as a workflow writes them: typed, with every error at once."""

import pytest

from agentevals_action.errors import ExitCode, InvalidInput
from agentevals_action.model.judge import Floor
from agentevals_action.model.path_patterns import WatchRule
from agentevals_action.model.run import Shard
from agentevals_action.settings import INPUTS, Settings


def read(**inputs: str) -> Settings:
    return Settings.from_environ(
        {f"INPUT_{name.replace('_', '-').upper()}": value for name, value in inputs.items()}
    )


def errors(**inputs: str) -> tuple[str, ...]:
    with pytest.raises(InvalidInput) as caught:
        read(**inputs)
    assert caught.value.exit_code == ExitCode.INVALID
    return caught.value.errors


def test_settings__without_an_input_each_has_its_default() -> None:
    written = {
        f"INPUT_{name.upper()}": described.default
        for name, described in INPUTS.items()
        if name != "github-token"
    }
    assert Settings.from_environ({}) == Settings.from_environ(written) == Settings()


def test_settings__an_empty_text_means_the_default() -> None:
    assert read(**dict.fromkeys((name.replace("-", "_") for name in INPUTS), " ")) == Settings()


def test_settings__every_input_has_its_field() -> None:
    assert {name.replace("-", "_") for name in INPUTS} == set(Settings.model_fields)


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


@pytest.mark.parametrize("name", ["targets", "working_directory", "cache_dir", "report_dir"])
def test_settings__a_name_that_no_file_can_have(name: str) -> None:
    (error,) = errors(**{name: "a" * 256})
    assert error.endswith("write names of files and folders that are shorter")


def test_settings__lists_by_lines_and_commas_but_not_inside_braces() -> None:
    assert read(suites="a/**,b/*.{yaml,yml}\n\n  !c/** ").suites == (
        "a/**",
        "b/*.{yaml,yml}",
        "!c/**",
    )


@pytest.mark.parametrize("name", ["suites", "watch"])
def test_settings__a_glob_with_too_many_alternatives(name: str) -> None:
    (error,) = errors(**{name: "evals/{1..9999}.yaml"})
    assert "more than 1,000 alternatives; write several globs" in error


def test_settings__watch_rules() -> None:
    rules = read(watch="src/**\nsrc/billing/** => evals/billing/**\n!src/**/*.md").watch
    assert rules == (
        WatchRule("src/**"),
        WatchRule("src/billing/**", "evals/billing/**"),
        WatchRule("src/**/*.md", excludes=True),
    )


def test_settings__all_watch_rules_that_cannot_be_read_are_reported() -> None:
    (error,) = errors(watch="src/**\n=> evals/**\nlib/**:evals/**")
    assert "`=> evals/**` is not a rule" in error
    assert "`lib/**:evals/**` is not a rule" in error


def test_settings__judge_floor() -> None:
    assert read().judge_floor == ()
    assert read(judge_floor="specificity:0.7, kappa:.4").judge_floor == (
        Floor("specificity", 0.7),
        Floor("kappa", 0.4),
    )
    (error,) = errors(judge_floor="specificity:0.7,accuracy:0.9,kappa:2")
    assert "input `judge-floor`: 'specificity:0.7,accuracy:0.9,kappa:2' is not valid" in error
    assert error.count("write `metric:number`, as `specificity:0.7`") == 1


def test_settings__watch_rules_hold_below_the_working_directory() -> None:
    (rule,) = read(watch="src/**", working_directory="agents/billing").watch_rules
    assert rule.covers("agents/billing/src/a.py")
    assert rule.covers("src/a.py")


@pytest.mark.parametrize("text", ["True", "yes", "1", "on", "TRUE", "falsex"])
def test_settings__booleans_are_true_or_false_and_nothing_else(text: str) -> None:
    assert errors(strict=text) == (
        f"input `strict`: {text!r} is not valid; write `true` or `false`",
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
        ("isolation", "root", "write one of `user`, `none`"),
        ("select", "change", "write `changed`, or one of `changed`, `all`"),
        (
            "fail_on",
            "gates,regression",
            "write `regressions`, or one of `gates`, `regressions`, `failures`, `pairwise`, `never`",
        ),
        (
            "fail_on",
            "gates,never",
            "write any of `gates`, `regressions`, `failures`, `pairwise`, or `never` alone",
        ),
        (
            "fail_on",
            ",",
            "write any of `gates`, `regressions`, `failures`, `pairwise`, or `never` alone",
        ),
        ("baseline_branch", "a..b", "write the name of a branch"),
        ("baseline_branch", "-x", "write the name of a branch"),
        ("baseline_branch", "a/.b", "write the name of a branch"),
        ("baseline_max_age", "-1", "write a number from 0 to 3650"),
        ("confirm", "101", "write a whole number from 0 to 100"),
        ("alpha", "0", "write a number greater than 0 and less than 1"),
        ("alpha", "1", "write a number greater than 0 and less than 1"),
        ("accept_label", "a\tb", "write one line of at most 100 characters"),
        ("baseline", "main", "write one of `auto`, `branch`, `file`, `rerun`, `none`"),
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
            "write only names of environment variables; their values come from `env:` of the step",
        ),
        (
            "env",
            "GITHUB_TOKEN",
            "`GITHUB_TOKEN` is never passed on; give your own value another name in `env:` of the step",
        ),
        (
            "env",
            "ACTIONS_RUNTIME_TOKEN",
            "`ACTIONS_RUNTIME_TOKEN` is never passed on; give your own value another name in `env:` of the step",
        ),
    ],
)
def test_settings__a_value_that_means_nothing(name: str, text: str, advice: str) -> None:
    assert errors(**{name: text}) == (
        f"input `{name.replace('_', '-')}`: {text!r} is not valid; {advice}",
    )


def test_settings__all_errors_at_once() -> None:
    found = errors(samples="none", strict="yes", baseline="main")
    assert [diagnostic.split("`")[1] for diagnostic in found] == ["samples", "strict", "baseline"]


def test_settings__a_long_value_is_cut() -> None:
    assert len(errors(select="x" * 10_000)[0]) < 250


def test_settings__the_token_is_in_no_representation() -> None:
    settings = read(github_token="ghs_secret")
    assert settings.github_token == "ghs_secret"
    assert "ghs_secret" not in repr(settings)


def test_settings__a_baseline_of_a_file_needs_one() -> None:
    assert errors(baseline="file") == (
        "input `baseline-file` is missing; name the file for `baseline: file`",
    )
    assert read(baseline="file", baseline_file="evals/base.json").baseline_file == "evals/base.json"


@pytest.mark.parametrize("text", ["3/2", "0/4", "1/257", "2", "1/0", "-1/2", "1/2/3", "one/two"])
def test_settings__a_shard_is_i_of_n(text: str) -> None:
    (error,) = errors(shard=text)
    assert error.endswith("write `i/n`, with i from 1 to n and n at most 256")
    assert read(shard="2/4").shard == Shard(2, 4)


@pytest.mark.parametrize("mode", ["publish", "merge"])
def test_settings__a_shard_runs_in_a_job_of_its_own(mode: str) -> None:
    assert errors(shard="1/2", mode=mode) == (
        f"input `shard`: '1/2' is not valid; leave it out: `mode: {mode}` runs no shard",
    )


def test_settings__a_cache_is_on_if_it_has_a_folder() -> None:
    assert read(cache="off").cache == "off"
    assert (read(cache_dir="c").cache, read(cache_dir="c", cache="read").cache) == ("on", "read")


@pytest.mark.parametrize("folder", ["agentevals-report", "agentevals-report/cache"])
def test_settings__the_cache_is_outside_of_the_report(folder: str) -> None:
    assert errors(cache_dir=folder) == (
        "input `report-dir`: 'agentevals-report' is not valid; "
        f"write another folder than `{folder}`, the input `cache-dir`",
    )
