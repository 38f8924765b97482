"""The view of a review: its tests by group, as facts. Nothing in it is escaped or cut."""

from collections import defaultdict
from collections.abc import Hashable, Iterable, Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Literal
from urllib.parse import quote

from agentevals_action.model.comparison import ChangeKind, Review, TestComparison
from agentevals_action.model.result import ErrorInfo, TestResult
from agentevals_action.model.run import Edit
from agentevals_action.model.trace import Spending
from agentevals_action.reports.view.judges import AdvisoryJudge, advisory_judges

_LONGEST_URL = 500  # characters; a longer URL is left out


@dataclass(frozen=True)
class Links:
    """The parts of URLs; without a server or a repository (`owner/name`) there are no links.
    `pull_request` is the number of the pull request, `author` the login of who opened it, `branch`
    the name of head's branch; `report_url` is the uploaded report page, empty within that page."""

    server_url: str | None = None
    repository: str | None = None
    head_sha: str | None = None
    base_sha: str | None = None
    run_url: str | None = None
    pull_request: int | None = None
    branch: str = ""
    report_url: str | None = None
    author: str = ""

    def head_file(self, path: str, line: int | None = None) -> str | None:
        """The URL of a file (and line, from 1) at head's commit."""
        return self._file(self.head_sha, path, line)

    def base_file(self, path: str, line: int | None = None) -> str | None:
        """The URL of a file (and line, from 1) at base's commit."""
        return self._file(self.base_sha, path, line)

    def pull(self) -> str | None:
        """The URL of the pull request."""
        return self._url("pull", str(self.pull_request))

    def commit(self, sha: str | None) -> str | None:
        """The URL of a commit."""
        return self._url("commit", quote(sha, safe="", errors="replace")) if sha else None

    def report_test(self, suite: str, test: str) -> str | None:
        """The URL of a test in the report page.

        GitHub redirects the address of the artifact to a signed one; a browser keeps the fragment
        (https://fetch.spec.whatwg.org/#http-redirect-fetch)."""
        path = "/".join(quote(part, safe="", errors="replace") for part in (suite, test))
        url = f"{self.report_url}#test/{path}"
        return None if self.report_url is None or len(url) > _LONGEST_URL else url

    def group(self, key: str) -> str | None:
        """The URL of a group of tests in the report page."""
        return None if self.report_url is None else f"{self.report_url}#group={key}"

    def _file(self, sha: str | None, path: str, line: int | None) -> str | None:
        if not sha or not path:
            return None
        # `replace`: a path in git's index may contain bytes that are not UTF-8.
        url = self._url("blob", sha, quote(path, safe="/", errors="replace"))
        return f"{url}#L{line}" if url and line else url

    def _url(self, *parts: str) -> str | None:
        if not self.server_url or not self.repository:
            return None
        url = "/".join([self.server_url.rstrip("/"), self.repository, *parts])
        return url if len(url) <= _LONGEST_URL else None


@dataclass(frozen=True)
class TurnNumber:
    """The position of a test in its conversation: `number` from 1, of `total`."""

    conversation: str
    number: int
    total: int

    def __str__(self) -> str:
        return f"turn {self.number:,} of {self.total:,}"


@dataclass(frozen=True)
class ReportedTest:
    """A test with the path of its suite, and its turn if it is one of several in a conversation."""

    suite: str
    comparison: TestComparison
    turn: TurnNumber | None = None

    @property
    def result(self) -> TestResult | None:
        """Head's result, or base's if head does not have the test."""
        return self.comparison.head or self.comparison.base

    @property
    def misses(self) -> tuple[str, ...]:
        """What head missed, each once."""
        return tuple(dict.fromkeys(self.comparison.head.misses)) if self.comparison.head else ()

    @property
    def conversation(self) -> tuple[str, str] | None:
        """The suite's path and the conversation's id."""
        conversation_id = self.result.conversation_id if self.result else None
        return None if conversation_id is None else (self.suite, conversation_id)


