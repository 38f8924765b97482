"""Descriptions of what a result depends on, as JSON data, and their digests: the fingerprints. The
same commit has the same descriptions in every folder."""

import os
from collections.abc import Callable, Collection, Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from functools import cached_property
from pathlib import Path, PurePosixPath
from typing import Any

from agentevals_action.errors import AttemptError
from agentevals_action.execution.python_tests import PythonTests, folder_of_tests
from agentevals_action.model.files import NamedFile
from agentevals_action.model.messages import Message
from agentevals_action.model.path_patterns import WatchRule, names_files, rule_for
from agentevals_action.model.result import Fingerprint
from agentevals_action.model.suite import Evaluator, Suite, Test
from agentevals_action.model.target import Target
from agentevals_action.model.workspace import Workspace
from agentevals_action.targets.calls.description import (
    FileDigests,
    describe_message,
    digest,
    variable_values,
)

#: Fields of a target that name it and do not define it.
_NAMING = ("name", "extends")
#: Roles of the files that a workspace is made of.
_WORKSPACE_ROLES = ("workspace template", "workspace repository")
#: Fields of a runner that do not change its answers.
NOT_OF_AGENT = {"name", "suites", "required", "location"}
#: Roles of the files that ask and grade in a suite of a runner of others.
_OF_SUITE = ("suite", "named file")
#: The role of the tracked files that the command of a runner names.
_OF_RUNNER = "runner"
#: Stands for the content of a watched file in a question.
_WATCHED = "the agent's own"


@dataclass(frozen=True)
class TrackedFiles:
    """The ids of the contents of the tracked files of a tree, by path, and those of them that no
    suite covers and that are not known to be something else."""

    ids: Mapping[str, str] = field(default_factory=dict)
    uncovered: Collection[str] = ()

    @cached_property
    def described(self) -> str:
        """The digest of the uncovered files, which many suites share."""
        return _digest([[path, self.ids[path]] for path in sorted(self.uncovered)])

    def describe_without(self, rules: Sequence[WatchRule]) -> str:
        """The same without the files that rules exclude."""
        if not rules:
            return self.described
        kept = (path for path in self.uncovered if not any(rule.covers(path) for rule in rules))
        return TrackedFiles(self.ids, tuple(kept)).described


class Fingerprints:
    """The fingerprints of one run. `variables` returns what `${{ }}` in targets may name, for a
    repository root and a suite's folder. `tracked` are the files of each tree: those that `watch`
    matches are part of the agent; without rules that name files, those that no suite covers.
    `files` are the files that were read."""

    def __init__(
        self,
        watch: Sequence[WatchRule] = (),
        variables: Callable[[Path, Path], Mapping[str, str]] = lambda _root, _folder: {},
        tracked: Mapping[Path, TrackedFiles] | None = None,
        files: FileDigests | None = None,
    ) -> None:
        self._watch, self._variables, self._tracked = tuple(watch), variables, tracked or {}
        self._files = files or FileDigests()
        self._suites: dict[tuple[Path, str], SuiteDescription] = {}

    def with_rules(self, watch: Sequence[WatchRule]) -> "Fingerprints":
        """The fingerprints of the same trees by other rules of `watch`."""
        if tuple(watch) == self._watch:
            return self
        return Fingerprints(watch, self._variables, self._tracked, self._files)

    def of(self, suite: Suite, test: Test) -> Fingerprint:
        """Question, grading and agent of one test."""
        return self.describe(suite).fingerprint(test)

    def ask_same_service(self, on_head: Suite, head: Test, on_base: Suite, base: Test) -> bool:
        """Whether a test asks a service that runs already the same on both sides: base's result
        would be another one of head."""
        target = on_base.agent_of(base)
        if target is None or not target.is_shared:
            return False
        sides = (self.describe(on_head).agent(head), self.describe(on_base).agent(base))
        now, before = ((side["system"], side["target"]) for side in sides)
        return bool(now == before)

    def describe(self, suite: Suite) -> "SuiteDescription":
        """The description of a suite: the same for all parts of one."""
        key = suite.root, suite.path
        if key not in self._suites:
            try:
                variables = self._variables(suite.root, suite.folder)
            except AttemptError:  # reported by the call of the target
                variables = {}
            tracked = self._tracked.get(suite.root, TrackedFiles())
            self._suites[key] = SuiteDescription(
                suite, self._watch, variables, tracked, self._files
            )
        return self._suites[key]


