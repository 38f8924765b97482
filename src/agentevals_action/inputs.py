"""The inputs and outputs that `action.yml`, the README and the command line agree with, and the
words that inputs are written in."""

import math
import re
from collections.abc import Collection, Mapping
from dataclasses import dataclass
from pathlib import PurePosixPath
from typing import Literal

Kind = Literal["text", "list", "boolean", "integer", "number", "path"]


@dataclass(frozen=True)
class Input:
    """One input: `default` as it is written in a workflow; an empty string, given or by default,
    means that nothing was said."""

    name: str
    description: str
    default: str = ""
    kind: Kind = "text"


CONDITIONS = ("gates", "regressions", "failures", "never")

_ALL = (
    Input(
        "github-token", "Token for the comment, the check run and the API.", "${{ github.token }}"
    ),
    Input(
        "suites",
        "Which files are suites, as globs; !pattern excludes. Default: EVAL.yaml, *.eval.yaml, dataset.yaml and their kin.",
        "",
        "list",
    ),
    Input("select", "Which suites run on a change: changed (those it touches) or all.", "changed"),
    Input(
        "watch",
        "The agent's own code, one rule a line: a glob (touches all suites) or glob => suite glob; !glob takes out again.",
        "",
        "list",
    ),
    Input("targets", "A targets file, instead of the search for .agentv/targets.yaml.", "", "path"),
    Input("target", "Name of the target that every test is put to, whatever the suites say."),
    Input("judge-target", "Name of the target that judges where an evaluator names none."),
    Input("samples", "Runs of each test.", "1", "integer"),
    Input("max-concurrency", "Tests at once, over all suites.", "8", "integer"),
    Input("timeout", "Seconds for a test that says nothing itself.", "300", "number"),
    Input(
        "setup",
        "A command (sh -c) run once in the workspace before anything else: install what judges and agents need into the container.",
    ),
    Input(
        "prepare",
        "A command (sh -c) run once in head's tree and once in the base's before the suites: install dependencies, build.",
    ),
    Input(
        "max-cost-usd",
        "US dollars after which no further call is made; what is left is an error of kind budget.",
        "",
        "number",
    ),
    Input(
        "cache",
        "Replies of models out of the cache: off, read or on. Default: on when cache-dir is given.",
    ),
    Input(
        "cache-dir",
        "Folder of the cache, relative to the workspace; keep it with actions/cache.",
        "",
        "path",
    ),
    Input(
        "env",
        "Names of environment variables that judges, hooks and cli targets may see beside the scrubbed set.",
        "",
        "list",
    ),
    Input("strict", "Whether warnings of suites are faults: true or false.", "false", "boolean"),
    Input(
        "fail-on",
        "What fails the job: gates, regressions, failures (a list), or never. "
        "Default: gates,regressions on a pull request or merge group, failures elsewhere.",
        "",
        "list",
    ),
    Input("min-pass-rate", "Share of scored tests that must pass, 0 to 1.", "", "number"),
    Input(
        "on-inconclusive", "What could not be told: fail (exit code 3), neutral or pass.", "fail"
    ),
    Input(
        "comment",
        "When to comment: always, changes (a verdict differs from base), failures (the outcome is not passed) or off.",
        "always",
    ),
    Input(
        "comment-id", "Tells the comments of several gates on one pull request apart.", "agentevals"
    ),
    Input("comment-template", "A Jinja file that extends the action's comment.", "", "path"),
    Input("check-run", "Whether a check run is written: true or false.", "true", "boolean"),
    Input(
        "check-name", "Name of the check run; keep it stable for branch protection.", "agentevals"
    ),
    Input(
        "annotation-limit", "Annotations in all; the rest is counted in words.", "100", "integer"
    ),
    Input(
        "report-dir",
        "Folder of the report files, relative to the workspace.",
        "agentevals-report",
        "path",
    ),
    Input(
        "working-directory",
        "Suites are searched below it; paths in reports stay relative to the repository.",
        ".",
        "path",
    ),
    Input(
        "allow-unsafe-pull-request-target",
        "Whether to run on pull_request_target, with secrets in reach of a stranger's code.",
        "false",
        "boolean",
    ),
    Input(
        "baseline",
        "Where the base's results come from: auto (the first that has them), branch, artifact, rerun (run it now), file or none.",
        "auto",
    ),
    Input(
        "baseline-branch",
        "The branch that keeps results of the default branch, for auto and branch.",
        "agentevals-data",
    ),
    Input(
        "baseline-file",
        "A file of results in the base's tree, written by `baseline write`, for auto and file.",
        "",
        "path",
    ),
    Input(
        "baseline-max-age",
        "Days after which results of the base are marked as stale.",
        "14",
        "number",
    ),
    Input(
        "confirm",
        "Fresh samples, at most, for each test whose verdict fell; 0 takes one fall for a regression.",
        "6",
        "integer",
    ),
    Input(
        "alpha",
        "The chance of a false regression that a whole pull request may take, 0 to 1.",
        "0.05",
        "number",
    ),
    Input(
        "accept-label",
        "The label that accepts a pull request's regressions, not its failed gates.",
        "agentevals:accept",
    ),
)

