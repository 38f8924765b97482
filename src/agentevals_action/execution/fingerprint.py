"""What a result depends on, as three digests (specification, section 7): the same for the same
commit in whatever folder it lies."""

import hashlib
import json
import os
from collections.abc import Callable, Iterable, Mapping, Sequence
from pathlib import Path, PurePath, PurePosixPath
from typing import Any

from agentevals_action.errors import AttemptError
from agentevals_action.evaluators import base
from agentevals_action.model.file_model import FileModel
from agentevals_action.model.messages import wire_message
from agentevals_action.model.result import Fingerprint
from agentevals_action.model.suite import Block, Evaluator, Hook, Message, Suite, Test, Workspace
from agentevals_action.model.target import Target
from agentevals_action.model.watch import WatchRule, rule_for
from agentevals_action.system.redaction import looks_secret
from agentevals_action.targets.variables import names_in

#: Fields of a target by which it is found and not what it is.
_NAMING = ("name", "extends")
#: Roles of files that a workspace consists of.
_MADE_OF = ("workspace template", "workspace repository")
#: In the place of a file's content in a question.
_AGENTS_OWN = "the agent's own"


class Fingerprints:
    """Digests of the tests of one run; every file is read once, as it is when the first test that
    names it is done. `variables` gives what `${{ }}` in targets may name (repository root, then the
    suite's folder)."""

    def __init__(
        self,
        watch: Sequence[WatchRule] = (),
        variables: Callable[[Path, Path], Mapping[str, str]] | None = None,
    ) -> None:
        self._watch = watch
        self._variables = variables
        self._contents: dict[Path, str] = {}
        self._targets: dict[tuple[Path, str, str], str] = {}
        # What a suite asks of all its tests, with the options that it was made of: they are kept,
        # or their id would be given to others.
        self._of_suites: dict[tuple[Path, str, int, str, str], tuple[FileModel, Any]] = {}

    def of(self, suite: Suite, test: Test) -> Fingerprint:
        """Question, grading and agent of one test."""
        agent = suite.targets.targets.get(
            suite.targets.agent(test.target or suite.default_target) or ""
        )
        asked = [message for message in test.input if message.role != "system"]
        return Fingerprint(
            question=_digest(self._question(suite, test, asked)),
            grading=_digest(self._grading(suite, test, agent)),
            agent=_digest(self._agent(suite, test, agent)),
        )

    def question_files(self, suite: Suite, test: Test) -> tuple[str, ...]:
        """Files whose contents are part of the question, relative to the repository: where one
        changed, it made the difference."""
        blocks = (
            block
            for message in test.input
            if message.role != "system"
            for block in _blocks(message)
        )
        paths = dict.fromkeys(
            block.path.relative_to(suite.root).as_posix() for block in blocks if block.path
        )
        paths.update(dict.fromkeys(_workspace_files(test)))
        return tuple(path for path in paths if not self._is_watched(suite, path))

    def _question(self, suite: Suite, test: Test, asked: Sequence[Message]) -> Any:
        """What is asked, and where there is a workspace the state of the folder that it is asked
        about: its content and what is run before the agent. What is run after is for cleaning up,
        and changes no answer."""
        messages = [self._message(suite, message, hide_watched=True) for message in asked]
        if test.workspace is None:
            return messages
        workspace = test.workspace
        return {
            "messages": messages,
            "repos": [
                [repo.path, _from(suite, repo.source), repo.commit, repo.ancestor, repo.sparse]
                for repo in workspace.repos
            ],
            "before": [
                [hook.command, _from(suite, hook.cwd)] if hook else None
                for hook in _before(workspace)
            ],
            "kept": [workspace.per_test, workspace.reset_before, workspace.reset],
            "files": sorted(
                [_in_template(suite, workspace, path), self._asked(suite, path)]
                for path in _workspace_files(test)
            ),
        }

    def _asked(self, suite: Suite, path: str) -> str:
        return _AGENTS_OWN if self._is_watched(suite, path) else self._content(suite.root / path)

    def _grading(self, suite: Suite, test: Test, agent: Target | None) -> Any:
        return {
            "expected_output": [self._message(suite, message) for message in test.expected_output],
            "criteria": test.criteria,
            "note": test.note,
            "evaluators": [self._once(suite, evaluator, agent) for evaluator in test.evaluators],
        }

    def _once(self, suite: Suite, evaluator: Evaluator, agent: Target | None) -> Any:
        if evaluator.origin != "suite":
            return self._evaluator(suite, evaluator, agent)
        key = (
            suite.root,
            suite.path,
            id(evaluator.options),
            evaluator.name,
            agent.name if agent else "",
        )
        if key not in self._of_suites:
            self._of_suites[key] = (evaluator.options, self._evaluator(suite, evaluator, agent))
        return self._of_suites[key][1]

    def _evaluator(self, suite: Suite, evaluator: Evaluator, agent: Target | None) -> Any:
        """Its name counts: gates are matched by it. Of a file the content counts, not where it
        lies; files that only lie beside it are known by their names."""
        contents = {file.path: self._content(suite.root / file.path) for file in evaluator.files}
        named: set[str] = set()
        options = _without_paths(evaluator.options.model_dump(), contents, named, suite.root)
        judge = self._judge(suite, evaluator, agent)
        inside = (
            evaluator.options.children()
            if isinstance(evaluator.options, base.EvaluatorOptions)
            else ()
        )
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
            "judge": self._target(suite, judge) if judge else None,
            "evaluators": [self._evaluator(suite, child, agent) for child in inside],
        }

    def _judge(self, suite: Suite, evaluator: Evaluator, agent: Target | None) -> Target | None:
        if not _asks_judge(evaluator.options):
            return None
        name = suite.targets.judge(evaluator.target, agent.name if agent else None)
        return suite.targets.targets.get(name) if name else None

    def _agent(self, suite: Suite, test: Test, agent: Target | None) -> Any:
        evaluated = (
            file.path
            for evaluator in test.evaluators
            for inside in base.walk(evaluator)
            for file in inside.files
        )
        asked = (
            block.path.relative_to(suite.root).as_posix()
            for message in test.input
            for block in _blocks(message)
            if block.path
        )
        named = {
            *(file.path for file in test.files),
            *evaluated,
            *asked,
            *_workspace_files(test),
            *(agent.files if agent else ()),
        }
        return {
            "system": [
                self._message(suite, message) for message in test.input if message.role == "system"
            ],
            "watched": [
                self._content(suite.root / path)
                for path in sorted(named)
                if self._is_watched(suite, path)
            ],
            "target": self._target(suite, agent) if agent else None,
        }

    def _target(self, suite: Suite, target: Target) -> str:
        # Once for a suite: a mock's list of answers may be as long as the suite.
        key = (suite.root, suite.path, target.name)
        if key not in self._targets:
            definition = {
                key: value for key, value in target.definition.items() if key not in _NAMING
            }
            parts = [
                definition,
                [self._content(suite.root / path) for path in sorted(target.files)],
            ]
            # Another model by another variable is another agent; a key is not what it is.
            if values := self._values(suite, definition):
                parts.append(values)
            self._targets[key] = _digest(parts)
        return self._targets[key]

    def _values(self, suite: Suite, definition: Mapping[str, Any]) -> Mapping[str, str]:
        names = (
            [name for name in names_in(definition) if not looks_secret(name)]
            if self._variables
            else []
        )
        if not names or self._variables is None:
            return {}
        try:
            known = self._variables(suite.root, suite.folder)
        except AttemptError:  # whoever calls the target says that its variables cannot be read
            return {}
        return {name: known[name] for name in names if name in known}

    def _message(self, suite: Suite, message: Message, hide_watched: bool = False) -> Any:
        wire = {key: value for key, value in wire_message(message).items() if key != "content"}
        return wire | {
            "content": [self._block(suite, block, hide_watched) for block in _blocks(message)]
        }

    def _block(self, suite: Suite, block: Block, hide_watched: bool) -> Any:
        if block.path is None:
            return [block.type, block.value]
        watched = hide_watched and self._is_watched(
            suite, block.path.relative_to(suite.root).as_posix()
        )
        return [block.type, _AGENTS_OWN if watched else self._content(block.path)]

    def _is_watched(self, suite: Suite, path: str) -> bool:
        return rule_for(self._watch, path, suite.path) is not None

    def _content(self, path: Path) -> str:
        if path not in self._contents:
            try:
                self._contents[path] = hashlib.sha256(path.read_bytes()).hexdigest()
            except OSError as error:
                # Whoever needs the content says so as an error of the test; here it is only another
                # state than any content.
                self._contents[path] = type(error).__name__
        return self._contents[path]


