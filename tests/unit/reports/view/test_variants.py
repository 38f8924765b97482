"""Variants in the reports: what is said of an arm, and where."""

import json
from collections.abc import Mapping
from typing import Any

import pytest

from agentevals_action.reports.page.report_page import report_page
from agentevals_action.reports.summary_json import review_summary
from agentevals_action.reports.view.build import build_view, rank
from agentevals_action.reports.view.variants import describe_variant, list_tests
from tests.support import reviews

HAIKU: dict[str, Any] = {"name": "haiku", "target": "haiku"}
NOT_HURT: dict[str, Any] = {"must": "not-hurt"}
HELP: dict[str, Any] = {"must": "help"}
#: The verdicts in both arms (p: pass, f: fail, e: error), samples, fields of the variant, what is
#: said, and the rank of the suite.
SAID: dict[str, tuple[str, str, int, Mapping[str, Any], str, int]] = {
    "help": ("ppppp", "ffffp", 3, {}, "20%: +80% (41 to 100)", 2),
    "harm": ("ffffp", "ppppp", 3, {}, "100%: −80% (−100 to −41): worse", 1),
    "no interval of one test": ("p", "f", 3, {}, "0%: +100% (p = 0.05)", 2),
    "an interval with 0": ("ffff", "pfff", 5, {}, "25%: −25% (p = 0.004): worse", 1),
    "nothing shown": ("pppp", "pppf", 2, {}, "75%: no help shown", 2),
    "nothing shown about a target": ("pp", "pp", 3, HAIKU, "100%: no difference shown", 2),
    "too few": (
        *("ppp", "fff", 1, {}),
        *("0%: no help shown; 3 tests × 1 could show none", 2),
    ),
    "no result in both arms": ("pp", "ee", 1, {}, "no test was scored in both arms", 2),
    "a condition that is not met": (
        *("pp", "pp", 3, HELP),
        *("100%: no help shown; ❌ `must: help` is not met", 0),
    ),
    "a condition that is met": ("pp", "ff", 3, HELP, "0%: +100%", 2),
    "a condition that is not decided": (
        *("ppp", "ppe", 3, NOT_HURT),
        *("100%: no help shown; ⚠️ `must: not-hurt` could not be decided", 1),
    ),
}
VERDICTS = {"p": "pass", "f": "fail", "e": None}


def suite(head: str, variant: str, samples: int = 3, **fields: Any) -> Any:
    return reviews.armed(
        [VERDICTS[v] for v in head], [VERDICTS[v] for v in variant], samples, **fields
    )


@pytest.mark.parametrize("name", SAID)
def test_describe__an_arm_in_words(name: str) -> None:
    head, variant, samples, fields, words, place = SAID[name]
    made = suite(head, variant, samples, **fields)
    (found,) = made.variants
    assert describe_variant(found).startswith(words)
    assert rank(made) == place


def test_list__tests_by_the_arms_that_they_pass_in() -> None:
    (found,) = suite("ppffp", "pfpfe").variants
    assert list_tests(found) == [
        ("1 test passes only with the skill", ["t2"]),
        ("1 test passes only without the skill", ["t3"]),
        ("1 test passes in both (consider removing)", ["t1"]),
        ("1 test fails in both (too hard, or broken)", ["t4"]),
        ("1 test does not count", ["t5"]),
    ]
    (found,) = suite("pp", "pp", **HAIKU).variants
    assert list_tests(found) == [("2 tests pass in both", ["t1", "t2"])]


def test_comment__has_a_column_only_with_a_variant() -> None:
    text = reviews.comment(reviews.review(suite("pp", "pf")), reviews.LINKS)
    assert "| Mean score | Without the skill |" in text
    assert "<summary>Variants</summary>" in text
    text = reviews.comment(reviews.review(suite("pp", "pf", **HAIKU)), reviews.LINKS)
    assert "| Mean score | `haiku` |" in text
    alone = reviews.comment(reviews.read("all-passed"), reviews.LINKS)
    assert "ariant" not in alone


def test_comment__two_variants_have_their_names_in_one_column() -> None:
    both = suite("pp", "pf", 2), suite("pp", "pp", **HAIKU)
    text = reviews.comment(reviews.review(*both), reviews.LINKS)
    assert "| Mean score | Variants |" in text
    assert "| without the skill 50%: no help shown |" in text
    assert "| `haiku` 100%: no difference shown |" in text


def test_condition__that_is_not_met_is_open_and_annotated() -> None:
    review = reviews.review(suite("pp", "pf", 2, **HELP))
    text = reviews.comment(review, reviews.LINKS)
    assert "❌" in text
    assert "### Variants" in text
    ((annotation,), _) = reviews.annotations(review, 10)
    assert (annotation.path, annotation.line, annotation.level) == (reviews.PATH, 7, "failure")
    assert annotation.title == "The condition `must: help` is not met"
    assert "1 test passes only with the skill: t2" in annotation.message


def test_summary__has_each_arm_and_each_test() -> None:
    review = reviews.review(suite("pp", "pf", 2, **HELP))
    (entry,) = json.loads(review_summary(build_view(review)))["suites"]
    (arm,) = entry["variants"]
    assert (arm["name"], arm["skill"], arm["must"]) == ("without_skill", False, "help")
    assert (arm["outcome"], arm["first"]["helps"]) == ("failed", False)
    assert [(test["id"], test["declared"], test["variant"]) for test in arm["tests"]] == [
        ("t1", "pass", "pass"),
        ("t2", "pass", "fail"),
    ]


def test_page__has_the_answer_of_each_arm() -> None:
    page = report_page(build_view(reviews.review(suite("pp", "pf"))))
    assert '<h2 id="variants">Variants</h2>' in page
    assert '"variants":[{' in page
    assert '"name":"Without the skill"' in page
