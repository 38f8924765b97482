"""The inputs of the action: one field of `Settings` for each.

The options of the command line follow from it; tests compare `action.yml` and the
documentation with it."""

import re
from collections.abc import Callable, Collection, Mapping
from contextlib import suppress
from dataclasses import dataclass, replace
from pathlib import PurePosixPath
from types import NoneType
from typing import Annotated, Any, Literal, Self, TypeVar, get_args, get_origin

from pydantic import (
    AfterValidator,
    BaseModel,
    BeforeValidator,
    ConfigDict,
    Field,
    ValidationError,
    ValidationInfo,
    field_validator,
    model_validator,
)
from pydantic.fields import FieldInfo

from agentevals_action.errors import InvalidInput
from agentevals_action.formatting import cut, plural
from agentevals_action.model.judge import Floor, read_floor
from agentevals_action.model.path_patterns import Glob, WatchRule, read_rule
from agentevals_action.model.run import MAX_SHARDS, Shard
from agentevals_action.system.child_environment import is_never_passed
from agentevals_action.validation.field_errors import nearest

#: The largest value of the inputs `samples` and `confirm`.
MAX_SAMPLES = 100
_SHOWN = 60  # characters of an invalid value in its error
_MAX_NAME = 255  # bytes of a file's name, on Linux and macOS
#: The inputs that state where and how a run is reported; no two of them conflict.
_FOR_REPORT = (
    *("github-token", "check-run", "check-name", "comment", "comment-id", "report-dir"),
    "upload-report",
    "allow-unsafe-pull-request-target",
)
Item = TypeVar("Item")
Kind = Literal["text", "list", "boolean", "integer", "number", "path"]
_KINDS: Mapping[Any, Kind] = {
    bool: "boolean",
    int: "integer",
    float: "number",
    tuple: "list",
    frozenset: "list",
}
_CONDITIONS = ("gates", "regressions", "failures", "pairwise", "never")


def _from_text(read: Callable[[str], Any]) -> BeforeValidator:
    """Reads a text; another value is validated as it is."""
    return BeforeValidator(lambda value: read(value) if isinstance(value, str) else value)


def _matching(pattern: str, advice: str = "") -> BeforeValidator:
    """Texts of this form. For a boolean or a number, pydantic would also read `yes`, `1_000` and
    `1e3`."""

    def check(text: str) -> str:
        if not re.fullmatch(pattern, text):
            raise ValueError(advice)
        return text

    return _from_text(check)


def items(text: str) -> tuple[str, ...]:
    """A list as written, split at newlines and commas; a comma inside `{a,b}` belongs to the
    glob."""
    parts, current, depth = [], "", 0
    for char in text:
        if char == "\n" or (char == "," and depth == 0):
            parts.append(current)
            current, depth = "", 0
            continue
        depth = max(0, depth + (char == "{") - (char == "}"))
        current += char
    return tuple(dict.fromkeys(item.strip() for item in (*parts, current) if item.strip()))


def _path_inside(text: str) -> str:
    """A relative path that stays below its start, in its shortest form."""
    parts = PurePosixPath(text).parts
    if text.startswith("/") or ".." in parts or "\\" in text or not text.isprintable():
        raise ValueError("write a path relative to the workspace, without `..`")
    if any(len(part.encode()) > _MAX_NAME for part in parts):
        raise ValueError("write names of files and folders that are shorter")
    return PurePosixPath(text).as_posix()


def _own_folder(path: str) -> str:
    if path == "." or path.split("/")[0].lower() == ".git":
        raise ValueError("write the name of a folder of its own")
    return path


def _variable_names(text: str) -> tuple[str, ...]:
    names = items(text)
    for name in names:
        if not re.fullmatch(r"[A-Za-z_][A-Za-z0-9_]*", name):
            raise ValueError(
                "write only names of environment variables; "
                "their values come from `env:` of the step"
            )
        if is_never_passed(name):
            raise ValueError(
                f"`{name}` is never passed on; "
                "give your own value another name in `env:` of the step"
            )
    return names


def _conditions(text: str) -> frozenset[str]:
    conditions = frozenset(items(text))
    for condition in conditions - {*_CONDITIONS}:
        raise ValueError(_advise_choice(condition, _CONDITIONS))
    if not conditions or ("never" in conditions and len(conditions) > 1):
        others = "`gates`, `regressions`, `failures`, `pairwise`"
        raise ValueError(f"write any of {others}, or `never` alone")
    return conditions


