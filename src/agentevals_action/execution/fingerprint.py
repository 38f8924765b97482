"""Descriptions of what a result depends on, as JSON data, and their digests: the fingerprints. The
same commit has the same descriptions in every folder."""

import os
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import replace
from pathlib import Path, PurePosixPath
from typing import Any

from agentevals_action.errors import AttemptError
from agentevals_action.evaluators.code_judge.evaluator import CodeJudge
from agentevals_action.model.diagnostic import Location
from agentevals_action.model.messages import Message
from agentevals_action.model.path_patterns import WatchRule, rule_for
from agentevals_action.model.result import Fingerprint
from agentevals_action.model.suite import Evaluator, Suite, Test
from agentevals_action.model.target import Target
from agentevals_action.model.workspace import Hook, Workspace
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
#: Stands for the content of a watched file in a question.
_WATCHED = "the agent's own"


class Fingerprints:
    """Describes the tests of one run. `variables` returns what `${{ }}` in targets may name, for a
    repository root and a suite's folder. `tracked` are the ids of the contents of the tracked files
    of each tree, by path: those that `watch` matches are part of the agent."""

    def __init__(
        self,
        watch: Sequence[WatchRule] = (),
        variables: Callable[[Path, Path], Mapping[str, str]] = lambda _root, _folder: {},
        tracked: Mapping[Path, Mapping[str, str]] | None = None,
    ) -> None:
        self._watch, self._variables, self._tracked = tuple(watch), variables, tracked or {}
        self._files = FileDigests()
        self._targets: dict[tuple[Path, str, str], str] = {}
        #: Evaluators that a suite declares for all its tests.
        self._suite_evaluators: dict[tuple[Path, str, Location, str, str], Any] = {}
        self._imported: dict[tuple[Any, ...], Sequence[Path]] = {}
        #: Of each suite, what `watch` matches.
        self._watched: dict[tuple[Path, str], str] = {}

    def with_rules(self, watch: Sequence[WatchRule]) -> "Fingerprints":
        """The fingerprints of the same trees by other rules of `watch`."""
        if tuple(watch) == self._watch:
            return self
        other = Fingerprints(watch, self._variables, self._tracked)
        other._files, other._imported = self._files, self._imported
        return other

    def of(self, suite: Suite, test: Test) -> Fingerprint:
        """Question, grading and agent of one test."""
        return Fingerprint(
            question=_digest(self.question(suite, test)),
            grading=_digest(self.grading(suite, test)),
            agent=_digest(self.agent(suite, test)),
        )

    def read(self, suite: Suite) -> None:
        """Reads all files of a suite, before a program can change them."""
        for file in suite.files:
            self._content(suite, file.path)
        for test in suite.tests:
            for evaluator in test.evaluators:
                for inside in evaluator.walk():
                    self._imports(suite, inside)

    # The three parts of a test

    def question(self, suite: Suite, test: Test) -> Any:
        """The messages and, where there is a workspace, what makes its folder before the agent
        runs. Hooks that run after the agent change no answer."""
        messages = [self._message(suite, message, hide_watched=True) for message in _asked(test)]
        workspace = test.workspace
        if workspace is None:
            return messages
        return {"messages": messages, **self._workspace(suite, workspace)}

    def grading(self, suite: Suite, test: Test) -> Any:
        """What scores an answer."""
        agent = suite.agent_of(test)
        evaluators = [
            self._cached_evaluator(suite, evaluator, agent) for evaluator in test.evaluators
        ]
        return {**self.references(suite, test), "evaluators": evaluators}

    def agent(self, suite: Suite, test: Test) -> Any:
        """What answers: the target, the system messages, and the agent's own files."""
        agent = suite.agent_of(test)
        evaluators = (inside for own in test.evaluators for inside in own.walk())
        named = {
            *(file.path for file in test.files),
            *(file.path for evaluator in evaluators for file in evaluator.files),
            *_block_files(suite, test.input),
            *_workspace_files(test),
            *(agent.files if agent else ()),
        }
        tracked = self._tracked.get(suite.root, {})
        others = [path for path in sorted(named - tracked.keys()) if self._is_watched(suite, path)]
        system = [message for message in test.input if message.role == "system"]
        return {
            "system": [self._message(suite, message) for message in system],
            "watched": self._watched_files(suite),
            "untracked": [self._content(suite, path) for path in others],
            "target": self._target_digest(suite, agent),
        }

    def question_files(self, suite: Suite, test: Test) -> tuple[str, ...]:
        """The files whose contents are part of the question, relative to the repository."""
        paths = dict.fromkeys((*_block_files(suite, _asked(test)), *_workspace_files(test)))
        return tuple(path for path in paths if not self._is_watched(suite, path))

    # Their parts

    def references(self, suite: Suite, test: Test) -> dict[str, Any]:
        """What evaluators compare an answer with, by field of the test."""
        return {
            "expected_output": [self._message(suite, message) for message in test.expected_output],
            "criteria": test.criteria,
            "note": test.note,
        }

    def evaluator(self, suite: Suite, evaluator: Evaluator, agent: Target | None) -> dict[str, Any]:
        """An evaluator. The name counts, because it identifies gates. Of a file that the options
        name the content counts and not the path; of files next to it the name counts too."""
        files = [
            (PurePosixPath(file.path).name, self._content(suite, file.path))
            for file in evaluator.files
        ]
        named: set[str] = set()
        return {
            "name": evaluator.name,
            "type": evaluator.type,
            "weight": evaluator.weight,
            "threshold": evaluator.gate_threshold,
            "negate": evaluator.negate,
            "config": evaluator.config,
            "options": _with_contents(evaluator.own_fields(), dict(files), named),
            "beside": sorted(file for file in files if file[0] not in named),
            "imports": sorted(
                (PurePosixPath(path).name, self._content(suite, path))
                for path in self._imports(suite, evaluator)
                if not self._is_watched(suite, path)
            ),
            "judge": self._target_digest(suite, self.judge(suite, evaluator, agent)),
            "evaluators": [self.evaluator(suite, inner, agent) for inner in evaluator.children()],
        }

    def judge(self, suite: Suite, evaluator: Evaluator, agent: Target | None) -> Target | None:
        """The target that judges for an evaluator; None where it needs none, or there is none."""
        if not evaluator.needs_judge():
            return None
        name = suite.targets.judge(evaluator.judge_name(), agent.name if agent else None)
        return suite.targets.get(name)

    def target(self, suite: Suite, target: Target) -> dict[str, Any]:
        """The definition of a target with the values of its variables: another model in a variable
        is another agent, another key is not."""
        fields = {name: value for name, value in target.definition.items() if name not in _NAMING}
        try:
            known = self._variables(suite.root, suite.folder)
        except AttemptError:  # reported by the call of the target
            known = {}
        return {"definition": fields, "variables": variable_values(fields, known)}

    def _target_digest(self, suite: Suite, target: Target | None) -> str | None:
        """The digest of a target with its files, None if there is none."""
        if target is None:
            return None
        # Once for each suite: the answers of a mock may be as long as the suite.
        key = (suite.root, suite.path, target.name)
        if key not in self._targets:
            files = [self._content(suite, path) for path in sorted(target.files)]
            self._targets[key] = _digest([self.target(suite, target), files])
        return self._targets[key]

    def _cached_evaluator(self, suite: Suite, evaluator: Evaluator, agent: Target | None) -> Any:
        if evaluator.origin != "suite":
            return self.evaluator(suite, evaluator, agent)
        key = (
            suite.root,
            suite.path,
            evaluator.location,
            evaluator.name,
            agent.name if agent else "",
        )
        if key not in self._suite_evaluators:
            self._suite_evaluators[key] = self.evaluator(suite, evaluator, agent)
        return self._suite_evaluators[key]

    def _imports(self, suite: Suite, evaluator: Evaluator) -> Sequence[str]:
        """The paths of the files that the evaluator's program imports or names."""
        if not isinstance(evaluator, CodeJudge):
            return ()
        files = tuple(suite.root / file.path for file in evaluator.files)
        key = (suite.root, evaluator.location.path, files, evaluator.script, evaluator.cwd)
        if key not in self._imported:
            self._imported[key] = evaluator.imported_files(files, suite.root)
            for path in self._imported[key]:
                self._files.first(path)
        return [path.relative_to(suite.root).as_posix() for path in self._imported[key]]

    def _workspace(self, suite: Suite, workspace: Workspace) -> dict[str, Any]:
        return {
            "repos": [
                [repo.path, _relative(suite, repo.source), repo.commit] for repo in workspace.repos
            ],
            "before": [
                [hook.command, _relative(suite, hook.cwd)] if hook else None
                for hook in _hooks_before(workspace)
            ],
            "kept": [workspace.per_test, workspace.reset_before, workspace.reset],
            "files": sorted(
                (
                    _path_in_template(suite, workspace, path),
                    _WATCHED if self._is_watched(suite, path) else self._content(suite, path),
                )
                for path in _files_before(workspace)
            ),
        }

    def _message(self, suite: Suite, message: Message, hide_watched: bool = False) -> Any:
        """A message in which a text is one block, and a file has no path: it may move."""
        described = describe_message(replace(message, content=message.blocks))
        for block, part in zip(message.blocks, described["content"], strict=True):
            if block.path is not None:
                del part["value"]
                path = block.path.relative_to(suite.root).as_posix()
                if hide_watched and self._is_watched(suite, path):
                    part["sha256"] = _WATCHED
        return described

    def _watched_files(self, suite: Suite) -> str:
        """The digest of a suite's rules of `watch` and of the tracked files that they match."""
        key = suite.root, suite.path
        if key not in self._watched:
            tracked = self._tracked.get(suite.root, {}) if self._watch else {}
            rules = [str(rule) for rule in self._watch if rule.affects(suite.path)]
            paths = sorted(path for path in tracked if self._is_watched(suite, path))
            self._watched[key] = _digest([rules, [[path, tracked[path]] for path in paths]])
        return self._watched[key]

    def _is_watched(self, suite: Suite, path: str) -> bool:
        return rule_for(self._watch, path, suite.path) is not None

    def _content(self, suite: Suite, path: str) -> str:
        return self._files.first(suite.root / path)


