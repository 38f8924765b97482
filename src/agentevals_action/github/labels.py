"""The label that accepts regressions: whether it is on the pull request, who put it there, and
whether for the head as it is now.

Where a commit stands in the timeline goes by the commit's own dates, and these are the author's to
write. So the order of events alone proves nothing: GitHub must also have begun a check of this very
head before the label was put on, at a time that GitHub noted itself."""

from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass, replace
from datetime import datetime
from typing import Any, TypeVar

from agentevals_action.github.api import GitHubApi, Target, Trouble
from agentevals_action.github.github_words import refusal
from agentevals_action.model.quarantine import Acceptance

T = TypeVar("T")

_LABELLING = ("labeled", "unlabeled")
_FORCED = "head_ref_force_pushed"
_MOVING = ("committed", _FORCED)
#: As GitHub calls the account of somebody who has left.
_NOBODY = "ghost"


@dataclass(frozen=True)
class _Pull:
    """The pull request as it is now; `labels` in lower case, as GitHub tells labels apart."""

    head_sha: str
    head_ref: str
    labels: frozenset[str]


@dataclass(frozen=True)
class _Event:
    """One event of the timeline; a commit has no time of its own that GitHub noted."""

    kind: str
    label: str = ""
    by: str = _NOBODY
    at: datetime | None = None


@dataclass(frozen=True)
class _PutOn:
    """The last time that the label was put on; `stands` says that no change of the head comes after
    it, `forced` when the head was last replaced by another."""

    by: str
    at: datetime
    stands: bool
    forced: datetime | None


class GitHubLabels:
    """What the labels of one pull request say. What cannot be told goes to `say`, a sentence
    each."""

    def __init__(
        self, api: GitHubApi, target: Target, number: int, say: Callable[[str], None]
    ) -> None:
        self._api = api
        self._target = target
        self._number = number
        self._say = say

    def acceptance(self, label: str) -> Acceptance | None:
        """Who takes the regressions of the head on by this label; None when it is not on, was put
        on for another head, or when that cannot be told."""
        unknown = f"The label `{label}` accepts nothing, since it could not be told for which head it was put on"
        pull = self._asked(self._pull, unknown, "pull-requests: read")
        if pull is None or label.casefold() not in pull.labels:
            return None
        if pull.head_sha != self._target.head_sha:
            self._refuse(label, "the pull request has another head by now")
            return None
        events = self._asked(self._events, unknown, "pull-requests: read")
        if events is None:
            return None
        put = _put_on(events, label)
        if put is None:
            self._refuse(label, "GitHub does not say who put it there")
        elif not put.stands:
            self._refuse(label, f"the head has changed since @{put.by} put it there")
        elif (
            known := self._asked(lambda: self._known_before(pull, put), unknown, "checks: read")
        ) is False:
            self._refuse(
                label,
                f"when @{put.by} put it there, no check of this head had begun yet: it may have been meant for another",
            )
        elif known:
            return Acceptance(put.by, label)
        return None

    def _refuse(self, label: str, why: str) -> None:
        again = "To accept the regressions of this head, take it off and put it on again"
        self._say(f"The label `{label}` accepts nothing: {why}. {again}.")

    def _asked(self, call: Callable[[], T], what: str, permission: str) -> T | None:
        try:
            return self._api.ask(call)
        except Trouble as trouble:
            self._say(refusal(what, trouble, permission))
            return None

    def _pull(self) -> _Pull:
        pull = self._api.repository.get_pull(self._number)
        return _Pull(
            pull.head.sha, pull.head.ref, frozenset(label.name.casefold() for label in pull.labels)
        )

    def _events(self) -> list[_Event]:
        timeline = self._api.repository.get_issue(self._number).get_timeline()
        return [
            _event(event.raw_data) for event in timeline if event.event in (*_LABELLING, *_MOVING)
        ]

    def _known_before(self, pull: _Pull, put: _PutOn) -> bool:
        """Whether a check of this head began before the label was put on, and after the head was
        last replaced by another.

        A head that only grows does not come back to what it was: it was this one then, and has been
        since."""
        suites = self._api.repository.get_commit(pull.head_sha).get_check_suites()
        # The same commit may have been checked on another branch before.
        began = [
            suite.created_at for suite in suites if suite.head_branch in (None, "", pull.head_ref)
        ]
        return any(at < put.at and (put.forced is None or at >= put.forced) for at in began if at)


def _put_on(events: Iterable[_Event], label: str) -> _PutOn | None:
    """How the label came to be on, by the events in their order; None when they do not end with its
    being put on."""
    put: _PutOn | None = None
    forced: datetime | None = None
    for event in events:
        if event.kind == _FORCED:
            forced = event.at
        if event.kind in _MOVING and put:
            put = replace(put, stands=False)
        elif event.kind in _LABELLING and event.label.casefold() == label.casefold():
            put = (
                _PutOn(event.by, event.at, stands=True, forced=forced)
                if event.kind == "labeled" and event.at
                else None
            )
    return put


def _event(data: Mapping[str, Any]) -> _Event:
    kind = data["event"]
    if kind == "committed":
        return _Event(kind)
    at = datetime.fromisoformat(data["created_at"])
    if kind == _FORCED:
        return _Event(kind, at=at)
    actor = data.get("actor") or {}
    return _Event(kind, data["label"]["name"], actor.get("login") or _NOBODY, at)