def _reading_each(read: Callable[[str], Item]) -> Callable[[str], tuple[Item, ...]]:
    """Reads the items of a list; ValueError with the advice for all items that cannot be read."""

    def read_all(text: str) -> tuple[Item, ...]:
        values, errors = [], []
        for item in items(text):
            try:
                values.append(read(item))
            except ValueError as error:
                errors.append(str(error))
        if errors:
            raise ValueError("; ".join(dict.fromkeys(errors)))
        return tuple(values)

    return read_all


def _shard(text: str) -> Shard:
    match = re.fullmatch(r"([0-9]{1,3})/([0-9]{1,3})", text)
    if match and 1 <= (number := int(match[1])) <= (total := int(match[2])) <= MAX_SHARDS:
        return Shard(number, total)
    raise ValueError(f"write `i/n`, with i from 1 to n and n at most {MAX_SHARDS}")


def _share(text: str) -> float:
    if not re.fullmatch(r"[0-9]{1,4}(\.[0-9]{1,3})?%", text):
        raise ValueError("write a percentage, such as `20%`")
    return round(float(text[:-1]) / 100, 5)


_Texts = Annotated[tuple[str, ...], _from_text(items)]
_Boolean = Annotated[bool, _matching("true|false")]
_Integer = Annotated[int, _matching("[0-9]{1,9}")]
_Number = Annotated[float, _matching(r"[0-9]+(\.[0-9]+)?|\.[0-9]+")]
_Percent = Annotated[float, _from_text(_share)]
_Line = Annotated[
    str,
    _matching(
        r"[^\x00-\x1f\x7f-\x9f\u2028\u2029]{1,100}", "write one line of at most 100 characters"
    ),
]
#: https://git-scm.com/docs/git-check-ref-format
_Branch = Annotated[
    str,
    _matching(
        r"(?![-/])(?!.*(?:\.\.|@\{|\.lock(?:/|$)|\.(?:/|$)))(?:(?:^|/)[^\s~^:?*\[\\\x00-\x1f\x7f./]"
        r"[^\s~^:?*\[\\\x00-\x1f\x7f/]*)+",
        "write the name of a branch",
    ),
]
_CommentId = Annotated[
    str,
    _matching(
        r"(?!.*--)[A-Za-z0-9][A-Za-z0-9._-]{0,63}",
        "write up to 64 letters, digits, `.`, `_` and single `-`",
    ),
]
_Path = Annotated[str, AfterValidator(_path_inside), "path"]
_OwnFolder = Annotated[str, AfterValidator(_path_inside), AfterValidator(_own_folder), "path"]


def _input(default: Any, description: str, written: str | None = None, **limits: Any) -> Any:
    """The field of an input. `written` is the default in `action.yml`, for an input whose default
    depends on something else; None derives it from `default`. `limits` are passed to pydantic."""
    return Field(
        default,
        description=description,
        json_schema_extra={} if written is None else {"written": written},
        **limits,
    )


