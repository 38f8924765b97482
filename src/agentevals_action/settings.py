"""What the workflow asks for (`Settings`) and what its runner says of the event (`Runner`), from
the environment, all faults at once."""

import json
import re
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Literal, TypeVar, cast

from agentevals_action import baselines, inputs
from agentevals_action.errors import InvalidInput
from agentevals_action.inputs import INPUTS as INPUTS
from agentevals_action.inputs import OUTPUTS as OUTPUTS
from agentevals_action.model.runner_variables import is_never_passed
from agentevals_action.model.watch import WatchRule, read_rule

T = TypeVar("T")

_SHOWN = 60  # characters of a wrong value that its fault repeats


@dataclass(frozen=True)
class Settings:
    """Every input, typed; what was not said is None or empty.

    `suites` empty means the default patterns, `fail_on` None the event's default. `timeout` is in
    seconds, `min_pass_rate` 0-1; paths are relative, with forward slashes."""

    suites: tuple[str, ...] = ()
    select: str = "changed"
    watch: tuple[WatchRule, ...] = ()
    targets: str | None = None
    target: str | None = None
    judge_target: str | None = None
    samples: int = 1
    max_concurrency: int = 8
    timeout: float = 300.0
    prepare: str | None = None
    setup: str | None = None
    max_cost_usd: float | None = None
    cache: Literal["off", "read", "on"] = "off"
    cache_dir: str | None = None
    env: tuple[str, ...] = ()
    strict: bool = False
    fail_on: frozenset[str] | None = None
    min_pass_rate: float | None = None
    on_inconclusive: str = "fail"
    comment: str = "always"
    comment_id: str = "agentevals"
    comment_template: str | None = None
    check_run: bool = True
    check_name: str = "agentevals"
    annotation_limit: int = 100
    report_dir: str = "agentevals-report"
    working_directory: str = "."
    allow_unsafe_pull_request_target: bool = False
    baseline: str = "auto"
    baseline_branch: str = "agentevals-data"
    baseline_file: str | None = None
    baseline_max_age: float = 14.0
    confirm: int = 6
    alpha: float = 0.05
    accept_label: str = "agentevals:accept"
    github_token: str | None = None

    def __repr__(self) -> str:
        """Without the token."""
        shown = (
            f"{name}={getattr(self, name)!r}"
            for name in self.__dataclass_fields__
            if name != "github_token"
        )
        return f"Settings({', '.join(shown)})"

    @classmethod
    def from_environ(cls, environ: Mapping[str, str]) -> "Settings":
        """Reads `INPUT_<NAME>` of every input; InvalidInput with one fault for each that means
        nothing."""
        read = _Reader(environ)
        cache_dir = read("cache-dir", _own_folder, None)
        settings = cls(
            suites=read("suites", inputs.items, ()),
            select=read("select", lambda text: inputs.word(text, ("changed", "all")), "changed"),
            watch=read("watch", _rules, ()),
            targets=read("targets", inputs.path_inside, None),
            target=read("target", _line, None),
            judge_target=read("judge-target", _line, None),
            samples=read("samples", lambda text: inputs.integer(text, 1, 100), 1),
            max_concurrency=read("max-concurrency", lambda text: inputs.integer(text, 1, 1000), 8),
            timeout=read("timeout", lambda text: inputs.number(text, 1, 3600), 300.0),
            prepare=read("prepare", str, None),
            setup=read("setup", str, None),
            max_cost_usd=read("max-cost-usd", lambda text: inputs.number(text, 0, 1_000_000), None),
            cache=read("cache", _cache_mode, "on" if cache_dir else "off"),
            cache_dir=cache_dir,
            env=read("env", _names, ()),
            strict=read("strict", inputs.boolean, False),
            fail_on=read("fail-on", _conditions, None),
            min_pass_rate=read("min-pass-rate", lambda text: inputs.number(text, 0, 1), None),
            on_inconclusive=read(
                "on-inconclusive",
                lambda text: inputs.word(text, ("fail", "neutral", "pass")),
                "fail",
            ),
            comment=read(
                "comment",
                lambda text: inputs.word(text, ("always", "changes", "failures", "off")),
                "always",
            ),
            comment_id=read("comment-id", _comment_id, "agentevals"),
            comment_template=read("comment-template", inputs.path_inside, None),
            check_run=read("check-run", inputs.boolean, True),
            check_name=read("check-name", _line, "agentevals"),
            annotation_limit=read(
                "annotation-limit", lambda text: inputs.integer(text, 0, 10_000), 100
            ),
            report_dir=read("report-dir", _own_folder, "agentevals-report"),
            working_directory=read("working-directory", inputs.path_inside, "."),
            allow_unsafe_pull_request_target=read(
                "allow-unsafe-pull-request-target", inputs.boolean, False
            ),
            baseline=read("baseline", lambda text: inputs.word(text, baselines.SOURCES), "auto"),
            baseline_branch=read("baseline-branch", _branch, "agentevals-data"),
            baseline_file=read("baseline-file", inputs.path_inside, None),
            baseline_max_age=read(
                "baseline-max-age", lambda text: inputs.number(text, 0, 3650), 14.0
            ),
            confirm=read("confirm", lambda text: inputs.integer(text, 0, 100), 6),
            alpha=read("alpha", _level, 0.05),
            accept_label=read("accept-label", _line, "agentevals:accept"),
            github_token=read("github-token", str, None),
        )
        if settings.cache != "off" and cache_dir is None:
            read.errors.append(
                f"input `cache`: there is no folder for `{settings.cache}`; name one in `cache-dir`"
            )
        if settings.baseline == "file" and not read.said("baseline-file"):
            read.errors.append(
                "input `baseline`: there is no file for `file`; name one in `baseline-file`"
            )
        if cache_dir and _overlap(cache_dir, settings.report_dir):
            read.errors.append(
                "inputs `cache-dir` and `report-dir`: one lies in the other; name two folders side by side"
            )
        _refuse(read.errors, "input")
        return settings


