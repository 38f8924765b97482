"""A branch of its own for results, through GitHub's Git Data API: read in few calls, written so
that no writer loses what another wrote."""

import base64
import random
from collections.abc import Collection, Mapping, Sequence
from dataclasses import dataclass, field
from functools import partial

from github import InputGitTreeElement
from github.GitCommit import GitCommit
from github.GitRef import GitRef
from github.GitTree import GitTree

from agentevals_action.baselines import history_branch, history_format
from agentevals_action.errors import HostError
from agentevals_action.github.api import GitHubApi, Target, Trouble
from agentevals_action.github.github_words import refusal
from agentevals_action.model.history import Remembered, SuiteHistory
from agentevals_action.model.result import SuiteRun

#: Times that a write is begun, when others write at the same time.
TRIES = 30
#: Refusals without anybody else's write before it: then it is no conflict. More than one, since
#: GitHub may still show an old state.
_UNMOVED = 3
#: Seconds before the second try at most, then twice as long each time up to the longest; jitter, so
#: that writers come apart.
_FIRST_PAUSE, _LONGEST_PAUSE = 0.5, 15.0
#: Bytes of text that are sent along with a tree; what is over them is sent file by file before.
_ALONG = 512 * 1024
#: What GitHub answers when a branch does not lead where it is to be moved from, or is there
#: already.
_CONFLICTS = (404, 409, 422)
_BLOB = ("100644", "blob")


@dataclass(frozen=True)
class _State:
    """The branch as it was read: its commit (`sha` its name) and tree, nothing when there is no
    branch, and what it holds: SHA and size by name."""

    sha: str = ""
    ref: GitRef | None = None
    commit: GitCommit | None = None
    tree: GitTree | None = None
    files: Mapping[str, tuple[str, int]] = field(default_factory=dict)