def _digest(data: Any) -> str:
    return digest(data, is_ordered=False)


def _asked(test: Test) -> Sequence[Message]:
    return [message for message in test.input if message.role != "system"]


def _hooks_before(workspace: Workspace) -> Sequence[Hook | None]:
    return (workspace.hook("before_all"), workspace.hook("before_each"))


def _files_before(workspace: Workspace) -> Sequence[str]:
    """The files that make a workspace before the agent runs, sorted."""
    hooks = {file.path for hook in _hooks_before(workspace) if hook for file in hook.files}
    return sorted(hooks | {file.path for file in workspace.files if file.role in _WORKSPACE_ROLES})


def _workspace_files(test: Test) -> Sequence[str]:
    return _files_before(test.workspace) if test.workspace else ()


def _relative(suite: Suite, path: str | Path) -> str:
    """A path relative to the suite's folder, so that the suite may move with it; a URL as it is."""
    return os.path.relpath(path, suite.folder) if isinstance(path, Path) else path


def _path_in_template(suite: Suite, workspace: Workspace, path: str) -> str:
    """The path of a file in the template, empty for other files."""
    file, template = suite.root / path, workspace.template
    if template is None or not file.is_relative_to(template):
        return ""
    return file.relative_to(template).as_posix()


def _block_files(suite: Suite, messages: Iterable[Message]) -> list[str]:
    blocks = (block for message in messages for block in message.blocks)
    return [block.path.relative_to(suite.root).as_posix() for block in blocks if block.path]


def _with_contents(value: Any, contents: Mapping[str, str], named: set[str]) -> Any:
    """Options in which the content stands for each path of one of the evaluator's files, which have
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
