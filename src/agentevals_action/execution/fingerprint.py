"""Fingerprints: three digests of what a result depends on. The same commit has
the same fingerprints in every folder."""

import hashlib
import json
import os
from collections.abc import Callable, Iterable, Mapping, Sequence
from pathlib import Path, PurePath, PurePosixPath
from typing import Any

from agentevals_action.errors import AttemptError
from agentevals_action.evaluators import base
from agentevals_action.evaluators.code_judge.evaluator import CodeJudge
from agentevals_action.model.messages import wire_message
from agentevals_action.model.path_patterns import WatchRule, rule_for
from agentevals_action.model.result import Fingerprint
from agentevals_action.model.suite import Block, Evaluator, Hook, Message, Suite, Test, Workspace
from agentevals_action.model.target import Target
from agentevals_action.system.files.regular_files import digest_of
from agentevals_action.system.redaction import looks_secret
from agentevals_action.targets.variables import names_in

#: Fields of a target that name it and do not define it.
NAMING = ("name", "extends")
#: Roles of the files that a workspace is made of.
_WORKSPACE_ROLES = ("workspace template", "workspace repository")
#: Stands for the content of a watched file in a question.
_WATCHED = "the agent's own"
#: Longer texts of options are not names of files.
_MAX_PATH = 4096


