"""The description of a suite of ours: of its tests and their parts, as JSON data. The same commit
has the same description in every folder."""

import os
from collections.abc import Iterable, Mapping, Sequence, Set
from dataclasses import dataclass, field, replace
from functools import cached_property
from pathlib import Path, PurePosixPath
from typing import Any

from agentevals_action.execution.suite_description import SuiteDescription, compute_digest
from agentevals_action.model.diagnostic import NamedFile
from agentevals_action.model.evaluator import Evaluator
from agentevals_action.model.messages import Message
from agentevals_action.model.result import PASS_SCORE, Fingerprint, SampleResult, TestResult
from agentevals_action.model.skill import Fixture, Skill
from agentevals_action.model.suite import Test
from agentevals_action.model.target import Target
from agentevals_action.model.tools import TOOL_FILE, Tool, ToolServer, describe_tool
from agentevals_action.model.workspace import Workspace
from agentevals_action.results.build import test_result
from agentevals_action.targets.calls.description import (
    describe_message,
    variable_values,
)
from agentevals_action.validation.json_values import map_texts

#: Fields of a target that name it and do not define it.
_NAMING = ("name", "extends")
#: Roles of the files that a workspace is made of.
_WORKSPACE_ROLES = ("workspace template", "workspace repository")
#: Stands for the content of a watched file in a question.
_WATCHED = "the agent's own"