class SuiteDescription:
    """Describes the tests of one suite and their parts."""

    def __init__(
        self,
        suite: Suite,
        watch: Sequence[WatchRule],
        variables: Mapping[str, str],
        tracked: TrackedFiles,
        files: FileDigests,
    ) -> None:
        self._suite, self._variables, self._tracked, self._files = suite, variables, tracked, files
        self._watch = [rule for rule in watch if rule.affects(suite.path)]
        self._fingerprints: dict[str, Fingerprint] = {}
        self._targets: dict[str, str] = {}
        #: Those that the suite declares for all its tests.
        self._evaluators: dict[tuple[object, ...], Mapping[str, Any]] = {}

    def read(self) -> None:
        """Reads all files of the suite, before a program can change them."""
        if self._suite.runner:
            _ = self.of_runner, self.graders, self._python_tests  # computed once
            return
        for file in self._suite.files:
            self._content(file.path)
        for test in self._suite.tests:
            self.fingerprint(test)

    def fingerprint(self, test: Test) -> Fingerprint:
        """The digests of a test, which are computed once."""
        if test.id not in self._fingerprints:
            self._fingerprints[test.id] = Fingerprint(
                question=_digest(self.question(test)),
                grading=_digest(self.grading(test)),
                agent=_digest(self.agent(test)),
            )
        return self._fingerprints[test.id]

    @cached_property
    def of_runner(self) -> tuple[str, str]:
        """The digests of a suite that a runner of others runs: of its file and the files that it
        names, and of all that its results depend on, which is the agent."""
        every = sorted(file.path for file in self._suite.files)
        runner = self._suite.runner
        return (
            _digest([self._content(path) for path in self.files_of_runner]),
            _digest(
                [
                    runner.model_dump(exclude=NOT_OF_AGENT) if runner else None,
                    [[path, self._tracked.ids.get(path) or self._content(path)] for path in every],
                    self._watched_files,
                ]
            ),
        )

    @property
    def files_of_runner(self) -> Sequence[str]:
        """The files that ask and grade in a suite that a runner of others runs: its own file, too,
        if a rule for the agent's code (`*.py`) matches it."""
        own = {file.path for file in self._suite.files if file.role in _OF_SUITE}
        return sorted(
            path for path in own if path == self._suite.path or not self._is_watched(path)
        )

    @cached_property
    def graders(self) -> Mapping[str, str]:
        """The contents, by path, of the files that the command of a runner names, which grade."""
        named = sorted(file.path for file in self._suite.files if file.role == _OF_RUNNER)
        return {path: self._content(path) for path in named if not self._is_watched(path)}

    def of_function(self, test: str) -> str | None:
        """The digest of what a test of pytest asks and how it grades, by its id; None if that
        cannot be determined."""
        source = self._python_tests and self._python_tests.source_of(test)
        return _digest(source) if source else None

    @cached_property
    def _python_tests(self) -> PythonTests | None:
        """The tests of a suite of Python. A module in their folder that they import belongs to them
        if the agent is known to be elsewhere; any other is the agent."""
        suite, folder = self._suite, folder_of_tests(self._suite.path)
        if not suite.path.endswith(".py"):
            return None
        imported = [file.path for file in suite.files if file.role == "import"]
        is_known = not all(rule.excludes for rule in self._watch)
        is_known = is_known or not all(path.startswith(folder or "") for path in imported)

        def is_helper(file: Path) -> bool:
            if not file.resolve().is_relative_to(suite.root):
                return False
            path = self._relative(file)
            is_beside = is_known and folder is not None and path.startswith(folder)
            return (is_beside or file.name == "conftest.py") and not self._is_watched(path)

        def content(path: str) -> str | None:
            return None if self._is_watched(path) else self._content(path)

        data = [file.path for file in suite.files]
        return PythonTests(suite.root, suite.path, data, is_helper, content)

    def question(self, test: Test) -> Any:
        """The messages and, where there is a workspace, what makes its folder before the agent
        runs. Hooks that run after the agent change no answer."""
        messages = [self._message(message, hide_watched=True) for message in _asked(test)]
        if test.workspace is None:
            return messages
        return {"messages": messages, **self._workspace(test.workspace)}

    def grading(self, test: Test) -> Any:
        """What scores an answer."""
        agent = self._suite.agent_of(test)
        evaluators = [self._shared_evaluator(evaluator, agent) for evaluator in test.evaluators]
        return {**self.references(test), "evaluators": evaluators}

    def agent(self, test: Test) -> Any:
        """What answers: the target, the system messages, and the agent's own files."""
        system = [message for message in test.input if message.role == "system"]
        return {
            "system": [self._message(message) for message in system],
            "watched": self._watched_files,
            "target": self.target_digest(self._suite.agent_of(test)),
        }

    def question_files(self, test: Test) -> tuple[str, ...]:
        """The files whose contents are part of the question, relative to the repository."""
        blocks = (block for message in _asked(test) for block in message.blocks)
        paths = [self._relative(block.path) for block in blocks if block.path]
        if test.workspace:
            paths += _files_before(test.workspace)
        return tuple(path for path in dict.fromkeys(paths) if not self._is_watched(path))

    def references(self, test: Test) -> dict[str, Any]:
        """What evaluators compare an answer with, by field of the test."""
        return {
            "expected_output": [self._message(message) for message in test.expected_output],
            "criteria": test.criteria,
            "note": test.note,
        }

    def evaluator(self, evaluator: Evaluator, agent: Target | None) -> dict[str, Any]:
        """An evaluator. The name counts, because it identifies gates. Of a file that its fields
        name the content counts and not the path; of files next to it the name counts too."""
        files = self._named_contents(file for file in evaluator.files if not file.importers)
        imported = [file for file in self._of_program(evaluator.files) if file.importers]
        named: set[str] = set()
        return {
            "name": evaluator.name,
            "type": evaluator.type,
            "weight": evaluator.weight,
            "threshold": evaluator.gate_threshold,
            "negate": evaluator.negate,
            "config": evaluator.config,
            "options": _with_contents(evaluator.own_fields(), dict(files), named),
            "beside": [file for file in files if file[0] not in named],
            "imports": self._named_contents(imported),
            "judge": self.target_digest(self._suite.judge_of(evaluator, agent)),
            "evaluators": [self.evaluator(inner, agent) for inner in evaluator.children()],
        }

    def target(self, target: Target) -> dict[str, Any]:
        """The definition of a target with the values of its variables: another model in a variable
        is another agent, another key is not."""
        fields = {name: value for name, value in target.definition.items() if name not in _NAMING}
        return {"definition": fields, "variables": variable_values(fields, self._variables)}

    def target_digest(self, target: Target | None) -> str | None:
        """The digest of a target with its files, None if there is none."""
        if target is None:
            return None
        # Once: the answers of a mock may be as long as the suite.
        if target.name not in self._targets:
            paths = sorted(file.path for file in self._of_program(target.files))
            files = [self._content(path) for path in paths]
            self._targets[target.name] = _digest([self.target(target), files])
        return self._targets[target.name]

    def _shared_evaluator(self, evaluator: Evaluator, agent: Target | None) -> Mapping[str, Any]:
        if evaluator.origin != "suite":
            return self.evaluator(evaluator, agent)
        key = evaluator.location, evaluator.name, agent.name if agent else ""
        if key not in self._evaluators:
            self._evaluators[key] = self.evaluator(evaluator, agent)
        return self._evaluators[key]

    def _of_program(self, files: Sequence[NamedFile]) -> Sequence[NamedFile]:
        """The files of a program without imported ones that are the agent's own."""
        return [file for file in files if not (file.importers and self._is_watched(file.path))]

    def _workspace(self, workspace: Workspace) -> dict[str, Any]:
        hooks = [workspace.hook("before_all"), workspace.hook("before_each")]
        return {
            "repos": [
                [repo.path, self._from_suite(repo.source), repo.commit] for repo in workspace.repos
            ],
            "before": [hook and [hook.command, self._from_suite(hook.cwd)] for hook in hooks],
            "kept": [workspace.per_test, workspace.reset_before, workspace.reset],
            "files": sorted(
                (
                    self._path_in_template(workspace, path),
                    _WATCHED if self._is_watched(path) else self._content(path),
                )
                for path in _files_before(workspace)
            ),
        }

    def _path_in_template(self, workspace: Workspace, path: str) -> str:
        """The path of a file in the template, empty for other files."""
        file, template = self._suite.root / path, workspace.template
        if template is None or not file.is_relative_to(template):
            return ""
        return file.relative_to(template).as_posix()

    def _message(self, message: Message, hide_watched: bool = False) -> Any:
        """A message in which a text is one block, and a file has no path: it may move."""
        described = describe_message(message)
        if isinstance(message.content, str):
            described["content"] = [{"type": "text", "value": message.content}]
        for block, part in zip(message.blocks, described["content"], strict=True):
            if block.path is not None:
                del part["value"]
                if hide_watched and self._is_watched(self._relative(block.path)):
                    part["sha256"] = _WATCHED
        return described

    @cached_property
    def _watched_files(self) -> Any:
        """The rules of `watch` and the files that they match, or that no suite and no rule covers:
        tracked ones by the id of their content, others that the suite names by their content."""
        ids = self._tracked.ids if self._watch else {}
        others = {file.path for file in self._suite.files} - ids.keys()
        is_open = not names_files(self._watch)
        return _digest(
            [
                [str(rule) for rule in self._watch],
                [[path, ids[path]] for path in sorted(ids) if self._is_watched(path)],
                [self._content(path) for path in sorted(others) if self._is_watched(path)],
                self._tracked.describe_without(self._watch) if is_open else None,
            ]
        )

    def _is_watched(self, path: str) -> bool:
        return rule_for(self._watch, path, self._suite.path) is not None

    def _content(self, path: str) -> str:
        return self._files.first(self._suite.root / path)

    def _named_contents(self, files: Iterable[NamedFile]) -> list[tuple[str, str]]:
        """The names of files with their contents, sorted."""
        return sorted((PurePosixPath(file.path).name, self._content(file.path)) for file in files)

    def _relative(self, path: Path) -> str:
        return path.relative_to(self._suite.root).as_posix()

    def _from_suite(self, path: str | Path) -> str:
        """A path from the suite's folder, so that the suite may move with it; a URL as it is."""
        return os.path.relpath(path, self._suite.folder) if isinstance(path, Path) else path


def _digest(data: Any) -> str:
    return digest(data, is_ordered=False)


def _asked(test: Test) -> Sequence[Message]:
    return [message for message in test.input if message.role != "system"]


def _files_before(workspace: Workspace) -> Sequence[str]:
    """The files that make a workspace before the agent runs, sorted."""
    hooks = (workspace.hook("before_all"), workspace.hook("before_each"))
    of_hooks = {file.path for hook in hooks if hook for file in hook.files}
    return sorted(
        of_hooks | {file.path for file in workspace.files if file.role in _WORKSPACE_ROLES}
    )


def _with_contents(value: Any, contents: Mapping[str, str], named: set[str]) -> Any:
    """Fields in which the content stands for each path of one of the evaluator's files, which have
    these `contents` by name. `named` collects the names of these files."""
    if isinstance(value, str):
        name = value.strip().rpartition("/")[2]
        if name not in contents:
            return value
        named.add(name)
        return {"file": contents[name]}
    if isinstance(value, Mapping):
        return {key: _with_contents(item, contents, named) for key, item in value.items()}
    if isinstance(value, list | tuple):
        return [_with_contents(item, contents, named) for item in value]
    return value