#: Every input of this version by its name.
INPUTS: Mapping[str, Input] = {one.name: one for one in _ALL}

#: Every output by its name, with its description.
OUTPUTS: Mapping[str, str] = {
    "outcome": "passed, failed, inconclusive or invalid.",
    "passed": "Number of head's tests that passed.",
    "borderline": "Number of head's tests that are borderline.",
    "failed": "Number of head's tests that failed.",
    "errored": "Number of head's tests that ended in an error.",
    "regressions": "Number of tests that got worse than on base, without accepted ones and those in quarantine.",
    "improvements": "Number of tests that got better than on base.",
    "pass-rate": "Share of scored tests that passed, 0 to 1; empty when none was scored.",
    "cost-usd": "What the run cost, in US dollars, as far as it is known.",
    "comment-url": "The comment on the pull request.",
    "check-run-url": "The check run.",
    "report-dir": "Folder of the report files, relative to the workspace.",
    "results-path": "The results (JSON Lines), relative to the workspace.",
    "base-sha": "The commit that was compared with.",
    "head-sha": "The commit that was reviewed.",
}


def items(text: str) -> tuple[str, ...]:
    """A list as written, split at newlines and commas; a comma inside `{a,b}` belongs to the
    glob."""
    found, current, depth = [], "", 0
    for char in text:
        if char == "\n" or (char == "," and depth == 0):
            found.append(current)
            current, depth = "", 0
            continue
        depth = max(0, depth + (char == "{") - (char == "}"))
        current += char
    return tuple(dict.fromkeys(item.strip() for item in (*found, current) if item.strip()))


def boolean(text: str) -> bool:
    """`true` or `false` and nothing else; ValueError says what to write."""
    if text not in ("true", "false"):
        raise ValueError("write `true` or `false`")
    return text == "true"


def integer(text: str, low: int, high: int) -> int:
    """A whole number within a range; ValueError says what to write."""
    if re.fullmatch(r"[0-9]{1,9}", text) and low <= int(text) <= high:
        return int(text)
    raise ValueError(f"write a whole number from {low} to {high}")


def number(text: str, low: float, high: float) -> float:
    """A decimal number within a range; ValueError says what to write."""
    if (
        re.fullmatch(r"[0-9]+(\.[0-9]+)?|\.[0-9]+", text)
        and low <= (value := float(text)) <= high
        and math.isfinite(value)
    ):
        return value
    raise ValueError(f"write a number from {low:.15g} to {high:.15g}")


def word(text: str, known: Collection[str]) -> str:
    """One of a few words; ValueError lists them and names the nearest."""
    if text in known:
        return text
    import difflib  # late: nobody misspells most of the time

    near = difflib.get_close_matches(text, known, 1)
    raise ValueError(
        f"write {'`' + near[0] + '`, or ' if near else ''}one of {', '.join(f'`{one}`' for one in known)}"
    )


def path_inside(text: str) -> str:
    """A relative path that stays below where it starts, in its shortest form; ValueError says what
    to write."""
    parts = PurePosixPath(text).parts
    if text.startswith("/") or ".." in parts or "\\" in text or not text.isprintable():
        raise ValueError("write a path relative to the workspace, without `..`")
    return PurePosixPath(text).as_posix()
