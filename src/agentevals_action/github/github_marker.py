"""The hidden first line of our comments: which gate, which run and which head a comment speaks
for."""

import json
import re
from dataclasses import dataclass

from agentevals_action.model.comparison import Outcome

_MARKER = re.compile(r"<!-- agentevals:v1 (\{[^\n<>]*\}) -->")

_ENDINGS = (("<", r"\u003c"), (">", r"\u003e"), ("--", r"-\u002d"))


@dataclass(frozen=True)
class Marker:
    """`comment_id` tells gates apart, `run` and `attempt` order the runs, `head` is the commit,
    `outcome` what was told of it."""

    comment_id: str
    run: int
    attempt: int
    head: str
    outcome: Outcome

    def line(self) -> str:
        """The marker as an HTML comment on one line."""
        data = {
            "id": self.comment_id,
            "run": self.run,
            "attempt": self.attempt,
            "head": self.head,
            "outcome": self.outcome.value,
        }
        text = json.dumps(data, separators=(",", ":"))
        for live, written in _ENDINGS:  # nothing in the names may end the HTML comment
            text = text.replace(live, written)
        return f"<!-- agentevals:v1 {text} -->"

    def yields_to(self, other: "Marker") -> bool:
        """Whether a comment with the marker `other`, on the same head, is from a newer run than
        this one.

        A re-run is begun by hand when the first attempts are over, so that it counts as later than
        the first attempt of any run."""
        if other.run == self.run:
            return other.attempt > self.attempt
        return other.run > self.run and other.attempt >= self.attempt


def read_marker(body: str) -> Marker | None:
    """The marker that a comment begins with, None when it begins with none: one further down is
    text that somebody quoted."""
    match = _MARKER.match(body.lstrip("\ufeff \t\r\n"))
    if match is None:
        return None
    try:
        data = json.loads(match[1])
        marker = Marker(
            data["id"], data["run"], data["attempt"], data["head"], Outcome(data["outcome"])
        )
    except (ValueError, KeyError):
        return None
    texts, numbers = (marker.comment_id, marker.head), (marker.run, marker.attempt)
    sound = all(isinstance(text, str) for text in texts) and all(
        type(number) is int for number in numbers
    )
    return marker if sound else None
