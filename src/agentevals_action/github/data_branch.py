"""A branch for results, through GitHub's Git Data API: read in few requests, and written so that
no writer loses what another wrote."""

import base64
import random
from collections.abc import Collection, Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from functools import partial
from types import MappingProxyType
from typing import Any
from urllib.parse import quote

from agentevals_action.baselines import history_branch, history_format
from agentevals_action.baselines.trends import QuarantinedTest, SuiteTrend
from agentevals_action.errors import HostError
from agentevals_action.github.client.api import ApiError, GitHubApi
from agentevals_action.github.client.replies import Blob, GitCommit, GitObject, GitRef, Reply, Tree
from agentevals_action.model.history import Remembered, SuiteHistory
from agentevals_action.model.result import SuiteRun
from agentevals_action.reports.html import history_page

#: Attempts to write while other runs write, too.
MAX_ATTEMPTS = 30
#: Refusals with an unchanged branch after which the refusal is no conflict; more than one, because
#: GitHub may still show an old state.
_MAX_UNCHANGED = 3
#: The longest pause in seconds before the second attempt, doubled each time, and its maximum.
#: Pauses are random, so that writers separate.
_FIRST_PAUSE, _MAX_PAUSE = 0.5, 15.0
#: Bytes of text that a tree's request contains; further files have requests of their own.
_INLINE_BYTES = 512 * 1024
#: Status of a change to a branch that has moved, or exists already.
_CONFLICTS = (404, 409, 422)


@dataclass(frozen=True)
class _State:
    """The branch as it was read: its commit, tree and files (SHA and size by name); empty if there
    is no branch."""

    commit: str = ""
    tree: str = ""
    files: Mapping[str, tuple[str, int]] = field(default_factory=dict)