class _Reader:
    """Reads one input after the other and keeps what is wrong with each."""

    def __init__(self, environ: Mapping[str, str]) -> None:
        self._environ = environ
        self.errors: list[str] = []

    def said(self, name: str) -> bool:
        """Whether the workflow says anything of an input, right or wrong."""
        return bool(self._text(name))

    def _text(self, name: str) -> str:
        return self._environ.get(f"INPUT_{INPUTS[name].name.upper()}", "").strip()

    def __call__(self, name: str, parse: Callable[[str], T], default: T) -> T:
        text = self._text(name)
        if not text:
            return default
        try:
            return parse(text)
        except ValueError as error:
            shown = text if len(text) <= _SHOWN else text[: _SHOWN - 1] + "…"
            self.errors.append(f"input `{name}`: {shown!r} is not understood; {error}")
            return default


def _refuse(errors: list[str], noun: str) -> None:
    if errors:
        count = f"{len(errors)} {noun}{' is' if len(errors) == 1 else 's are'}"
        raise InvalidInput(f"{count} wrong, nothing was run", errors=errors)


def _rules(text: str) -> tuple[WatchRule, ...]:
    return tuple(read_rule(item) for item in inputs.items(text))


def _names(text: str) -> tuple[str, ...]:
    names = inputs.items(text)
    for name in names:
        if not re.fullmatch(r"[A-Za-z_][A-Za-z0-9_]*", name):
            raise ValueError(
                "write names of environment variables alone; their values come from `env:` of the step"
            )
        if is_never_passed(name):
            raise ValueError(
                f"`{name}` is never handed on; give a value of your own another name in `env:` of the step"
            )
    return names


def _conditions(text: str) -> frozenset[str]:
    conditions = frozenset(inputs.word(item, inputs.CONDITIONS) for item in inputs.items(text))
    if not conditions or ("never" in conditions and len(conditions) > 1):
        raise ValueError("write any of `gates`, `regressions`, `failures`, or `never` alone")
    return conditions


def _comment_id(text: str) -> str:
    if not re.fullmatch(r"[A-Za-z0-9][A-Za-z0-9._-]{0,63}", text) or "--" in text:
        raise ValueError("write up to 64 letters, digits, `.`, `_` and single `-`")
    return text


def _line(text: str) -> str:
    if not text.isprintable() or len(text) > 100:
        raise ValueError("write one line of at most 100 characters")
    return text


def _cache_mode(text: str) -> Literal["off", "read", "on"]:
    return cast(Literal["off", "read", "on"], inputs.word(text, ("off", "read", "on")))


def _overlap(one: str, other: str) -> bool:
    return one == other or one.startswith(f"{other}/") or other.startswith(f"{one}/")


def _own_folder(text: str) -> str:
    path = inputs.path_inside(text)
    if path == "." or path.split("/")[0].lower() == ".git":
        raise ValueError("write the name of a folder of its own")
    return path


