"""The fingerprints of a run: digests of what each result depends on."""

from collections.abc import Callable, Mapping, Sequence
from pathlib import Path
from typing import TypeVar

from agentevals_action.errors import AttemptError
from agentevals_action.execution.runner_description import RunnerDescription
from agentevals_action.execution.suite_description import SuiteDescription, TrackedFiles
from agentevals_action.execution.tests_description import TestsDescription
from agentevals_action.model.evaluator import Evaluator
from agentevals_action.model.path_patterns import WatchRule, useful
from agentevals_action.model.result import Fingerprint
from agentevals_action.model.suite import Suite, Test
from agentevals_action.targets.calls.description import FileDigests

Description = TypeVar("Description", bound=SuiteDescription)


class Fingerprints:
    """The fingerprints of one run. `variables` returns what `${{ }}` in targets may name, for a
    repository root and a suite's folder. `tracked` are the files of each tree: files that `watch`
    matches are part of the agent, or, without rules that name files, files that no suite covers.
    `files` are the files that were read."""

    def __init__(
        self,
        watch: Sequence[WatchRule] = (),
        variables: Callable[[Path, Path], Mapping[str, str]] = lambda _root, _folder: {},
        tracked: Mapping[Path, TrackedFiles] | None = None,
        files: FileDigests | None = None,
    ) -> None:
        self.variables, self._tracked = variables, tracked or {}
        paths = [path for files in self._tracked.values() for path in files.ids]
        self._given, self._watch = tuple(watch), useful(watch, paths) if paths else tuple(watch)
        self._files = files or FileDigests()
        self._suites: dict[tuple[Path, str, str], SuiteDescription] = {}

    def with_rules(self, watch: Sequence[WatchRule]) -> "Fingerprints":
        """The fingerprints of the same trees by other rules of `watch`."""
        if tuple(watch) == self._given:
            return self
        return Fingerprints(watch, self.variables, self._tracked, self._files)

    def of(self, suite: Suite, test: Test) -> Fingerprint:
        """Question, grading and agent of one test."""
        return self.of_tests(suite).fingerprint(test)

    def judge_key(self, suite: Suite, test: Test, evaluator: Evaluator) -> str:
        """Identifies the way in which a judge scores the answers of a test."""
        return self.of_tests(suite).judge_key(test, evaluator)

    def ask_same_service(self, on_head: Suite, head: Test, on_base: Suite, base: Test) -> bool:
        """Whether a test asks the same running service on both sides: base's result would be a
        result of head."""
        target = on_base.find_agent(base)
        if target is None or not target.is_shared:
            return False
        sides = (self.of_tests(on_head).agent(head), self.of_tests(on_base).agent(base))
        of_head, of_base = ((side["system"], side["target"]) for side in sides)
        return bool(of_head == of_base)

    def describe(self, suite: Suite) -> SuiteDescription:
        """The description of a suite: the same for all parts of a suite."""
        return self._described(suite, RunnerDescription if suite.runner else TestsDescription)

    def of_tests(self, suite: Suite) -> TestsDescription:
        """The description of a suite of ours."""
        return self._described(suite, TestsDescription)

    def of_runner(self, suite: Suite) -> RunnerDescription:
        """The description of a suite of a runner."""
        return self._described(suite, RunnerDescription)

    def _described(self, suite: Suite, kind: type[Description]) -> Description:
        if suite.key not in self._suites:
            try:
                variables = self.variables(suite.root, suite.folder)
            except AttemptError:  # reported by the call of the target
                variables = {}
            tracked = self._tracked.get(suite.root, TrackedFiles())
            self._suites[suite.key] = kind(suite, self._watch, variables, tracked, self._files)
        description = self._suites[suite.key]
        if not isinstance(description, kind):
            raise TypeError(f"{suite.path} is no suite of this kind")
        return description
