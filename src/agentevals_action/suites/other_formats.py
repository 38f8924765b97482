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
from agentevals_action.suites.documents.diagnostics import Unreadable
from agentevals_action.suites.documents.yaml_reader import MAX_BYTES, read_yaml
from agentevals_action.suites.reading import MISSPELLED, words
from agentevals_action.suites.sources import YAML_SUFFIXES
from agentevals_action.system.files.regular_files import read_regular
from agentevals_action.validation.field_errors import nearest
from agentevals_action.validation.file_model import list_fields, list_spellings

_OWN_RUNNER = "https://github.com/org/agentevals-action/blob/main/docs/reference/own-runner.md"
_VALLY, _CLAUDE = "an eval spec of Vally", "a case of Claude's plugin evals"
_AGENTV, _PROMPTFOO = "a suite of AgentV 5", "a configuration of promptfoo"
#: The suite of a case of Claude's plugin evals.
_PLUGIN = "**/.claude-plugin/plugin.json"
#: A file without any of these words is no file of these tools.
_MARKS = (b"stimuli", b"schema_version", b"prompts")
#: Every field of a `case.yaml`: https://code.claude.com/docs/en/plugin-evals
_CASE_FIELDS = words(
    "schema_version name description tags plugins runs expected_outcome execution context graders"
)
_SHARED = {"name", "description", "version", "metadata"}
_OURS = list_spellings(Suite).keys() - _SHARED
_INPUT = frozenset(list_fields(Test)["input"])
#: Fields of AgentV that promptfoo spells in camel case, or does not have.
_OF_AGENTV = {"default_test", "evaluate_options", "derived_metrics", "output_path", "requires"}


def other_format(root: Path, path: str) -> Diagnostic | None:
    """The warning about a file of another tool in the repository at `root`; None for any other
    file."""
    data = _read(root, path)
    if _is_vally(data):
        name = _VALLY
    elif _is_case(root / path, data):
        name = _CLAUDE
    else:
        name = _with_prompts(path, data)
    advice = f"no runner reads it yet; a command of your own can: {_OWN_RUNNER}"
    runners = {_PROMPTFOO: ("promptfoo", path), _CLAUDE: ("claude", _PLUGIN)}
    results, suite = runners.get(name, ("", ""))
    if results:
        entry = f"{{name: {results}, results: {results}, suites: [{json.dumps(suite)}]}}"
        advice = f"to gate it, write `runners: [{entry}]` in {FILE}"
    problem = f"this is {name} and no suite: it is not run"
    return Diagnostic(Location(path), problem, advice) if name else None


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
    items = stimuli if isinstance(stimuli, list) else []
    are_prompts = all(isinstance(stimulus, dict) and "prompt" in stimulus for stimulus in items)
    return bool(items) and are_prompts and not any(nearest(key, _OURS, MISSPELLED) for key in data)


def _is_case(file: Path, data: Mapping[str, Any]) -> bool:
    execution = data.get("execution")
    has_prompt = isinstance(execution, dict) and "prompt" in execution
    return (
        file.stem.lower() == "case"
        and {"schema_version", "name"} <= data.keys() <= _CASE_FIELDS
        and (has_prompt or (file.parent / "prompt.md").is_file())
    )


def _with_prompts(path: str, data: Mapping[str, Any]) -> str:
    """What a file with `prompts` is, empty if it is of no other tool:
    https://www.promptfoo.dev/docs/configuration/reference, or the schema of
    https://github.com/EntityProcess/agentv, which refuses `input`."""
    has_providers = bool(data.get("providers") or data.get("targets"))
    if not data.get("prompts"):
        return ""
    if PurePosixPath(path).name.startswith("promptfooconfig") and has_providers:
        return _PROMPTFOO
    tests = data.get("tests")
    items = tests if isinstance(tests, list) else [tests]
    objects = [test for test in items if isinstance(test, dict)]
    others = [test for test in items if not isinstance(test, dict)]
    if (
        not items
        or not (objects or has_providers)
        or any("vars" not in test or test.keys() & _INPUT for test in objects)
        or not all(isinstance(test, str) and test.startswith("file://") for test in others)
        or (data.keys() & _OURS) - {"tests", "assert", "workspace"}
    ):
        return ""
    lists = [test.get("assert") for test in (data, *objects)]
    asserts = [entry for entries in lists if isinstance(entries, list) for entry in entries]
    has_texts = any(isinstance(entry, str) for entry in asserts)
    has_ids = any("id" in test for test in objects)
    return _AGENTV if has_ids or has_texts or data.keys() & _OF_AGENTV else _PROMPTFOO