@dataclass(frozen=True)
class Removal:
    """Something that the change removes: a suite (`name` is its path), a `test`, or a required gate
    of a test."""

    kind: Literal["suite", "test", "required gate"]
    name: str
    test: ReportedTest | None = None


Tests = tuple[ReportedTest, ...]


@dataclass(frozen=True)
class ReportView:
    """A review, classified once for all reports.

    `tests` are all tests, suite by suite; `groups` has the tests of each group of `groups.GROUPS`
    by its key, the worst first. The turns of a conversation are next to each other. `notices` are
    those of the review, then those of the code host."""

    review: Review
    links: Links
    tests: Tests
    groups: Mapping[str, Tests]
    spending: Spending
    notices: tuple[str, ...] = ()

    def find_url(self, listed: ReportedTest) -> str | None:
        """The URL of a test in the report page, else of its file."""
        test, links = listed.comparison, self.links
        url = links.report_test(listed.suite, test.id)
        if url is None and (result := listed.result):
            file = links.head_file if test.head else links.base_file
            url = file(result.path or result.eval_path, result.line)
        return url

    @property
    def removals(self) -> tuple[Removal, ...]:
        """What only base has: suites, tests, and gates of tests that stay."""
        suites = [Removal("suite", path) for path in self.review.run.gone_suites]
        tests = [test for test in self.tests if test.comparison.change is ChangeKind.REMOVED]
        gates = [
            Removal("required gate", gate, test)
            for test in self.tests
            if test.comparison.head
            for gate in test.comparison.gates_removed
        ]
        removed = [Removal("test", test.comparison.id, test) for test in tests]
        return (*suites, *removed, *gates)

    @property
    def advisory_judges(self) -> tuple[AdvisoryJudge, ...]:
        """The judges that decide nothing."""
        return advisory_judges(self.review)

    @property
    def edits(self) -> tuple[Edit, ...]:
        """The edits of all suites. The edit of a target that several suites use is one edit, with
        the tests of all; the target has the same name and location in each."""
        tests_by_edit: dict[Edit, tuple[str, ...]] = {}
        for edit in (edit for suite in self.review.suites for edit in suite.run.edits):
            same = replace(edit, tests=())
            tests_by_edit[same] = (*tests_by_edit.get(same, ()), *edit.tests)
        return tuple(replace(edit, tests=tests) for edit, tests in tests_by_edit.items())


def same_errors(tests: Tests, limit: int) -> tuple[Sequence[tuple[ErrorInfo, Tests]], Tests]:
    """The first errors in which several tests of head ended, each with these, and the others."""
    by_error: defaultdict[ErrorInfo | None, list[ReportedTest]] = defaultdict(list)
    for test in tests:
        head = test.comparison.head
        by_error[head.error if head and head.verdict is None else None].append(test)
    alike = [(error, tuple(same)) for error, same in by_error.items() if error and len(same) > 1]
    for error, _ in alike[:limit]:
        del by_error[error]
    return alike[:limit], tuple(test for same in by_error.values() for test in same)


def number_turns(tests: Iterable[ReportedTest]) -> Mapping[tuple[str, str], TurnNumber]:
    """The turns of conversations by the suite's path and the test's id, without conversations of
    one turn."""
    conversations: dict[tuple[str, str], list[str]] = {}
    for test in tests:
        if test.comparison.head and test.conversation:
            conversations.setdefault(test.conversation, []).append(test.comparison.id)
    return {
        (suite, test): TurnNumber(conversation, number, len(turns))
        for (suite, conversation), turns in conversations.items()
        if len(turns) > 1
        for number, test in enumerate(turns, 1)
    }


def order_by_conversation(tests: Iterable[ReportedTest]) -> Tests:
    """Puts the turns of a conversation next to each other, where the first of them is."""
    conversations: dict[Hashable, list[ReportedTest]] = {}
    for position, test in enumerate(tests):
        conversations.setdefault(test.conversation or position, []).append(test)
    return tuple(
        test
        for turns in conversations.values()
        for test in sorted(turns, key=lambda turn: turn.turn.number if turn.turn else 0)
    )
