"""Pure: the agent's own code, as the input `watch` names it."""

from collections.abc import Sequence
from dataclasses import dataclass

from agentevals_action.model import path_patterns


@dataclass(frozen=True)
class WatchRule:
    """A change of a file that matches `files` touches the suites that match `suites`; `!` in front
    of `files` takes them out again.

    Both are globs over paths relative to the repository; `suites` None means every suite."""

    files: str
    suites: str | None = None

    def __str__(self) -> str:
        return self.files if self.suites is None else f"{self.files} => {self.suites}"


def read_rule(text: str) -> WatchRule:
    """One rule as written, `glob` or `glob => suite glob`; ValueError says what to write."""
    files, arrow, suites = (part.strip() for part in text.partition("=>"))
    if not files.removeprefix("!") or (arrow and not suites) or "=>" in suites:
        raise ValueError("write `glob` or `glob => suite glob`, one a line")
    return WatchRule(files, suites or None)


def rule_for(rules: Sequence[WatchRule], path: str, suite: str) -> WatchRule | None:
    """The rule by which a file is the agent's own code for a suite, None if it is not; the last
    rule that matches decides."""
    for rule in reversed(rules):
        if path_patterns.matches(path, rule.files.removeprefix("!")) and (
            rule.suites is None or path_patterns.matches(suite, rule.suites)
        ):
            return None if rule.files.startswith("!") else rule
    return None