class GitHubData:
    """What runs of the default branch remember on `branch`, which has no history in common with the
    others. Never forced."""

    def __init__(self, api: GitHubApi, target: Target, branch: str) -> None:
        self._api = api
        self._target = target
        self._branch = branch
        self._read: dict[str, str] = {}
        self._sent: dict[str, str] = {}

    def read(self, suites: Collection[str]) -> Remembered:
        """What is there of these suites (paths): one request, and one for each of them. HostError,
        in words, when it cannot be read."""
        try:
            files = self._api.ask(
                lambda: _files(self._api.repository.get_git_tree(self._branch, recursive=True))
            )
            names = {path: history_format.file_name(path) for path in suites}
            texts = {path: self._text(files[name]) for path, name in names.items() if name in files}
        except Trouble as trouble:
            if trouble.status == 404:
                lacks = "there is no such branch yet (runs on the default branch write it), or the token lacks `contents: read`"
                raise HostError(f"`{self._branch}` could not be read: {lacks}") from trouble
            words = refusal(
                f"`{self._branch}` could not be read",
                trouble,
                "contents: read",
                self._target.without_secrets,
            )
            raise HostError(words.rstrip(".")) from trouble
        read = {path: history_format.decoded(text, path) for path, text in texts.items()}
        return Remembered(
            {path: found for path, found in read.items() if isinstance(found, SuiteHistory)},
            {path: found for path, found in read.items() if isinstance(found, str)},
        )

    def store(self, runs: Sequence[SuiteRun], commit: str, time: str) -> tuple[str, ...]:
        """Adds what suites came to on a commit (SHA) in a run of that time (ISO 8601 with a zone);
        what to tell the reader of the run.

        Whatever keeps it from being written is such a sentence, never an error. The texts must have
        no secrets in them any more."""
        try:
            return self._stored(runs, commit, time)
        except Trouble as trouble:
            what = f"The results were not stored on `{self._branch}`"
            return (refusal(what, trouble, "contents: write", self._target.without_secrets),)

    def _stored(self, runs: Sequence[SuiteRun], commit: str, time: str) -> tuple[str, ...]:
        before, unmoved, pause = None, 0, _FIRST_PAUSE
        for _ in range(TRIES):
            state = self._state()
            if not history_branch.is_data(state.files):
                raise Trouble(
                    "invalid",
                    "the branch holds something else; name one of its own in `baseline-branch`",
                )
            update = history_branch.updated(
                state.files, partial(self._named, state), runs, commit, time
            )
            if not update.files:
                return update.notices
            refused = self._written(state, update.files, f"Results of {commit[:12]}\n\n[skip ci]")
            if refused is None:
                return update.notices
            unmoved = unmoved + 1 if state.sha == before else 1
            if unmoved >= _UNMOVED:
                raise refused
            before = state.sha
            if not self._api.wait(random.uniform(0, pause)):  # noqa: S311
                break
            pause = min(2 * pause, _LONGEST_PAUSE)
        return (
            f"The results were not stored on `{self._branch}`: too many others were writing to it.",
        )

    def _state(self) -> _State:
        repository = self._api.repository

        def read_ref() -> tuple[GitRef, str]:
            ref = repository.get_git_ref(f"heads/{self._branch}")
            return ref, ref.object.sha

        def read() -> _State:
            commit = repository.get_git_commit(sha)
            tree = repository.get_git_tree(commit.tree.sha, recursive=True)
            return _State(sha, ref, commit, tree, _files(tree))

        try:
            ref, sha = self._api.ask(read_ref)
        except Trouble as trouble:
            if trouble.status == 404:  # whether the token may write is told when it does
                return _State()
            raise
        return self._api.ask(read)

    def _named(self, state: _State, name: str) -> str:
        return self._text(state.files[name])

    def _text(self, file: tuple[str, int]) -> str:
        """A file's text, empty when it is none or larger than those that are written here."""
        sha, size = file
        if size > history_format.FILE_BYTES:
            return ""
        if sha not in self._read:
            self._read[sha] = self._api.ask(
                lambda: _decoded(self._api.repository.get_git_blob(sha).content)
            )
        return self._read[sha]

    def _written(self, state: _State, files: Mapping[str, str], message: str) -> Trouble | None:
        """Writes these files as a commit on top of the state; what was said when the branch is no
        longer at it."""
        repository, ask = self._api.repository, self._api.ask
        elements = self._elements(files)
        # Blobs, trees and commits are named by what they hold: made twice, they are the same.
        tree = ask(
            lambda: (
                repository.create_git_tree(elements, state.tree)
                if state.tree
                else repository.create_git_tree(elements)
            )
        )
        commit = ask(
            lambda: repository.create_git_commit(
                message, tree, [state.commit] if state.commit else []
            )
        )
        try:
            if ref := state.ref:
                ask(lambda: ref.edit(commit.sha, force=False))
            else:
                ask(lambda: repository.create_git_ref(f"refs/heads/{self._branch}", commit.sha))
        except Trouble as trouble:
            if trouble.status in _CONFLICTS:
                return trouble
            raise
        return None

    def _elements(self, files: Mapping[str, str]) -> list[InputGitTreeElement]:
        elements, room = [], _ALONG
        for name, text in sorted(files.items(), key=lambda pair: len(pair[1])):
            room -= len(text.encode())
            if room >= 0:
                elements.append(InputGitTreeElement(name, *_BLOB, content=text))
            else:
                elements.append(InputGitTreeElement(name, *_BLOB, sha=self._blob(text)))
        return elements

    def _blob(self, text: str) -> str:
        if text not in self._sent:
            self._sent[text] = self._api.ask(
                lambda: self._api.repository.create_git_blob(text, "utf-8").sha
            )
        return self._sent[text]


def _files(tree: GitTree) -> dict[str, tuple[str, int]]:
    if tree.truncated:  # what is not listed would be taken for new, and overwritten
        raise Trouble("invalid", "the branch holds more files than GitHub lists")
    return {one.path: (one.sha, one.size or 0) for one in tree.tree if one.type == "blob"}


def _decoded(content: str) -> str:
    try:
        return base64.b64decode(content).decode("utf-8")
    except ValueError:  # no text: whoever reads it finds it damaged
        return ""