class DataBranch:
    """The results of runs of the default branch on `branch`, which has no history in common with
    other branches. It is never force-pushed."""

    def __init__(self, api: GitHubApi, branch: str) -> None:
        self._api = api
        self._branch = branch
        self._read: dict[str, str] = {}
        self._sent: dict[str, str] = {}

    @property
    def commits_url(self) -> str:
        """The address of a commit of the repository, without its SHA."""
        context = self._api.context
        return f"{context.server_url}/{context.repository}/commit/"

    def read(self, suites: Collection[str]) -> Remembered:
        """The stored results of suites (paths): one request, and one per suite. HostError."""
        names = {path: history_format.file_name(path) for path in suites}
        try:
            texts = self._texts(names.values())
        except ApiError as error:
            raise self._unreadable(error) from error
        read = {
            path: history_format.read_history(texts[name], path)
            for path, name in names.items()
            if name in texts
        }
        return Remembered(
            {path: found for path, found in read.items() if isinstance(found, SuiteHistory)},
            {path: found for path, found in read.items() if isinstance(found, str)},
        )

    def trends(self) -> tuple[SuiteTrend, ...]:
        """The stored trends, none without a branch: two requests. HostError."""
        try:
            return history_branch.read_trends(self._texts([history_branch.TRENDS]))
        except ApiError as error:
            if error.status == 404:
                return ()
            raise self._unreadable(error) from error

    def _texts(self, names: Iterable[str]) -> dict[str, str]:
        """The texts of those of the files that the branch has. ApiError."""
        files = self._list(quote(self._branch, safe=""))[1]
        return {name: self._text(files[name]) for name in names if name in files}

    def _unreadable(self, error: ApiError) -> HostError:
        problem = f"`{self._branch}` could not be read"
        if error.status == 404:
            return HostError(
                f"{problem}: there is no such branch yet (runs on the default branch write "
                "it), or the token lacks `contents: read`"
            )
        reason = self._api.context.without_secrets
        return HostError(error.explain(problem, "contents: read", reason).rstrip("."))

    def store(
        self,
        runs: Sequence[SuiteRun],
        commit: str,
        time: str,
        quarantine: Mapping[str, Sequence[QuarantinedTest]] = MappingProxyType({}),
    ) -> tuple[str, ...]:
        """Adds the results of suites on a commit (SHA) in a run of that time (ISO 8601 with a
        zone), with the tests in quarantine by suite path; returns notices. A failure is a notice.
        The texts must contain no secrets."""
        problem = f"The results were not stored on `{self._branch}`"
        try:
            return self._store(runs, commit, time, quarantine, problem)
        except ApiError as error:
            reason = self._api.context.without_secrets
            return (error.explain(problem, "contents: write", reason),)

    def _store(
        self,
        runs: Sequence[SuiteRun],
        commit: str,
        time: str,
        quarantine: Mapping[str, Sequence[QuarantinedTest]],
        problem: str,
    ) -> tuple[str, ...]:
        before, unchanged, pause = None, 0, _FIRST_PAUSE
        for _ in range(MAX_ATTEMPTS):
            state = self._load()
            if not history_branch.is_data(state.files):
                raise ApiError(
                    "rejected",
                    "the branch contains something else; name another one in `baseline-branch`",
                )
            update = history_branch.update_files(
                state.files, partial(self._named, state), runs, commit, time, quarantine
            )
            if not update.files:
                return update.notices
            page = history_page.history_page(update.trends, self.commits_url)
            files = {**update.files, history_page.PAGE: page}
            conflict = self._commit(state, files, f"Results of {commit[:12]}\n\n[skip ci]")
            if conflict is None:
                return update.notices
            unchanged = unchanged + 1 if state.commit == before else 1
            if unchanged >= _MAX_UNCHANGED:
                raise conflict
            before = state.commit
            if not self._api.wait(random.uniform(0, pause)):  # noqa: S311  # no secret
                break
            pause = min(2 * pause, _MAX_PAUSE)
        return (f"{problem}: too many other runs were writing to it.",)

    def _load(self) -> _State:
        try:
            commit = self._api.get(f"git/ref/heads/{quote(self._branch)}", GitRef).object.sha
        except ApiError as error:
            if error.status == 404:  # whether the token may write is reported when it writes
                return _State()
            raise
        tree = self._api.get(f"git/commits/{commit}", GitCommit).tree.sha
        return _State(commit, *self._list(tree))

    def _list(self, revision: str) -> tuple[str, dict[str, tuple[str, int]]]:
        tree = self._api.get(f"git/trees/{revision}", Tree, recursive=1)
        if tree.truncated:  # a file that is not listed would count as new, and be overwritten
            raise ApiError("rejected", "the branch contains more files than GitHub lists")
        return tree.sha, {
            one.path: (one.sha, one.size or 0) for one in tree.tree if one.type == "blob"
        }

    def _named(self, state: _State, name: str) -> str:
        return self._text(state.files[name])

    def _text(self, file: tuple[str, int]) -> str:
        """The text of a file, empty if it is no text or larger than the files written here."""
        sha, size = file
        if size > history_format.FILE_BYTES:
            return ""
        if sha not in self._read:
            self._read[sha] = _decode(self._api.get(f"git/blobs/{sha}", Blob).content)
        return self._read[sha]

    def _commit(self, state: _State, files: Mapping[str, str], message: str) -> ApiError | None:
        """Writes files as a commit on top of the state; returns the refusal if the branch has
        moved."""
        # Blobs and trees are named by their content: created twice, they are the same.
        body: dict[str, Any] = {"tree": self._entries(files)}
        if state.tree:
            body["base_tree"] = state.tree
        tree = self._api.write("POST", "git/trees", body, GitObject)
        parents = [state.commit] if state.commit else []
        body = {"message": message, "tree": tree.sha, "parents": parents}
        sha = self._api.write("POST", "git/commits", body, GitObject).sha
        ref = f"refs/heads/{self._branch}"
        try:
            if state.commit:
                path, body = f"git/{quote(ref)}", {"sha": sha, "force": False}
                self._api.write("PATCH", path, body, Reply)
            else:
                self._api.write("POST", "git/refs", {"ref": ref, "sha": sha}, Reply)
        except ApiError as error:
            if error.status in _CONFLICTS:
                return error
            raise
        return None

    def _entries(self, files: Mapping[str, str]) -> list[dict[str, str]]:
        entries, free = [], _INLINE_BYTES
        for name, text in sorted(files.items(), key=lambda pair: len(pair[1])):
            free -= len(text.encode())
            content = {"content": text} if free >= 0 else {"sha": self._create_blob(text)}
            entries.append({"path": name, "mode": "100644", "type": "blob", **content})
        return entries

    def _create_blob(self, text: str) -> str:
        if text not in self._sent:
            body = {"content": text, "encoding": "utf-8"}
            self._sent[text] = self._api.write("POST", "git/blobs", body, GitObject).sha
        return self._sent[text]


def _decode(content: str) -> str:
    try:
        return base64.b64decode(content).decode("utf-8")
    except ValueError:  # no text: the reader of the file reports it as damaged
        return ""