@dataclass(eq=False)
class TestsDescription(SuiteDescription):
    """Describes the tests of a suite of ours and their parts."""

    __test__ = False  # pytest: not a test case

    _fingerprints: dict[str, Fingerprint] = field(default_factory=dict)
    _targets: dict[str, str] = field(default_factory=dict)
    #: The evaluators that the suite declares for all its tests.
    _evaluators: dict[tuple[object, ...], Mapping[str, Any]] = field(default_factory=dict)

    @cached_property
    def _tests(self) -> Mapping[str, Test]:
        return {test.id: test for test in self._suite.tests}

    def read(self) -> None:
        """Reads all files of the suite, before a program can change them."""
        for file in self._suite.files:
            self._content(file.path)
        for test in self._suite.tests:
            self.fingerprint(test)

    def fingerprint(self, test: Test) -> Fingerprint:
        """The digests of a test, which are computed once."""
        if test.id not in self._fingerprints:
            self._fingerprints[test.id] = Fingerprint(
                question=compute_digest(self.question(test)),
                grading=compute_digest(self.grading(test)),
                agent=compute_digest(self.agent(test)),
            )
        return self._fingerprints[test.id]

    def expected(self, rows: Sequence[TestResult]) -> Mapping[str, Fingerprint]:  # noqa: ARG002  # of the base class
        """The fingerprints of all tests."""
        return {test.id: self.fingerprint(test) for test in self._suite.tests}

    def with_samples(self, row: TestResult, samples: tuple[SampleResult, ...]) -> TestResult:
        """The result of the test as it is now, with the times and the cost of the row."""
        test = self._tests[row.eval_id]
        duration_ms, fingerprint = row.duration_ms or 0.0, self.fingerprint(test)
        return replace(
            test_result(self._suite, test, samples, duration_ms, fingerprint),
            timestamp=row.timestamp,
            duration_ms=row.duration_ms,
            spent=row.spent,
        )

    def question(self, test: Test) -> Any:
        """The messages and, where there is a workspace, what makes its folder before the agent
        runs. Hooks that run after the agent change no answer."""
        messages = [self._message(message, hide_watched=True) for message in _asked(test)]
        if test.workspace is None and not test.has_tools:
            return messages
        question: dict[str, Any] = {"messages": messages}
        if test.has_tools:
            question["tools"] = [
                *map(describe_tool, self._answered(test)),
                *map(describe_tool, test.commands),
            ]
        if test.workspace:
            question |= self._workspace(test.workspace)
        if test.fixtures:
            question["fixtures"] = [
                [fixture.targets, self._fixture(test, fixture)] for fixture in test.fixtures
            ]
        return question

    def grading(self, test: Test) -> Any:
        """What scores an answer."""
        agent = self._suite.find_agent(test)
        evaluators = [self._shared_evaluator(evaluator, agent) for evaluator in test.scoring]
        return {**self.references(test), "evaluators": evaluators}

    def agent(self, test: Test) -> Any:
        """What answers: the target, the system messages, and the agent's own files."""
        system = [message for message in test.input if message.role == "system"]
        parts = {"skills": [*map(self._skill, test.skills)]} if test.skills else {}
        if servers := [entry for entry in test.tools if isinstance(entry, ToolServer)]:
            parts["servers"] = [*map(self._server, servers)]
        return {
            **parts,
            "system": [self._message(message) for message in system],
            "watched": self._watched_files,
            "target": self.target_digest(self._suite.find_agent(test)),
        }

    def question_files(self, changed: Set[str]) -> Mapping[str, tuple[str, ...]]:
        """The changed files in a message or in the workspace of each test, by its id."""
        if not changed & {file.path for file in self._suite.files}:
            return {}
        by_test = {test.id: self._question_files(test) for test in self._suite.tests}
        return {
            name: edited
            for name, files in by_test.items()
            if (edited := tuple(file for file in files if file in changed))
        }

    def _question_files(self, test: Test) -> Sequence[str]:
        blocks = (block for message in _asked(test) for block in message.blocks)
        paths = [self._relative(block.path) for block in blocks if block.path]
        if test.workspace:
            paths += _files_before(test.workspace)
        paths += [file.path for file in test.files if file.role == TOOL_FILE]
        fixtures = (fixture for fixture in test.fixtures if not _is_skills(test, fixture))
        paths += [fixture.source for fixture in fixtures if fixture.source]
        return [path for path in dict.fromkeys(paths) if not self._is_watched(path)]

    def references(self, test: Test) -> dict[str, Any]:
        """What evaluators compare an answer with, by field of the test."""
        return {
            "expected_output": [self._message(message) for message in test.expected_output],
            "criteria": test.criteria,
            "note": test.note,
        }

    def evaluator(self, evaluator: Evaluator, agent: Target | None) -> dict[str, Any]:
        """An evaluator. Its name counts, because it identifies gates. Of a file that fields name,
        the content counts and not the path; of files next to that file the name counts, too."""
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
            "judge": self._judge_digests(evaluator, agent),
            "evaluators": [self.evaluator(inner, agent) for inner in evaluator.children()],
        }

    def judge_key(self, test: Test, evaluator: Evaluator) -> str:
        """The digest of a way of judging: the prompt, its parameters, the target, the score that
        passes. What a test asks the judge is no part of it: a judge is measured over many tests."""
        judges = self._judge_digests(evaluator, self._suite.find_agent(test))
        passes = [evaluator.gate_threshold or PASS_SCORE, evaluator.negate]
        return compute_digest(
            [evaluator.type, evaluator.judging(), evaluator.config, judges, passes]
        )

    def target(self, target: Target) -> dict[str, Any]:
        """The definition of a target with the values of its variables: another model in a variable
        is another agent, another key is not."""
        fields = {name: value for name, value in target.definition.items() if name not in _NAMING}
        return {"definition": fields, "variables": variable_values(fields, self._variables)}

    def target_digest(self, target: Target | None) -> str | None:
        """The digest of a target with its files, None without a target."""
        if target is None:
            return None
        # Computed once: the answers of a mock may be as long as the suite.
        if target.name not in self._targets:
            paths = sorted(file.path for file in self._of_program(target.files))
            files = [self._content(path) for path in paths]
            self._targets[target.name] = compute_digest([self.target(target), files])
        return self._targets[target.name]

    def _judge_digests(self, evaluator: Evaluator, agent: Target | None) -> Any:
        """The digest of the judge, None without a judge; a list for several judges."""
        digests = [*map(self.target_digest, self._suite.find_judges(evaluator, agent))]
        return digests if len(evaluator.judge_names()) > 1 else next(iter(digests), None)

    def _shared_evaluator(self, evaluator: Evaluator, agent: Target | None) -> Mapping[str, Any]:
        if evaluator.origin != "suite":
            return self.evaluator(evaluator, agent)
        key = evaluator.location, evaluator.name, agent.name if agent else ""
        if key not in self._evaluators:
            self._evaluators[key] = self.evaluator(evaluator, agent)
        return self._evaluators[key]

    def _of_program(self, files: Sequence[NamedFile]) -> Sequence[NamedFile]:
        """The files of a program without imported files that are the agent's own."""
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

    def _fixture(self, test: Test, fixture: Fixture) -> str | None:
        """The content of a fixture; None if it is missing."""
        if _is_skills(test, fixture):
            return _WATCHED
        return self._content(fixture.source) if fixture.source else None

    def _answered(self, test: Test) -> Sequence[Tool]:
        """The tools that the suite itself declares, without lists that are the agent's own."""
        tools = (entry for entry in test.tools if isinstance(entry, Tool))
        return [
            tool for tool in tools if not (tool.is_listed and self._is_watched(tool.location.path))
        ]

    def _server(self, server: ToolServer) -> Any:
        """The server of each side, which is a program of the agent."""
        files = self._named_contents(self._of_program(server.files))
        return [server.server, server.command, server.env, files]

    def _skill(self, skill: Skill) -> Any:
        """A skill, which may move."""
        files = [[inside, self._content(path)] for path, inside in skill.installed]
        return [skill.name, skill.manual, files]

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

    def _named_contents(self, files: Iterable[NamedFile]) -> list[tuple[str, str]]:
        """The names of files with their contents, sorted."""
        return sorted((PurePosixPath(file.path).name, self._content(file.path)) for file in files)

    def _from_suite(self, path: str | Path) -> str:
        """A path from the suite's folder, so that the suite may move with it; a URL as it is."""
        return os.path.relpath(path, self._suite.folder) if isinstance(path, Path) else path


def _asked(test: Test) -> Sequence[Message]:
    return [message for message in test.input if message.role != "system"]


def _is_skills(test: Test, fixture: Fixture) -> bool:
    """Whether a fixture is a file of the skill itself, which is the agent's."""
    return any(fixture.source == path for skill in test.skills for path, _ in skill.installed)


def _files_before(workspace: Workspace) -> Sequence[str]:
    """The files that make a workspace before the agent runs, sorted."""
    hooks = (workspace.hook("before_all"), workspace.hook("before_each"))
    of_hooks = {file.path for hook in hooks if hook for file in hook.files}
    return sorted(
        of_hooks | {file.path for file in workspace.files if file.role in _WORKSPACE_ROLES}
    )


def _with_contents(value: Any, contents: Mapping[str, str], named: set[str]) -> Any:
    """Fields in which each path of a file of the evaluator is replaced by the file's content;
    `contents` are by name. `named` collects the names of these files."""

    def convert(text: str) -> Any:
        name = text.strip().rpartition("/")[2]
        if name not in contents:
            return text
        named.add(name)
        return {"file": contents[name]}

    return map_texts(value, convert)
