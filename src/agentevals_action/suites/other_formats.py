"""Files of other tools that the patterns of suites match: they are named, and are not suites.

A file is another tool's by that tool's own marks, and only without a field that is ours alone: a
suite with a mistake stays a suite with an error."""

import json
from collections.abc import Mapping
from pathlib import Path, PurePosixPath
from typing import Any

from agentevals_action.model.diagnostic import Diagnostic, Location
from agentevals_action.model.quarantine import FILE
from agentevals_action.model.suite import Suite, Test
from agentevals_action.model.validation.field_errors import nearest
from agentevals_action.model.validation.file_model import fields_of, spellings_of
from agentevals_action.suites.diagnostics import Unreadable
from agentevals_action.suites.reading import MISSPELLED, words
from agentevals_action.suites.sources import YAML_SUFFIXES
from agentevals_action.suites.yaml_reader import MAX_BYTES, read_yaml
from agentevals_action.system.files.regular_files import read_regular

_OWN_RUNNER = "https://github.com/org/agentevals-action/blob/main/docs/reference/own-runner.md"
#: What the files are, by the runner that reads them.
_READ_BY = {"promptfoo": "a configuration of promptfoo", "agentv": "a suite of AgentV 5"}
_VALLY, _CLAUDE = "an eval spec of Vally", "a case of Claude's plugin evals"
#: A file without any of these words is none of them.
_MARKS = (b"stimuli", b"schema_version", b"prompts")
#: Every field of a `case.yaml`: https://code.claude.com/docs/en/plugin-evals
_CASE_FIELDS = words(
    "schema_version name description tags plugins runs expected_outcome execution context graders"
)
_SHARED = {"name", "description", "version", "metadata"}
_OURS = spellings_of(Suite).keys() - _SHARED
_INPUT = frozenset(fields_of(Test)["input"])
#: Fields of AgentV that promptfoo spells in camel case, or does not have.
_OF_AGENTV = {"default_test", "evaluate_options", "derived_metrics", "output_path", "requires"}


def other_format(root: Path, path: str) -> Diagnostic | None:
    """The warning about a file of another tool in the repository at `root`; None of any other
    file."""
    data = _read(root, path)
    results = _runner_of(path, data)
    if results:
        entry = f"{{name: {results}, results: {results}, suites: [{json.dumps(path)}]}}"
        problem, advice = _READ_BY[results], f"to gate it, write `runners: [{entry}]` in {FILE}"
    elif _is_vally(data) or _is_case(root / path, data):
        problem = _VALLY if "stimuli" in data else _CLAUDE
        advice = f"no runner reads it yet; a command of your own can: {_OWN_RUNNER}"
    else:
        return None
    return Diagnostic(Location(path), f"this is {problem} and no suite: it is not run", advice)


def _read(root: Path, path: str) -> Mapping[str, Any]:
    """The object in a file that has one of the marks; an empty one in place of anything else."""
    file = root / path
    if not path.lower().endswith(YAML_SUFFIXES) or not file.resolve().is_relative_to(root):
        return {}
    try:
        content = read_regular(file, MAX_BYTES + 1)
        if len(content) > MAX_BYTES or not any(mark in content for mark in _MARKS):
            return {}
        data = read_yaml(content, path).data
    except (OSError, Unreadable):  # its loader says so
        return {}
    return data if isinstance(data, dict) else {}


def _is_vally(data: Mapping[str, Any]) -> bool:
    """https://microsoft.github.io/vally/reference/eval-spec/"""
    stimuli = data.get("stimuli")
    is_list = isinstance(stimuli, list) and bool(stimuli)
    return (
        is_list
        and all(isinstance(each, dict) and "prompt" in each for each in stimuli or ())
        and not any(nearest(key, _OURS, MISSPELLED) for key in data)
    )


def _is_case(file: Path, data: Mapping[str, Any]) -> bool:
    execution = data.get("execution")
    has_prompt = isinstance(execution, dict) and "prompt" in execution
    return (
        file.stem.lower() == "case"
        and {"schema_version", "name"} <= data.keys() <= _CASE_FIELDS
        and (has_prompt or (file.parent / "prompt.md").is_file())
    )


def _runner_of(path: str, data: Mapping[str, Any]) -> str:
    """The runner of a file with `prompts`: https://www.promptfoo.dev/docs/configuration/reference,
    or the schema of https://github.com/EntityProcess/agentv, which rejects `input`."""
    has_providers = bool(data.get("providers") or data.get("targets"))
    if not data.get("prompts"):
        return ""
    if PurePosixPath(path).name.startswith("promptfooconfig") and has_providers:
        return "promptfoo"
    tests = data.get("tests")
    items = tests if isinstance(tests, list) else [tests]
    objects = [item for item in items if isinstance(item, dict)]
    others = [item for item in items if not isinstance(item, dict)]
    if (
        not items
        or not (objects or has_providers)
        or any("vars" not in item or item.keys() & _INPUT for item in objects)
        or not all(isinstance(item, str) and item.startswith("file://") for item in others)
        or (data.keys() & _OURS) - {"tests", "assert", "workspace"}
    ):
        return ""
    lists = [item.get("assert") for item in (data, *objects)]
    has_texts = any(isinstance(each, str) for own in lists if isinstance(own, list) for each in own)
    has_ids = any("id" in item for item in objects)
    return "agentv" if has_ids or has_texts or data.keys() & _OF_AGENTV else "promptfoo"