class Settings(BaseModel):
    """The inputs. An input that was not given has its default, which may be None or empty.

    `suites` empty means the default patterns, `fail_on` None the default of the event. `timeout` is
    in seconds, `min_pass_rate`, `min_pass_all` and `alpha` are 0-1, the increases shares of base's
    figure; paths are relative, with forward slashes."""

    model_config = ConfigDict(
        frozen=True,
        extra="forbid",
        alias_generator=lambda name: name.replace("_", "-"),
        validate_by_name=True,
        validate_default=True,
    )

    github_token: str | None = _input(
        None, "Token for the comment, the check run and the API.", "${{ github.token }}", repr=False
    )
    mode: Literal["auto", "publish", "merge"] = _input(
        "auto",
        "What the job does: auto (by the event), publish (report the results of a run without "
        "secrets, in a workflow_run) or merge (one outcome from the report folders of shards).",
    )
    suites: Annotated[tuple[Glob, ...], _from_text(items)] = _input(
        (),
        "Globs of the suite files; !pattern excludes. "
        "Default: EVAL.yaml, *.eval.yaml, dataset.yaml and similar names.",
    )
    select: Literal["changed", "all"] = _input(
        "changed", "Suites that run: changed (those that the change affects) or all."
    )
    watch: Annotated[tuple[WatchRule, ...], _from_text(_reading_each(read_rule))] = _input(
        (),
        "The agent's own code, one rule per line: a glob (affects all suites) or "
        "glob => suite glob; !glob excludes.",
    )
    untouched: Literal["pass", "neutral", "all"] = _input(
        "pass", "When the change affects no suite: pass, neutral, or all (every suite runs)."
    )
    targets: _Path | None = _input(
        None, "A targets file, used instead of the search for .agentv/targets.yaml."
    )
    target: _Line | None = _input(None, "Name of the target that overrides the suites' choice.")
    judge_target: _Line | None = _input(
        None, "Name of the target that judges where an evaluator names none."
    )
    samples: _Integer = _input(1, "Samples per test.", ge=1, le=MAX_SAMPLES)
    max_concurrency: _Integer = _input(8, "Maximum concurrency over all suites.", ge=1, le=1000)
    timeout: _Number = _input(
        300.0, "Time-out in seconds for a test that sets none.", ge=1, le=3600
    )
    isolation: Literal["user", "none"] | None = _input(
        None,
        "Users of the programs of a pull request: user (three without root rights: programs of "
        "head, programs of base, judges) or none (the action's own user). Default: user in the "
        "action's container, none elsewhere.",
    )
    setup: str | None = _input(
        None,
        "A command (sh -c) run once in base's tree, before every program of the pull request: "
        "install what judges and agents need into the container.",
    )
    prepare: str | None = _input(
        None,
        "A command (sh -c) run once in head's tree and once in each base worktree, before the "
        "suites: install dependencies, build.",
    )
    max_cost_usd: _Number | None = _input(
        None,
        "US dollars after which no further call is made; tests not run by then end with a budget "
        "error.",
        ge=0,
        le=1000000,
    )
    cache: Literal["off", "read", "on", "replay"] = _input(
        "off",
        "Use of stored replies of targets: off, read, on, or replay (a reply that is not stored is "
        "an error; no key is needed). Default: on if cache-dir is set.",
        "",
    )
    cache_dir: _OwnFolder | None = _input(
        None,
        "Folder of the stored replies, one JSON file for each request, relative to the workspace; "
        "keep it with actions/cache, or commit it for replay.",
    )
    env: Annotated[tuple[str, ...], _from_text(_variable_names)] = _input(
        (),
        "Names of environment variables that judges, hooks, runners, cli and python targets may "
        "see in addition to the scrubbed environment.",
    )
    strict: _Boolean = _input(False, "Treat warnings about suites as errors: true or false.")
    fail_on: Annotated[frozenset[str], _from_text(_conditions)] | None = _input(
        None,
        "Conditions that fail the job: gates, regressions, failures, pairwise (a list), or never. "
        "Default: gates,regressions on a pull request or merge group, failures elsewhere.",
    )
    min_pass_rate: _Number | None = _input(
        None, "Minimum pass rate over the tests that were scored, 0 to 1.", ge=0, le=1
    )
    min_pass_all: _Number | None = _input(
        None,
        "Minimum share of the scored tests that pass in all of their samples, 0 to 1; it needs "
        "samples of 2 or more.",
        ge=0,
        le=1,
    )
    judge_floor: Annotated[tuple[Floor, ...], _from_text(_reading_each(read_floor))] = _input(
        (),
        "What a judge must have reached against people's labels to decide, a list such as "
        "specificity:0.7 (agreement, sensitivity, specificity or kappa, 0 to 1); others are shown "
        "and never block. Default: every judge decides.",
    )
    max_cost_increase: _Percent | None = _input(
        None,
        "By how much the agents of a suite may cost more than on base, on the same tests: a "
        "percentage, such as 20%.",
    )
    max_latency_increase: _Percent | None = _input(
        None,
        "By how much longer than on base the agents of a suite may take for a test: a percentage, "
        "such as 30%.",
    )
    on_inconclusive: Literal["fail", "neutral", "pass"] = _input(
        "fail", "Result of an inconclusive run: fail (exit code 3), neutral or pass."
    )
    comment: Literal["always", "changes", "failures", "off"] = _input(
        "always",
        "When to comment: always, changes (a verdict differs from base), "
        "failures (the outcome is not passed) or off.",
    )
    comment_id: _CommentId = _input(
        "agentevals", "Distinguishes the comments of several gates on one pull request."
    )
    comment_template: _Path | None = _input(
        None,
        "A Jinja file that extends the action's comment template. On a pull request, the base's "
        "version is used.",
    )
    check_run: _Boolean = _input(True, "Write a check run: true or false.")
    check_name: _Line = _input(
        "agentevals", "Name of the check run; keep it stable for branch protection."
    )
    annotation_limit: _Integer = _input(
        100, "Maximum number of annotations in total.", ge=0, le=10000
    )
    report_dir: _OwnFolder = _input(
        "agentevals-report", "Folder of the report files, relative to the workspace."
    )
    upload_report: _Boolean = _input(
        True,
        "Upload the report page as an artifact that opens in the browser, and link to it: "
        "true or false.",
    )
    working_directory: _Path = _input(
        ".", "Suites are searched below it; paths in reports stay relative to the repository."
    )
    allow_unsafe_pull_request_target: _Boolean = _input(
        False,
        "Run on pull_request_target, where code of strangers can read secrets: true or false.",
    )
    baseline: Literal["auto", "branch", "file", "rerun", "none"] = _input(
        "auto",
        "Source of the base's results: auto (stored, otherwise rerun), branch (stored on the data "
        "branch), file (stored in the base's tree), rerun (run it now) or none.",
    )
    baseline_branch: _Branch = _input(
        "agentevals-data",
        "The branch that keeps results of the default branch, for auto and branch.",
    )
    baseline_file: _Path | None = _input(
        None,
        "A committed `results.jsonl` in the base's tree, for auto and file.",
    )
    baseline_max_age: _Number = _input(
        14.0, "Days after which results of the base are marked as stale.", ge=0, le=3650
    )
    confirm: _Integer = _input(
        6,
        "Maximum number of fresh samples for each test whose verdict dropped or whose gate failed; "
        "0 lets one sample decide.",
        ge=0,
        le=MAX_SAMPLES,
    )
    alpha: _Number = _input(
        0.05,
        "Accepted probability of a false regression for a whole pull request, 0 to 1.",
        gt=0,
        lt=1,
    )
    accept_label: _Line = _input(
        "agentevals:accept",
        "Label that accepts a pull request's regressions, not its failed gates.",
    )
    shard: Annotated[Shard, _from_text(_shard)] | None = _input(
        None, "Run a part of the tests, i/n: mode merge makes one outcome of all parts."
    )

    @model_validator(mode="before")
    @classmethod
    def _use_the_cache(cls, given: dict[str, Any]) -> dict[str, Any]:
        return {"cache": "on", **given} if "cache-dir" in given else given

    @field_validator("report_dir")
    @classmethod
    def _is_apart(cls, folder: str, info: ValidationInfo) -> str:
        cache = info.data.get("cache_dir")
        if cache and (f"{cache}/".startswith(f"{folder}/") or f"{folder}/".startswith(f"{cache}/")):
            raise ValueError(f"write another folder than `{cache}`, the input `cache-dir`")
        return folder

    @field_validator("baseline_file")
    @classmethod
    def _is_given(cls, file: str | None, info: ValidationInfo) -> str | None:
        if file is None and info.data.get("baseline") == "file":
            raise ValueError("name the file for `baseline: file`")
        return file

    @field_validator("shard")
    @classmethod
    def _is_for_mode(cls, shard: Shard | None, info: ValidationInfo) -> Shard | None:
        if shard and (mode := info.data.get("mode", "auto")) != "auto":
            raise ValueError(f"leave it out: `mode: {mode}` runs no shard")
        return shard

    @property
    def output_folders(self) -> tuple[str, ...]:
        """The folders that the action writes, relative to the workspace."""
        stored = self.cache_dir if self.cache in ("read", "on") else None
        return tuple(name for name in (self.report_dir, stored) if name)

    @property
    def watch_rules(self) -> tuple[WatchRule, ...]:
        """The rules of `watch`, which hold from the repository's root and, like `suites`, from the
        working directory."""
        folder = "" if self.working_directory == "." else self.working_directory
        return tuple(replace(rule, folder=folder) for rule in self.watch)

    @classmethod
    def from_environ(cls, environ: Mapping[str, str]) -> Self:
        """Reads `INPUT_<NAME>` of every input; an empty text means the default. InvalidInput holds
        one error for each invalid input."""
        texts = {name: environ.get(f"INPUT_{name.upper()}", "").strip() for name in INPUTS}
        return cls._read({name: text for name, text in texts.items() if text})

    def with_texts(self, texts: Mapping[str, str]) -> Self:
        """These settings, with the inputs in a file (texts by name) that were not given before.
        InvalidInput if they do not fit each other."""
        read = self._read({**texts, "report-dir": self.report_dir})
        added = read.model_fields_set - self.model_fields_set - {"report_dir"}
        return self.model_copy(update={name: getattr(read, name) for name in added})

    @classmethod
    def _read(cls, texts: Mapping[str, str]) -> Self:
        try:
            return cls.model_validate(texts)
        except ValidationError as error:
            errors = [_sentence(details) for details in error.errors(include_url=False)]
        raise InvalidInput(
            f"{len(errors)} {plural(len(errors), 'input is', 'inputs are')} invalid, "
            "nothing was run",
            errors=errors,
        )

    @classmethod
    def for_report(cls, environ: Mapping[str, str]) -> Self:
        """The inputs that state where a run is reported, for a run whose inputs are invalid. If
        such an input is itself invalid, it has its default."""
        accepted: dict[str, str] = {}
        for name in _FOR_REPORT:
            if text := environ.get(f"INPUT_{name.upper()}", "").strip():
                with suppress(ValidationError):
                    cls.model_validate({name: text})
                    accepted[name] = text
        return cls.model_validate(accepted)


