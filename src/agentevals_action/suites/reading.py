"""The context in which the data of one file is validated: folder, positions, and what is reported.

No other module knows the dialects: which fields are earlier spellings, which are unsupported, and
which may be anywhere."""

from collections.abc import Collection, Mapping, Sequence
from contextlib import suppress
from dataclasses import dataclass, field, replace
from functools import cache
from pathlib import Path
from typing import Any, Self, TypeVar

from pydantic import ValidationError

from agentevals_action.evaluators import EVALUATORS
from agentevals_action.formatting import join_choices
from agentevals_action.model.diagnostic import Location, NamedFile
from agentevals_action.model.evaluator import Evaluator, Origin
from agentevals_action.model.messages import is_message
from agentevals_action.model.skill import Fixture
from agentevals_action.model.suite import Suite, SuiteExecution, Test, TestExecution
from agentevals_action.model.workspace import Hook, Hooks, ResettingHook, Workspace
from agentevals_action.settings import INPUTS
from agentevals_action.suites.documents.diagnostics import DiagnosticCollector, Unreadable
from agentevals_action.suites.documents.positions import Document, Positions
from agentevals_action.suites.documents.yaml_reader import read_yaml_object
from agentevals_action.targets.registry import PROVIDERS
from agentevals_action.validation.field_errors import (
    FieldError,
    did_you_mean,
    field_errors,
    nearest,
)
from agentevals_action.validation.file_model import (
    FileContext,
    FileModel,
    Steps,
    list_fields,
    list_spellings,
)

AModel = TypeVar("AModel", bound=FileModel)
#: What programs import, by their files, the words of their commands, and the folder they run in.
Imports = dict[tuple[object, ...], Mapping[Path, Sequence[Path]]]


def words(text: str) -> frozenset[str]:
    """The words of a text, as a set of names."""
    return frozenset(text.split())


#: Fields that contain evaluators, in every dialect: of the suite, of tests, and of `execution`.
EVALUATOR_LISTS = ("assert", "assertions", "evaluators")
#: Features of AgentV that a code judge does not get as a part of its `config`.
_NEVER_PASSED = (*EVALUATOR_LISTS, "include", "preprocessors", "transform")

#: Spellings of the earlier format: accepted, with one warning for each in a file.
EARLIER = frozenset(
    ("evalcases", "eval_cases", "expected_outcome", "input_messages", "expected_messages")
)

#: The fields that nothing reads, wherever they are: remarks for readers, and settings of AgentV
#: that concern its logs, its speed, or its own catalogue of suites.
HARMLESS = words(
    "$schema id name title description note comment author license tags category "
    "difficulty owner governance requires suite start_time end_time workers cache verbose "
    "fail_on_error failOnError stream_log log_dir log_directory log_format "
    "log_output_format keep_temp_files subagent_mode_allowed retry_initial_delay_ms "
    "retry_max_delay_ms retry_backoff_factor retry_status_codes"
)
#: `HARMLESS` and fields for data of the user's own; any field that begins with `x-` is exempt, too.
EXEMPT = HARMLESS | {"metadata", "config"}