def _branch(text: str) -> str:
    """A branch's name as git takes it: https://git-scm.com/docs/git-check-ref-format."""
    parts = text.split("/")
    odd = re.search(r"[\s~^:?*\[\\\x00-\x1f\x7f]|\.\.|@\{", text)
    if (
        odd
        or text.startswith("-")
        or any(not part or part.startswith(".") or part.endswith((".lock", ".")) for part in parts)
    ):
        raise ValueError("write the name of a branch")
    return text


def _level(text: str) -> float:
    try:
        level = inputs.number(text, 0, 1)
    except ValueError:
        level = 0.0  # as little a level as what follows refuses
    if level in (0, 1):
        raise ValueError("write a number between 0 and 1, without these")
    return level


#: Where GitHub itself is, for a runner that says nothing else.
_API_URL = "https://api.github.com"
_SERVER_URL = "https://github.com"
_GRAPHQL_URL = "https://api.github.com/graphql"


@dataclass(frozen=True)
class Runner:
    """What GitHub's runner says of the event; `in_actions` is False on any other machine. URLs have
    no slash at their end."""

    event_name: str
    event_path: Path | None
    repository: str
    sha: str
    ref: str
    workspace: Path
    api_url: str = _API_URL
    server_url: str = _SERVER_URL
    graphql_url: str = _GRAPHQL_URL
    run_id: int = 0
    run_attempt: int = 1
    actor: str = ""
    output_path: Path | None = None
    summary_path: Path | None = None
    in_actions: bool = False
    debug: bool = False

    @property
    def run_url(self) -> str | None:
        """The page of this run and attempt, None outside of a run."""
        run = f"{self.server_url}/{self.repository}/actions/runs/{self.run_id}"
        return f"{run}/attempts/{self.run_attempt}" if self.run_id else None

    @classmethod
    def from_environ(cls, environ: Mapping[str, str]) -> "Runner":
        """Reads `GITHUB_*`; InvalidInput names every variable that is missing or means nothing."""
        errors: list[str] = []

        def take(name: str, pattern: str, default: str | None = None) -> str:
            value = environ.get(name, "") or default
            if value is None or not re.fullmatch(pattern, value):
                errors.append(
                    f"the variable {name} is {'missing' if not value else 'no such thing as GitHub sets there'}"
                )
                return ""
            return value

        def path(name: str) -> Path | None:
            return Path(environ[name]) if environ.get(name) else None

        url, count = r"https?://[^\s]+", r"[0-9]{1,19}"
        texts = {
            "event_name": take("GITHUB_EVENT_NAME", r"[a-z_]+"),
            "repository": take("GITHUB_REPOSITORY", r"[^\s/]+/[^\s/]+"),
            "sha": take("GITHUB_SHA", r"[0-9a-f]{40}|[0-9a-f]{64}"),
            "ref": take("GITHUB_REF", r"[^\s]*", ""),
            "api_url": take("GITHUB_API_URL", url, _API_URL).rstrip("/"),
            "server_url": take("GITHUB_SERVER_URL", url, _SERVER_URL).rstrip("/"),
            "graphql_url": take("GITHUB_GRAPHQL_URL", url, _GRAPHQL_URL).rstrip("/"),
            "actor": environ.get("GITHUB_ACTOR", ""),
        }
        workspace = Path(take("GITHUB_WORKSPACE", r"/.*"))
        run_id, attempt = take("GITHUB_RUN_ID", count, "0"), take("GITHUB_RUN_ATTEMPT", count, "1")
        if errors:
            hint = "the command `action` is run by GitHub Actions; on your own machine use `review --base REV` or `run`"
            raise InvalidInput(
                "the environment is not that of a GitHub runner", hint, errors=errors
            )
        return cls(
            **texts,
            event_path=path("GITHUB_EVENT_PATH"),
            workspace=workspace,
            run_id=int(run_id),
            run_attempt=int(attempt),
            output_path=path("GITHUB_OUTPUT"),
            summary_path=path("GITHUB_STEP_SUMMARY"),
            in_actions=environ.get("GITHUB_ACTIONS") == "true",
            debug=environ.get("RUNNER_DEBUG") == "1",
        )

    def payload(self) -> Mapping[str, Any]:
        """The event as GitHub sent it; InvalidInput when the file is missing or holds no JSON
        object."""
        hint = "the runner writes it and names it in GITHUB_EVENT_PATH"
        if self.event_path is None:
            raise InvalidInput("there is no event file", hint)
        try:
            payload = json.loads(self.event_path.read_bytes())
        except (OSError, ValueError) as error:
            raise InvalidInput(
                f"the event file {self.event_path} cannot be read: {error}", hint
            ) from error
        if not isinstance(payload, dict):
            raise InvalidInput(f"the event file {self.event_path} holds no object", hint)
        return payload
