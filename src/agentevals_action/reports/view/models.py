"""What a report template gets: words made ready and escaped, nothing to compute. Every text here is
Markdown."""

from dataclasses import dataclass

MARKER = "<!-- agentevals-report -->"


@dataclass(frozen=True)
class Limits:
    """How much of a review is told. Counts of things and, where it says so, characters of a text
    before escaping.

    `detailed` tests that got worse are told with question and answers (cut to `answer` characters),
    `lines` more in a line each; `folded` and `quiet` lines stand in a folded list of what changed
    and of what did not (0: a count alone); `items` is for everything else that is listed; `text`
    cuts what stands in a line."""

    name: str
    detailed: int
    answer: int
    lines: int
    folded: int
    quiet: int
    items: int
    text: int


@dataclass(frozen=True)
class SuiteRow:
    """One row of the table of suites; `sign` says at a glance how it stands."""

    sign: str
    suite: str
    pass_rate: str
    score: str
    regressed: str
    cost: str
    tokens: str
    time: str


@dataclass(frozen=True)
class Columns:
    """Which columns of the table of suites say something: what nobody knows has none."""

    regressed: bool
    cost: bool
    tokens: bool


@dataclass(frozen=True)
class Listing:
    """A list with what it counts (`3 tests improved`); `left` says how many are not in `lines`,
    empty when all are; `note` is what it means, in a sentence."""

    title: str
    lines: tuple[str, ...] = ()
    left: str = ""
    note: str = ""


@dataclass(frozen=True)
class Answer:
    """What one side answered: `side` and its verdict in words, `text` a fenced block."""

    side: str
    verdict: str
    text: str


@dataclass(frozen=True)
class Entry:
    """One test told at length: `facts` stand in one line, `misses` are a list. `conversation` is
    the heading that turns of one conversation stand under, given with the first of them; `turn` is
    this one's, empty for a test that stands by itself."""

    conversation: str
    turn: str
    test: str
    moved: str
    facts: tuple[str, ...]
    misses: Listing
    question: str
    answers: tuple[Answer, ...]


@dataclass(frozen=True)
class Worse:
    """Tests that need a reviewer: the first at length, more in a line each, `left` counts the rest
    in words."""

    title: str
    entries: tuple[Entry, ...] = ()
    lines: tuple[str, ...] = ()
    left: str = ""


@dataclass(frozen=True)
class View:
    """A review made ready for a template. What there is nothing of is None or empty.

    `alert` is GitHub's word (`CAUTION`), `verdict` the one sentence, `reasons` all reasons when the
    sentence does not hold them all. `regressions` are regressions and failed gates, `failures`
    other failures that have no base to be compared with, `accepted` regressions that somebody took
    on. `undecided`, `flaky` and `quarantined` tests do not count. `noise` says where each suite's
    base results come from, and how sure its differences are. `errors_open` asks to show the errors
    unfolded. `spent` says what the run cost. `notices_folded` are those past the first few.
    `shortened` says that things are left out, and where they are."""

    marker: str
    alert: str
    verdict: str
    reasons: tuple[str, ...]
    columns: Columns
    suites: tuple[SuiteRow, ...]
    suites_left: str
    diagnostics: Listing | None
    regressions: Worse | None
    failures: Worse | None
    accepted: Worse | None
    gone: Listing | None
    errors: Listing | None
    errors_open: bool
    undecided: Listing | None
    flaky: Listing | None
    quarantined: Listing | None
    improvements: Listing | None
    changed_questions: Listing | None
    new: Listing | None
    removed: Listing | None
    still_failing: Listing | None
    not_compared: Listing | None
    moved_scores: Listing | None
    baseline: str
    baseline_notes: tuple[str, ...]
    noise: Listing | None
    spent: str
    selections: Listing | None
    warnings: Listing | None
    notices: tuple[str, ...]
    notices_folded: Listing | None
    shortened: str
    footer: str