#: Where the documentation lists what is not supported.
DOCUMENTATION = "https://github.com/org/agentevals-action/blob/main/docs/compatibility.md"
_OF_TESTS = words(
    "threshold repeat trials turns mode aggregation on_turn_failure window_size imports "
    "include depends_on on_dependency_failure default_test preprocessors environment "
    "provider providers prompts options assert_scoring_function run model runs early_exit "
    "output_path env on_run_complete policy defaults targets budget_usd budgetUsd "
    "total_budget_usd scenarios evaluate_options extensions derived_metrics "
    "provider_prompt_map providerPromptMap nunjucks_filters graders experiment"
)
#: Features of AgentV that could change a verdict and are not supported, by the object that has
#: them.
UNSUPPORTED: Mapping[str, frozenset[str]] = {
    **dict.fromkeys(("suite", "test", "`execution`"), _OF_TESTS),
    **{
        label: words(fields)
        for label, fields in {
            "expectation": "input output",
            "evaluator": "include preprocessors transform threshold model temperature max_steps",
            "llm_judge": "value",
            "workspace": "path pool static static_path docker env setup_script teardown_script",
            "repository": "source type checkout clone resolver ancestor sparse",
            "target": "fallback_targets response workspace_template temperature max_output_tokens "
            "thinking_budget model_reasoning_effort max_budget_usd max_turns bypass_permissions "
            "variant subprovider tools thinking system_prompt fixtures execution_traces eval_path",
        }.items()
    },
}
#: The objects in which every unknown field is an error: with a misspelled `watch`, nothing runs and
#: the check is green; with a misspelled `suites`, an entry puts tests of every suite in quarantine.
STRICT = ("configuration", "quarantine", "runner", "`pass`")
#: The objects that may have data of other programs: an unknown field is a warning if its name
#: resembles nothing that could have an effect. Elsewhere it was meant to have one: `not: true`.
_WITH_OTHER_DATA = (
    *("suite", "test", "`execution`", "message", "block", "tool call", "`function`"),
    *("workspace", "`hooks`", "hook", "repository"),
)
#: What a field of another format is called here.
_MEANT = {("test", "prompt"): "input"}
_OF_A_SUITE = (Suite, Test, SuiteExecution, TestExecution, Workspace, Hooks, Hook, ResettingHook)
#: Similarity from which on an unknown field is taken for a misspelled one.
MISSPELLED = 0.75