def _before(workspace: Workspace) -> Sequence[Hook | None]:
    return (workspace.before_all, workspace.before_each)


def _workspace_files(test: Test) -> Sequence[str]:
    """Paths of the files that make a test's workspace before the agent comes, sorted."""
    if (workspace := test.workspace) is None:
        return ()
    hooks = {file.path for hook in _before(workspace) if hook for file in hook.files}
    return sorted(hooks | {file.path for file in workspace.files if file.role in _MADE_OF})


def _from(suite: Suite, place: str | Path) -> str:
    """A place as it is seen from the suite, which may have moved with all that it names."""
    return os.path.relpath(place, suite.folder) if isinstance(place, Path) else place


def _in_template(suite: Suite, workspace: Workspace, path: str) -> str:
    """Where a file lies in the template; of others the content alone counts."""
    file = suite.root / path
    return (
        file.relative_to(workspace.template).as_posix()
        if workspace.template and file.is_relative_to(workspace.template)
        else ""
    )


def _blocks(message: Message) -> Iterable[Block]:
    return (
        (Block("text", message.content),) if isinstance(message.content, str) else message.content
    )


def _asks_judge(options: FileModel) -> bool:
    return isinstance(options, base.EvaluatorOptions) and options.needs_judge()


def _without_paths(value: Any, contents: Mapping[str, str], named: set[str], root: Path) -> Any:
    """Options with each word that names one of the evaluator's files as that file's content;
    `named` collects these files' paths."""
    if isinstance(value, str | PurePath) and (path := _named_by(value, contents, root)) is not None:
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


def _named_by(word: str | PurePath, contents: Mapping[str, str], root: Path) -> str | None:
    """The one of the evaluator's files that a word of its options names, by the end of the path:
    what it is relative to is not known."""
    if isinstance(word, PurePath):
        return (
            path
            if word.is_relative_to(root) and (path := word.relative_to(root).as_posix()) in contents
            else None
        )
    parts = (
        [
            part
            for part in PurePosixPath(word.strip().removeprefix("file://")).parts
            if part not in ("/", "..")
        ]
        if len(word) < 4096
        else []
    )
    tail = "/".join(parts)
    return next(
        (path for path in contents if tail and (path == tail or path.endswith(f"/{tail}"))), None
    )


def _plain(value: object) -> Any:
    if isinstance(value, Mapping):
        return dict(value)
    if isinstance(value, set | frozenset):
        return sorted(value, key=repr)
    raise TypeError(f"{type(value).__name__} has no place in a fingerprint")


_JSON = json.JSONEncoder(sort_keys=True, separators=(",", ":"), default=_plain)


def _digest(data: Any) -> str:
    return hashlib.sha256(_JSON.encode(data).encode("ascii")).hexdigest()