class Fingerprints:
    """Fingerprints of the tests of one run. Each file is read once. `variables` returns what
    `${{ }}` in targets may name, for a repository root and a suite's folder."""

    def __init__(
        self,
        watch: Sequence[WatchRule] = (),
        variables: Callable[[Path, Path], Mapping[str, str]] | None = None,
    ) -> None:
        self._watch = tuple(watch)
        self._variables = variables
        self._contents: dict[Path, str] = {}
        self._targets: dict[tuple[Path, str, str], str] = {}
        #: Evaluators that a suite declares for all its tests. The options are kept, because a key
        #: has their id.
        self._suite_evaluators: dict[tuple[Path, str, int, str, str], tuple[object, Any]] = {}
        self._imported: dict[tuple[Path, str, tuple[Path, ...], CodeJudge], Sequence[Path]] = {}
        #: The ids of the tracked files of each tree, and of each suite what `watch` matches.
        self._tracked: dict[Path, Mapping[str, str]] = {}
        self._watched: dict[tuple[Path, str], str] = {}

    def add_tree(self, root: Path, blobs: Mapping[str, str]) -> None:
        """Records the ids of the contents of the tracked files of a tree, by path: those that
        `watch` matches are part of the agent."""
        self._tracked[root] = blobs

    def with_rules(self, watch: Sequence[WatchRule]) -> "Fingerprints":
        """The fingerprints of the same trees by other rules of `watch`."""
        if tuple(watch) == self._watch:
            return self
        other = Fingerprints(watch, self._variables)
        other._tracked, other._contents = self._tracked, self._contents
        other._imported = self._imported
        return other

    def of(self, suite: Suite, test: Test) -> Fingerprint:
        """Question, grading and agent of one test."""
        agent = suite.agent_of(test)
        return Fingerprint(
            question=_digest(self._question(suite, test)),
            grading=_digest(self._grading(suite, test, agent)),
            agent=_digest(self._agent(suite, test, agent)),
        )

    def question_files(self, suite: Suite, test: Test) -> tuple[str, ...]:
        """The files whose contents are part of the question, relative to the repository."""
        asked = [message for message in test.input if message.role != "system"]
        paths = dict.fromkeys((*_block_files(suite, asked), *_workspace_files(test)))
        return tuple(path for path in paths if not self._is_watched(suite, path))

    def _question(self, suite: Suite, test: Test) -> Any:
        """The messages and, where there is a workspace, what makes its folder before the agent
        runs. Hooks that run after the agent change no answer."""
        asked = [message for message in test.input if message.role != "system"]
        messages = [self._message(suite, message, hide_watched=True) for message in asked]
        workspace = test.workspace
        if workspace is None:
            return messages
        return {
            "messages": messages,
            "repos": [
                [repo.path, _relative(suite, repo.source), repo.commit] for repo in workspace.repos
            ],
            "before": [
                [hook.command, _relative(suite, hook.cwd)] if hook else None
                for hook in _hooks_before(workspace)
            ],
            "kept": [workspace.per_test, workspace.reset_before, workspace.reset],
            "files": sorted(
                [
                    _path_in_template(suite, workspace, path),
                    _WATCHED if self._is_watched(suite, path) else self.content(suite.root / path),
                ]
                for path in _workspace_files(test)
            ),
        }

    def _grading(self, suite: Suite, test: Test, agent: Target | None) -> Any:
        evaluators = [
            self._cached_evaluator(suite, evaluator, agent) for evaluator in test.evaluators
        ]
        return {**self.references(suite, test), "evaluators": evaluators}

    def references(self, suite: Suite, test: Test) -> Mapping[str, Any]:
        """What evaluators compare an answer with, by field of the test; digests stand for files."""
        return {
            "expected_output": [self._message(suite, message) for message in test.expected_output],
            "criteria": test.criteria,
            "note": test.note,
        }

    def _cached_evaluator(self, suite: Suite, evaluator: Evaluator, agent: Target | None) -> Any:
        if evaluator.origin != "suite":
            return self._evaluator(suite, evaluator, agent)
        agent_name = agent.name if agent else ""
        options = evaluator.options
        key = (suite.root, suite.path, id(options), evaluator.name, agent_name)
        if key not in self._suite_evaluators:
            self._suite_evaluators[key] = (options, self._evaluator(suite, evaluator, agent))
        return self._suite_evaluators[key][1]

    def _evaluator(self, suite: Suite, evaluator: Evaluator, agent: Target | None) -> Any:
        """The name counts, because it identifies gates. Of a file that the options name the content
        counts and not the path; of files next to it the name counts too."""
        contents = {file.path: self.content(suite.root / file.path) for file in evaluator.files}
        named: set[str] = set()
        options = _without_paths(evaluator.options.model_dump(), contents, named, suite.root)
        judge = self.judge(suite, evaluator, agent)
        imported = self.imports(suite, evaluator)
        return {
            "name": evaluator.name,
            "type": evaluator.type,
            "weight": evaluator.weight,
            "threshold": evaluator.threshold,
            "negate": evaluator.negate,
            "config": evaluator.config,
            "options": options,
            "beside": sorted(
                [PurePosixPath(path).name, digest]
                for path, digest in contents.items()
                if path not in named
            ),
            "imports": sorted(
                [PurePosixPath(path).name, digest]
                for path, digest in imported.items()
                if not self._is_watched(suite, path)
            ),
            "judge": self._target(suite, judge) if judge else None,
            "evaluators": [
                self._evaluator(suite, child, agent) for child in evaluator.options.children()
            ],
        }

    def imports(self, suite: Suite, evaluator: Evaluator) -> Mapping[str, str]:
        """The digests of the files that the evaluator's program imports or names, by path."""
        options = evaluator.options
        if not isinstance(options, CodeJudge):
            return {}
        files = tuple(suite.root / file.path for file in evaluator.files)
        key = (suite.root, evaluator.location.path, files, options)
        if key not in self._imported:
            self._imported[key] = options.imported_files(files, suite.root)
        return {
            path.relative_to(suite.root).as_posix(): self.content(path)
            for path in self._imported[key]
        }

    def judge(self, suite: Suite, evaluator: Evaluator, agent: Target | None) -> Target | None:
        """The target that judges for an evaluator; None where it needs none, or there is none."""
        if not evaluator.options.needs_judge():
            return None
        name = suite.targets.judge(evaluator.target, agent.name if agent else None)
        return suite.targets.get(name)

    def _agent(self, suite: Suite, test: Test, agent: Target | None) -> Any:
        evaluated = (
            file.path
            for evaluator in test.evaluators
            for inside in base.walk(evaluator)
            for file in inside.files
        )
        named = {
            *(file.path for file in test.files),
            *evaluated,
            *_block_files(suite, test.input),
            *_workspace_files(test),
            *(agent.files if agent else ()),
        }
        system = [message for message in test.input if message.role == "system"]
        tracked = self._tracked.get(suite.root, {})
        others = [path for path in sorted(named - tracked.keys()) if self._is_watched(suite, path)]
        return {
            "system": [self._message(suite, message) for message in system],
            "watched": self._watched_files(suite),
            "untracked": [self.content(suite.root / path) for path in others],
            "target": self._target(suite, agent) if agent else None,
        }

    def _watched_files(self, suite: Suite) -> str:
        """The digest of a suite's rules of `watch` and of the tracked files that they match."""
        key = suite.root, suite.path
        if key not in self._watched:
            tracked = self._tracked.get(suite.root, {}) if self._watch else {}
            rules = [str(rule) for rule in self._watch if rule.affects(suite.path)]
            paths = sorted(path for path in tracked if self._is_watched(suite, path))
            files = [[path, tracked[path]] for path in paths]
            self._watched[key] = _digest([rules, files])
        return self._watched[key]

    def _target(self, suite: Suite, target: Target) -> str:
        # Once for each suite: the answers of a mock may be as long as the suite.
        key = (suite.root, suite.path, target.name)
        if key not in self._targets:
            definition = {
                name: value for name, value in target.definition.items() if name not in NAMING
            }
            files = [self.content(suite.root / path) for path in sorted(target.files)]
            parts: list[Any] = [definition, files]
            # Another model in a variable is another agent; another key is not.
            if values := self.values(suite, definition):
                parts.append(values)
            self._targets[key] = _digest(parts)
        return self._targets[key]

    def values(self, suite: Suite, definition: Mapping[str, Any]) -> Mapping[str, str]:
        """The values of the variables that a target's definition names, secrets left out."""
        names = [name for name in names_in(definition) if not looks_secret(name)]
        if not names or self._variables is None:
            return {}
        try:
            known = self._variables(suite.root, suite.folder)
        except AttemptError:  # reported by the call of the target
            return {}
        return {name: known[name] for name in names if name in known}

    def _message(self, suite: Suite, message: Message, hide_watched: bool = False) -> Any:
        wire = {key: value for key, value in wire_message(message).items() if key != "content"}
        blocks = [self._block(suite, block, hide_watched) for block in message.blocks]
        return wire | {"content": blocks}

    def _block(self, suite: Suite, block: Block, hide_watched: bool) -> Any:
        if block.path is None:
            return [block.type, block.value]
        path = block.path.relative_to(suite.root).as_posix()
        if hide_watched and self._is_watched(suite, path):
            return [block.type, _WATCHED]
        return [block.type, hashlib.sha256(block.data).hexdigest()]

    def _is_watched(self, suite: Suite, path: str) -> bool:
        return rule_for(self._watch, path, suite.path) is not None

    def read(self, suite: Suite) -> None:
        """Reads all files of a suite, before a program can change them."""
        for file in suite.files:
            self.content(suite.root / file.path)
        for test in suite.tests:
            for evaluator in test.evaluators:
                for inside in base.walk(evaluator):
                    self.imports(suite, inside)

    def content(self, path: Path) -> str:
        """The digest of a file's content."""
        if path not in self._contents:
            try:
                self._contents[path] = digest_of(path)
            except OSError as error:
                # The component that needs the file reports the error; here it is one more state.
                self._contents[path] = type(error).__name__
        return self._contents[path]