@dataclass(frozen=True)
class FileReader(FileContext):
    """Validates the data of one file: its folder, its positions, and the collector of its
    diagnostics.

    `looked_up` are the paths that were looked up for the suite: a change that deletes a file
    affects the suites that name it. `contents` are the files that were read, `trees` the folders
    that were searched (many tests name the same), `known_imports` the imports of the programs.
    `reported` are fields that are not missing, by the location of their object: they have an error,
    or a misspelled field was meant for them. `origin` is that of the file's evaluators. `git_files`
    are the paths that git does not ignore, None outside of a repository."""

    positions: Positions = field(default_factory=lambda: Positions(""))
    diagnostics: DiagnosticCollector = field(default_factory=DiagnosticCollector)
    looked_up: dict[str, None] = field(default_factory=dict)
    contents: dict[Path, bytes] = field(default_factory=dict)
    trees: dict[Path, Sequence[Path]] = field(default_factory=dict)
    known_imports: Imports = field(default_factory=dict)
    reported: dict[Location, set[str]] = field(default_factory=dict)
    origin: Origin = "test"
    git_files: Collection[str] | None = None

    def of(self, document: Document, folder: Path) -> Self:
        """The reader of another file of the same suite, in a folder."""
        return replace(self, path=folder, positions=document.positions)

    def is_known(self, path: str) -> bool:
        """Whether git does not ignore a file of the repository."""
        return self.git_files is None or path in self.git_files

    def read(self, path: Path, name: str, limit: int) -> bytes:
        """The contents of a file, read once."""
        if path not in self.contents:
            self.contents[path] = super().read(path, name, limit)
        return self.contents[path]

    def tree(self, path: Path) -> Sequence[Path]:
        """The files below a folder, searched once: many tests name the same template."""
        if path not in self.trees:
            self.trees[path] = super().tree(path)
        return self.trees[path]

    def imports(
        self, files: Sequence[Path], words: Sequence[str], start: Path
    ) -> Mapping[Path, Sequence[Path]]:
        """The imports of a program, searched once: many suites name the same program."""
        key = (tuple(files), tuple(words), start)
        if key not in self.known_imports:
            self.known_imports[key] = super().imports(files, words, start)
        return self.known_imports[key]

    def resolve(self, text: str) -> Path:
        """The path, recorded."""
        path = super().resolve(text)
        self.looked_up[self.relative(path)] = None
        return path

    def locate(self, container: Any, key: str | int = "") -> Location:
        """Where an object begins, or its value of a key."""
        return self.positions.of(container) if key == "" else self.positions.value(container, key)

    def computed(self, data: dict[str, Any]) -> Mapping[str, Any]:
        """The computed fields: where an object and its targets are, its folder, and its origin."""
        several = data.get("targets")
        locations = [self.positions.value(data, "target")] if "target" in data else []
        if isinstance(several, list):
            locations += [self.positions.value(several, index) for index in range(len(several))]
        return {
            "location": self.positions.of(data),
            "home": self.path,
            "origin": self.origin,
            "target_location": locations[0] if locations else None,
            "target_locations": tuple(locations),
        }

    def error(self, location: Location, problem: str, advice: str = "") -> None:
        """Adds an error."""
        self.diagnostics.error(location, problem, advice)

    def warn(self, location: Location, problem: str, advice: str = "") -> None:
        """Adds a warning."""
        self.diagnostics.warn(location, problem, advice)

    def warn_about(self, found: Any, data: dict[str, Any]) -> None:
        """Adds the `warnings` of a model of this data."""
        model: Any = type(found)
        names = list_spellings(model)
        for name, problem, advice in found.warnings():
            key = next(key for key in data if names.get(key) == name)
            self.warn(self.positions.value(data, key), f"`{key}` {problem}", advice)

    def set_reported(self, data: dict[str, Any], *names: str) -> None:
        """These fields of an object are not missing: there is an error about them already."""
        self.reported.setdefault(self.positions.of(data), set()).update(names)

    def refuse_feature(self, location: Location, name: str) -> None:
        """Adds the error of a feature of AgentV that could change a verdict and is not
        supported."""
        self.error(location, f"{name} of AgentV is not supported", f"see {DOCUMENTATION}")

    def without(self, data: dict[str, Any], *keys: str) -> dict[str, Any]:
        """A copy that lacks some keys, with the same positions."""
        copy = {key: value for key, value in data.items() if key not in keys}
        self.positions.copy(data, copy)
        return copy

    def only(self, data: dict[str, Any], keys: Collection[str]) -> dict[str, Any]:
        """A copy with some of the keys, with the same positions."""
        return self.without(data, *(key for key in data if key not in keys))

    def validate(self, model: type[AModel], data: dict[str, Any], label: str = "") -> AModel | None:
        """The model of `data`, which an error calls by its `label`, or by the model's noun. Errors
        are added, and the data is read without the invalid values; None if it is invalid without
        them, too."""
        try:
            return model.model_validate(data, context=self)
        except ValidationError as error:
            invalid = self._report(error, data, label or model.noun)
        with suppress(ValidationError):
            return model.model_validate(self._without_values(data, invalid), context=self)
        return None

    def read_file(self, text: str, model: type[AModel]) -> AModel | None:
        """The model of the object in the YAML file that a text names, with this file; None, with
        the errors, if it is invalid. ValueError if there is no such file."""
        try:
            path = self.file(text)
            advice = f"write an object with {join_choices(list(list_fields(model)))}"
            document = read_yaml_object(path, self.relative(path), model.noun, advice)
        except Unreadable as error:
            self.diagnostics.unreadable(error)
            return None
        except ValueError as error:
            advice = f"name a YAML file of the repository, or write the {model.noun} here"
            raise ValueError(f"{error}; {advice}") from None
        model_of_file = self.of(document, path.parent).validate(model, document.data)
        file = NamedFile(self.relative(path), model.noun)
        return model_of_file and model_of_file.model_copy(update={"files": (file,)})

    def _report(self, failure: ValidationError, data: dict[str, Any], label: str) -> set[Steps]:
        """Adds the errors about an object, which an error calls by its label, or by the label of
        the innermost object inside it that has one. Returns the steps of the invalid values."""
        invalid = set()
        for error in field_errors(failure, data):
            invalid.add(error.steps)
            location = self.positions.locate(data, error.steps[: -1 if error.is_missing else None])
            reported = self.reported.get(location, ())
            is_about_all = bool(reported) and isinstance(error.value, dict)
            if not (error.steps[-1] in reported if error.is_missing else is_about_all):
                inner, name = _innermost(error, data)
                self.error(location, *inner.sentences(name or label))
        return invalid

    def _without_values(self, data: dict[str, Any], invalid: Collection[Steps]) -> dict[str, Any]:
        """A copy without the values of these steps: without an evaluator of a list, the part of an
        object, or the complete field."""
        kept = self.without(data)
        for name in {str(steps[0]) for steps in invalid if steps} & data.keys():
            value = data[name]
            parts = {steps[1] if steps[1:] else "" for steps in invalid if steps[:1] == (name,)}
            if isinstance(value, dict) and "" not in parts:
                kept[name] = self.without(value, *map(str, parts))
            elif isinstance(value, list) and "" not in parts and name in EVALUATOR_LISTS:
                kept[name] = [item for index, item in enumerate(value) if index not in parts]
            else:
                del kept[name]
        return kept

    def check_fields(self, model: Any, data: dict[str, Any]) -> dict[str, Any]:
        """The fields of an object that a model reads, by their canonical names.

        Errors are an unknown field, because it was meant to have an effect, and two spellings of
        one field with different values. In an object that may have data of other programs, an
        unknown field that is neither unsupported nor misplaced, and resembles no known one, is a
        warning."""
        names, label = list_spellings(model), model.noun or model.__name__.lower()
        if all(names.get(key) == key for key in data):
            return data
        read, passed = dict[str, str](), dict[str, Any]()
        for key, value in data.items():
            name = names.get(key)
            if name is None:
                if getattr(model, "passes_fields", False) and _is_passed(key, names):
                    passed[key] = value
                else:
                    self._report_unknown(model, data, key, label)
                continue
            if key != name and key in EARLIER:
                problem = f"`{key}` is the earlier spelling of `{name}`"
                self.warn(self.positions.key(data, key), problem, f"write `{name}`")
            first = read.setdefault(name, key)
            if first != key and _long_form(name, data[first]) != _long_form(name, value):
                problem = f"`{first}` and `{key}` are the same field and differ"
                self.error(self.positions.key(data, key), problem, "keep one of them")
        kept = {key: data[key] for key in read.values()}
        if passed and isinstance(config := kept.get("config") or {}, dict):
            kept["config"] = passed | config
        self.positions.copy(data, kept)
        return kept

    def _report_unknown(self, model: Any, data: Any, key: str, label: str) -> None:
        location, names = self.positions.key(data, key), list_spellings(model)
        problem = f"the field `{key}` of this {label} is unknown".replace("this `", "`")
        kind, owners = getattr(model, "type", ""), _owners(label)
        unsupported = {*UNSUPPORTED.get(label, ()), *UNSUPPORTED.get(kind, ())}
        if label == "configuration" and key.replace("_", "-") in INPUTS:
            advice = "write it in the workflow, under `with:`, or as an option of the command"
            self.error(location, f"`{key}` is an input, and this file cannot set it", advice)
        elif label in STRICT:
            if key != "$schema":
                advice = did_you_mean(key, names, "remove it")
                self.error(location, f"the field `{key}` is unknown", advice)
                if meant := nearest(key, names):
                    self.set_reported(data, names[meant])
        elif key in unsupported:
            self.refuse_feature(location, f"`{key}`")
        elif is_exempt(key) or (model is Evaluator and key in owners):  # its type is not known
            return
        elif key in owners:
            places = [noun for noun in owners[key] if noun != label]
            where = join_choices(places).replace("`evaluator`", "an evaluator (`assert`)")
            advice = f"write it in {where}" if places else "remove it"
            self.error(location, problem, advice)
        elif meant := _MEANT.get((label, key)) or next(
            # `timeout` for `timeout_seconds`
            (name for name in (*names.values(), *owners) if name.startswith(f"{key}_")),
            nearest(key, (*names, *unsupported, *owners), MISSPELLED),
        ):
            self.error(location, problem, f"did you mean `{meant}`?")
            self.set_reported(data, names.get(meant, meant))
        elif label in _WITH_OTHER_DATA:
            advice = "remove it, or write it in `metadata`, or with `x-` in front of its name"
            self.warn(location, f"{problem} and has no effect", advice)
        else:
            self.error(location, problem, f"write one of {join_choices(sorted({*names.values()}))}")
            # Any of the fields that are missing may be meant.
            self.set_reported(data, *names.values())


