"""The description of a suite that the program of a runner runs, by its files. What a test asks is
known from its result."""

from collections.abc import Mapping, Sequence, Set
from dataclasses import replace
from functools import cached_property
from pathlib import Path
from typing import Any

from agentevals_action.execution.python_tests import PythonTests, folder_of_tests
from agentevals_action.execution.suite_description import SuiteDescription, compute_digest
from agentevals_action.model.result import Fingerprint, SampleResult, TestResult
from agentevals_action.model.suite import Suite
from agentevals_action.results.build import with_samples

#: Fields of an entry that do not change its answers.
_NOT_OF_AGENT = ("name", "suites", "required")
#: Roles of the files that ask and grade.
_OF_SUITE = ("suite", "named file")
#: The role of the tracked files that the command of a runner names.
_OF_RUNNER = "runner"


class RunnerDescription(SuiteDescription):
    """Describes the files of a suite, and the entry of its runner."""

    def read(self) -> None:
        """Reads all files of the suite, before a program can change them."""
        _ = self._own_files, self.agent, self.graders, self._python_tests  # computed once

    def expected(self, rows: Sequence[TestResult]) -> Mapping[str, Fingerprint]:
        """The fingerprints of the rows, with the suite's agent. Its digest is of all files, so
        that equal agents have equal questions."""
        return {row.eval_id: self._with_agent(row) for row in rows}

    def with_samples(self, row: TestResult, samples: tuple[SampleResult, ...]) -> TestResult:
        """The row with other samples, and the agent of this suite."""
        return with_samples(replace(row, fingerprint=self._with_agent(row)), samples)

    def suite_question_files(self, changed: Set[str]) -> tuple[str, ...]:
        """The `changed` files that the suite names, without its own."""
        return tuple(sorted((set(self._files_of_suite) - {self._suite.path}) & changed))

    def fingerprint(
        self, test: str, asked: Any, graded: Any, *, has_functions: bool
    ) -> Fingerprint:
        """The fingerprint of a test by its id: of what it `asked` and how it was `graded` by its
        result (None: unknown), else of its function, else of the files of the suite."""
        function = self.function(test) if has_functions else None
        asked, graded = (
            function or self._own_files if data is None else compute_digest(data)
            for data in (asked, graded)
        )
        grading = compute_digest([graded, self.graders])
        return Fingerprint(question=asked, grading=grading, agent=self.agent)

    def _with_agent(self, row: TestResult) -> Fingerprint:
        fingerprint = row.fingerprint or Fingerprint(question="", grading="", agent="")
        return replace(fingerprint, agent=self.agent)

    @cached_property
    def agent(self) -> str:
        """The digest of all that the suite's results depend on."""
        every = sorted(file.path for file in self._suite.files)
        return compute_digest(
            [
                answering(self._suite),
                [[path, self._tracked.ids.get(path) or self._content(path)] for path in every],
                self._watched_files,
            ]
        )

    @cached_property
    def _own_files(self) -> str:
        """The digest of the suite's file and the files that it names."""
        return compute_digest([self._content(path) for path in self._files_of_suite])

    @property
    def _files_of_suite(self) -> Sequence[str]:
        """The files that ask and grade. The suite's own file is one, even if a rule for the agent's
        code (`*.py`) matches it."""
        paths = {file.path for file in self._suite.files if file.role in _OF_SUITE}
        return sorted(
            path for path in paths if path == self._suite.path or not self._is_watched(path)
        )

    @cached_property
    def graders(self) -> Mapping[str, str]:
        """The contents, by path, of the files that the command of a runner names, which grade."""
        named = sorted(file.path for file in self._suite.files if file.role == _OF_RUNNER)
        return {path: self._content(path) for path in named if not self._is_watched(path)}

    def function(self, test: str) -> str | None:
        """The digest of what a test of pytest asks and how it grades, by its id; None if that
        cannot be determined."""
        source = self._python_tests and self._python_tests.find_source(test)
        return compute_digest(source) if source else None

    @cached_property
    def _python_tests(self) -> PythonTests | None:
        """The tests of a suite of Python. A module in their folder that they import belongs to them
        if the agent is known to be elsewhere; any other module is the agent."""
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


def answering(suite: Suite) -> Mapping[str, Any] | None:
    """What the entry of a suite's runner states that may change answers; None without an entry."""
    entry = suite.entry
    return entry and {name: value for name, value in entry.items() if name not in _NOT_OF_AGENT}
