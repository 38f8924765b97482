"""The entries of a quarantine that the comment proposes: what a reader copies out of the comment is
a file that holds for these tests alone."""

import html
import re
from dataclasses import replace
from datetime import date

import pytest

from agentevals_action.model.comparison import Finding, Review
from agentevals_action.model.quarantine import Quarantine
from agentevals_action.review.comparison.waivers import entry_for
from agentevals_action.suites.configuration_file import parse_configuration, read_quarantines
from tests.support import markdown as oracle
from tests.support import reviews

TIME = "2026-01-03T23:10:00.000Z"
#: Ids, and other ids, which their entries do not hold for.
IDS = [
    ("refund-window", "refund-window-2"),
    ("a*b", "axxb"),
    ("[a-z]?", "ab"),
    ("!never", "never"),
    ("{a,b}{a,b}{a,b}{a,b}{a,b}{a,b}{a,b}{a,b}{a,b}{a,b}{a,b}", "a"),
    ("yes", "no"),
    ("1e3", "1000"),
    ("- x: 'y' \"z\" # &a *b", "x"),
    (" spaces ", "spaces"),
    ("two\nlines: [x", "two"),
    ("pr\N{LATIN SMALL LETTER U WITH DIAERESIS}fung \N{GRINNING FACE}", "pruefung"),
    ("\u202etfel\u200b\x07\x85\u2028", "tfel"),
    ("``` ~~~ </details> <!-- agentevals-report --> @octocat #1", "x"),
    ("back\\slash", "backslash"),
]


def known_failure(
    *ids: str, path: str = reviews.PATH, time: str = TIME, flaky: tuple[str, ...] = ()
) -> Review:
    """A review whose tests fail on both sides, or are flaky."""
    cleared = reviews.evidence(Finding.CLEARED, (5, 5), (3, 3))
    failing = [reviews.result(id, "fail", path=path) for id in (*ids, *flaky)]
    base = [reviews.result(id, "pass" if id in flaky else "fail") for id in (*ids, *flaky)]
    evidence = dict.fromkeys(flaky, cleared)
    suite = reviews.compared(tuple(failing), tuple(base), path, evidence)
    return reviews.review(suite, time=time)


def copied(review: Review, author: str = "") -> tuple[Quarantine, ...]:
    """The entries of the file that a reader copies."""
    text = reviews.comment(review, replace(reviews.LINKS, author=author))
    block = text.partition("<summary>Entries of a quarantine")[2]
    found = re.search("<pre.*?><code.*?>(.*?)</code></pre>", oracle.rendered(block), re.DOTALL)
    assert found is not None, text
    file = parse_configuration(html.unescape(found[1]).encode())
    quarantines = read_quarantines(file, date(2026, 1, 3))
    assert quarantines.errors == ()
    return quarantines.head


@pytest.mark.parametrize(("id", "other"), IDS)
@pytest.mark.parametrize("path", [reviews.PATH, "e*[v]als/{a,b} !'x'/EVAL.yaml"])
def test_entry__holds_for_the_test_and_no_other(id: str, other: str, path: str) -> None:
    entries = copied(known_failure(id, path=path))
    assert entry_for(entries, path, id) is not None
    assert entry_for(entries, path, other) is None
    assert entry_for(entries, "evals/other/EVAL.yaml", id) is None


def test_entry__has_the_author_as_its_owner_and_lasts_14_days() -> None:
    (entry,) = copied(known_failure("a"), author="ada")
    assert (entry.owner, entry.expires) == ("@ada", date(2026, 1, 17))
    assert entry.reason == "fails on the base, too; write here what will repair it"
    assert copied(known_failure("a"))[0].owner == "@you"


def test_entries__are_one_for_each_suite_and_reason() -> None:
    entries = copied(known_failure("a", "b", flaky=("c",)))
    assert [(entry.tests, entry.reason.partition(";")[0]) for entry in entries] == [
        (("c",), "flaky"),
        (("a", "b"), "fails on the base, too"),
    ]


def test_entries__of_many_and_of_long_ids_are_cut_and_the_file_stays_valid() -> None:
    many = known_failure(*(f"t{number}-" + "\N{GRINNING FACE}" * 190 for number in range(400)))
    (entry,) = copied(many)
    assert 0 < len(entry.tests) < 400
    assert "quarantine for 400 flaky or known failures" in reviews.comment(many)
    (entry,) = copied(known_failure("a" * 201, "b"))
    assert entry.tests == ("b",)


def test_entries__without_such_a_test_or_a_time_are_none() -> None:
    regressed = reviews.compared((reviews.result("a", "fail"),), (reviews.result("a"),))
    held = Quarantine(tests=("a",), owner="ada", reason="x", expires=date(2026, 3, 1))
    known = reviews.compared((reviews.result("a", "fail"),), (reviews.result("a", "fail"),))
    for review in (
        reviews.review(regressed, time=TIME),
        reviews.review(reviews.waived(known, {"a": held}, {}), time=TIME),
        known_failure("a", time=""),
    ):
        assert "Entries of a quarantine" not in reviews.comment(review)


def test_entries__stand_beside_the_label() -> None:
    text = reviews.comment(known_failure("a"))
    assert "The label `agentevals:accept` on this pull request accepts its regressions" in text