@dataclass(frozen=True)
class WrittenTest:
    """A test as written, its location, and the reader of its file. The texts of a test that
    `is_literal` name no variables; `fixtures` are the files that it needs."""

    data: Any
    location: Location
    reader: FileReader
    fixtures: tuple[Fixture, ...] = ()
    is_literal: bool = False


def _innermost(error: FieldError, data: Any) -> tuple[FieldError, str]:
    """An error with steps from the innermost evaluator or workspace around it, and the label of
    this object; with all steps and an empty label if there is none."""
    start, label = 0, ""
    for index, step in enumerate(error.steps[: -1 if error.is_missing else None]):
        data = data[step]
        if index and isinstance(step, int) and error.steps[index - 1] in EVALUATOR_LISTS:
            is_named = isinstance(data, dict) and "type" in data
            start, label = index + 1, f"`{data['type']}`" if is_named else Evaluator.noun
        elif step == "workspace" and isinstance(data, dict):
            start, label = index + 1, Workspace.noun
    return replace(error, steps=error.steps[start:]), label


@cache
def _owners(label: str) -> Mapping[str, Sequence[str]]:
    """The nouns of the objects that have a field, by the name of the field. The objects are those
    like the labelled one: of a suite, all types of evaluators, or all providers."""
    models: Sequence[type[FileModel]] = ()
    if label == "evaluator":
        models = tuple(EVALUATORS.values())
    elif label == "target":
        models = tuple(PROVIDERS.values())
    elif any(label == model.noun for model in _OF_A_SUITE):
        models = (*_OF_A_SUITE, Evaluator)
    owners: dict[str, dict[str, None]] = {}
    for model in models:
        for name in list_spellings(model):
            owners.setdefault(name, {})[model.noun.strip("`")] = None
    return {name: tuple(nouns) for name, nouns in owners.items()}


def is_exempt(key: str) -> bool:
    """Whether a field that nothing reads may stand anywhere."""
    return key in EXEMPT or key.startswith("x-")


def _is_passed(key: str, names: Collection[str]) -> bool:
    """Whether an unknown field of a code judge is passed on in its `config`, as AgentV does. A
    field that resembles a known one is not: `requird` would silently remove a gate."""
    is_free = key not in _NEVER_PASSED and not is_exempt(key)
    return is_free and nearest(key, names, MISSPELLED) is None


def _long_form(name: str, value: Any) -> Any:
    """The long form of a value, so that two spellings can be compared."""
    if name == "isolation" and isinstance(value, str):
        return "shared" if value in ("shared", "suite") else "per_test"
    if name not in ("input", "expected_output") or isinstance(value, list):
        return value
    if isinstance(value, Mapping) and is_message(value):
        return [value]
    content = value if isinstance(value, str) else [{"type": "json", "value": value}]
    return [{"role": "user" if name == "input" else "assistant", "content": content}]


def tests_key(data: Mapping[str, Any]) -> str | None:
    """The key of a suite's tests as its author spelled it."""
    return next((key for key in data if key in list_fields(Suite)["tests"]), None)
