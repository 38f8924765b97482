"""The description of a suite: what its results depend on, as JSON data."""

from abc import ABC, abstractmethod
from collections.abc import Collection, Mapping, Sequence, Set
from dataclasses import dataclass, field
from functools import cached_property
from pathlib import Path
from typing import Any

from agentevals_action.model.path_patterns import WatchRule, names_files, rule_for
from agentevals_action.model.result import Fingerprint, SampleResult, TestResult
from agentevals_action.model.skill import find_skill_files
from agentevals_action.model.suite import Suite
from agentevals_action.targets.calls.description import FileDigests, digest


@dataclass(frozen=True)
class TrackedFiles:
    """The `ids` of the contents of the tracked files of a tree, by path, and the `uncovered` paths:
    no suite covers them, and they may be an agent's."""

    ids: Mapping[str, str] = field(default_factory=dict)
    uncovered: Collection[str] = ()

    @cached_property
    def described(self) -> str:
        """The digest of the uncovered files, which many suites share."""
        return compute_digest([[path, self.ids[path]] for path in sorted(self.uncovered)])

    @cached_property
    def without_skills(self) -> "TrackedFiles":
        """The tracked files, with the files of skills not in `uncovered`."""
        skills = find_skill_files(self.uncovered, self.ids)
        return TrackedFiles(self.ids, [path for path in self.uncovered if path not in skills])

    def describe_without(self, rules: Sequence[WatchRule]) -> str:
        """The digest of the uncovered files that rules do not exclude."""
        if not rules:
            return self.described
        kept = (path for path in self.uncovered if not any(rule.covers(path) for rule in rules))
        return TrackedFiles(self.ids, tuple(kept)).described


@dataclass(eq=False)
class SuiteDescription(ABC):
    """Describes one suite in its tree. `rules` are the rules of `watch`, `variables` what `${{ }}`
    in targets may name, `tracked` the files of the tree, `files` the files that were read."""

    _suite: Suite
    _rules: Sequence[WatchRule]
    _variables: Mapping[str, str]
    _tracked: TrackedFiles
    _files: FileDigests

    @cached_property
    def _watch(self) -> Sequence[WatchRule]:
        """The rules that affect the suite."""
        return [rule for rule in self._rules if rule.affects(self._suite.path)]

    @abstractmethod
    def read(self) -> None:
        """Reads all files of the suite, before a program can change them."""

    @abstractmethod
    def expected(self, rows: Sequence[TestResult]) -> Mapping[str, Fingerprint]:
        """The fingerprints by id that stored results of its tests, which are `rows`, must have."""

    @abstractmethod
    def with_samples(self, row: TestResult, samples: tuple[SampleResult, ...]) -> TestResult:
        """The result of the test of a stored row by these samples, as the suite describes it."""

    def question_files(self, changed: Set[str]) -> Mapping[str, tuple[str, ...]]:  # noqa: ARG002  # of subclasses
        """Which of the `changed` files (relative to the repository) are part of the question of a
        test, by its id."""
        return {}

    def suite_question_files(self, changed: Set[str]) -> tuple[str, ...]:  # noqa: ARG002  # of subclasses
        """Which of the `changed` files are part of all questions, apart from the suite's own."""
        return ()

    @cached_property
    def _watched_files(self) -> Any:
        """The digest of the rules of `watch` and of the files that they match, or that no suite and
        no rule covers: tracked files by id, other files that the suite names by content."""
        ids = self._tracked.ids if self._watch else {}
        others = {file.path for file in self._suite.files} - ids.keys()
        is_open = not names_files(self._watch)
        tracked = self._tracked.without_skills if self._suite.installs_skills else self._tracked
        return compute_digest(
            [
                [str(rule) for rule in self._watch],
                [[path, ids[path]] for path in sorted(ids) if self._is_watched(path)],
                [self._content(path) for path in sorted(others) if self._is_watched(path)],
                tracked.describe_without(self._watch) if is_open else None,
            ]
        )

    def _is_watched(self, path: str) -> bool:
        return rule_for(self._watch, path, self._suite.path) is not None

    def _content(self, path: str) -> str:
        return self._files.first(self._suite.root / path)

    def _relative(self, path: Path) -> str:
        return path.relative_to(self._suite.root).as_posix()


def compute_digest(data: Any) -> str:
    """The digest of data, in which the order of keys does not count."""
    return digest(data, is_ordered=False)