def _sentence(error: Mapping[str, Any]) -> str:
    """The error of an input, with the advice of its validator, or the advice for its type."""
    name, value = str(error["loc"][0]).replace("_", "-"), error["input"]
    message = str(error.get("ctx", {}).get("error", ""))
    advice = message or _advice(Settings.model_fields[name.replace("-", "_")], str(value))
    problem = " is missing" if value is None else f": {cut(str(value), _SHOWN)!r} is not valid"
    return f"input `{name}`{problem}; {advice}"


def _advice(field: FieldInfo, value: str) -> str:
    for choice in (field.annotation, *get_args(field.annotation)):  # also of an optional input
        if get_origin(choice) is Literal:
            return _advise_choice(value, get_args(choice))
    if (kind := _kind(field)) == "boolean":
        return "write `true` or `false`"
    low, high, over, under = (
        next((getattr(limit, name) for limit in field.metadata if hasattr(limit, name)), None)
        for name in ("ge", "le", "gt", "lt")
    )
    if over is not None:
        return f"write a number greater than {over:g} and less than {under:g}"
    number = "a whole number" if kind == "integer" else "a number"
    return f"write {number} from {low:.15g} to {high:.15g}"


def _advise_choice(text: str, known: Collection[str]) -> str:
    meant = nearest(text, known)
    start = f"`{meant}`, or " if meant else ""
    return f"write {start}one of {', '.join(f'`{word}`' for word in known)}"