def _hooks_before(workspace: Workspace) -> Sequence[Hook | None]:
    return (workspace.before_all, workspace.before_each)


def _workspace_files(test: Test) -> Sequence[str]:
    """The files that make a test's workspace before the agent runs, sorted."""
    if (workspace := test.workspace) is None:
        return ()
    hooks = {file.path for hook in _hooks_before(workspace) if hook for file in hook.files}
    return sorted(hooks | {file.path for file in workspace.files if file.role in _WORKSPACE_ROLES})


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


def _without_paths(value: Any, contents: Mapping[str, str], named: set[str], root: Path) -> Any:
    """Options in which the content stands for each name of one of the evaluator's files. `named`
    collects the paths of these files."""
    if isinstance(value, str | PurePath) and (path := _named_file(value, contents, root)):
        named.add(path)
        return ["file", contents[path]]
    if isinstance(value, PurePath):
        return value.relative_to(root).as_posix() if value.is_relative_to(root) else value.name
    if isinstance(value, Mapping):
        return {
            str(key): _without_paths(item, contents, named, root) for key, item in value.items()
        }
    if isinstance(value, list | tuple):
        return [_without_paths(item, contents, named, root) for item in value]
    return value


def _named_file(value: str | PurePath, contents: Mapping[str, str], root: Path) -> str | None:
    """The evaluator's file that an option names. A text is compared with the end of the path,
    because it may be relative to any folder."""
    if isinstance(value, PurePath):
        path = value.relative_to(root).as_posix() if value.is_relative_to(root) else ""
        return path if path in contents else None
    if len(value) >= _MAX_PATH:
        return None
    parts = PurePosixPath(value.strip().removeprefix("file://")).parts
    tail = "/".join(part for part in parts if part not in ("/", ".."))
    if not tail:
        return None
    return next((path for path in contents if path == tail or path.endswith(f"/{tail}")), None)


def _plain(value: object) -> Any:
    if isinstance(value, Mapping):
        return dict(value)
    if isinstance(value, set | frozenset):
        return sorted(value, key=repr)
    raise TypeError(f"a {type(value).__name__} cannot be part of a fingerprint")


_JSON = json.JSONEncoder(sort_keys=True, separators=(",", ":"), default=_plain)


def _digest(data: Any) -> str:
    return hashlib.sha256(_JSON.encode(data).encode("ascii")).hexdigest()