@dataclass(frozen=True)
class Input:
    """One input as `action.yml`, the documentation and the command line describe it; `default` is
    the text that a workflow would write."""

    name: str
    description: str
    default: str
    kind: Kind


def _described(name: str, field: FieldInfo) -> Input:
    extra = field.json_schema_extra
    written = extra.get("written") if isinstance(extra, dict) else None
    return Input(
        name.replace("_", "-"),
        field.description or "",
        str(written) if written is not None else _as_text(field.default),
        _kind(field),
    )


def _as_text(default: object) -> str:
    if default is None or default == ():
        return ""
    if isinstance(default, bool):
        return str(default).lower()
    return f"{default:g}" if isinstance(default, float) else str(default)


def _kind(field: FieldInfo) -> Kind:
    options = [option for option in get_args(field.annotation) if option is not NoneType]
    metadata = (*field.metadata, *getattr(options[0] if options else None, "__metadata__", ()))
    if "path" in metadata:
        return "path"
    plain = getattr(options[0], "__origin__", options[0]) if options else None
    types = (field.annotation, get_origin(field.annotation), plain, get_origin(plain))
    return next((_KINDS[kind] for kind in types if kind in _KINDS), "text")


#: Every input by its name.
INPUTS: Mapping[str, Input] = {
    described.name: described
    for described in (_described(*field) for field in Settings.model_fields.items())
}
