"""The comment, the check run's text and the job summary."""

import re
from dataclasses import replace
from typing import Any

import pytest

from agentevals_action.errors import InvalidInput
from agentevals_action.model.baseline import IncompleteSource
from agentevals_action.model.comparison import Finding, Review
from agentevals_action.model.diagnostic import Diagnostic, Location
from agentevals_action.model.quarantine import FILE
from agentevals_action.model.run import CommentTemplate, Policy, Selection
from agentevals_action.reports.markdown import texts as markdown
from agentevals_action.reports.view.models import Links
from tests.conftest import Golden
from tests.support import markdown as oracle
from tests.support import reviews

NOWHERE = Links()
_TIME = re.compile(r"(?:\d+(?:\.\d)?(?:&nbsp;| )(?:s|min|h)\b(?:&nbsp;| )?)+")


@pytest.mark.slow
@pytest.mark.parametrize("name", reviews.REVIEWS)
def test_comment__of_each_review_is_below_the_limit_and_states_its_outcome(name: str) -> None:
    review = reviews.REVIEWS[name]()
    assert review.decision.outcome is reviews.OUTCOMES[name]
    text = reviews.comment(review, reviews.LINKS)
    assert len(text) < 65_000
    assert f"**{review.decision.outcome.capitalize()}:**" in text.splitlines()[2]


@pytest.mark.parametrize(
    ("name", "links"),
    [
        ("regression-and-gate", reviews.UPLOADED),
        ("believable", reviews.LINKS),
        ("edited", reviews.UPLOADED),
        ("runners", reviews.UPLOADED),
        ("invalid-suite", reviews.LINKS),
        ("hostile", reviews.LINKS),
        ("many-regressions", reviews.UPLOADED),
    ],
)
def test_comment__as_people_read_it(name: str, links: Links, golden: Golden) -> None:
    golden.check(f"{name}.md", reviews.comment(reviews.REVIEWS[name](), links))


def test_errors__of_tests_with_a_verdict_are_not_theirs() -> None:
    """An error that prevented a confirmation did not end the test."""
    names = ("a", "b")
    found = reviews.evidence(Finding.ERROR, (1, 1), (0, 1), reason="no route")
    suite = reviews.compared(
        tuple(reviews.result(name, "fail", error="no route") for name in names),
        tuple(map(reviews.result, names)),
        evidence=dict.fromkeys(names, found),
    )
    text = reviews.comment(reviews.review(suite), NOWHERE)
    assert "ended in an error" not in text
    assert "### 2 tests got worse and could not be confirmed" in text


def test_comment__equal_answers_of_agents_that_acted_otherwise_have_the_calls() -> None:
    answered = [reviews.result("a", verdict, answer="Done.") for verdict in ("fail", "pass")]
    look = ("look", {"id": 7})
    mail = ("send_email", {"to": "all@example.com", "text": "```\n@ada <!-- x"})
    head, base = reviews.said(answered[0], look, mail), reviews.said(answered[1], look)
    text = reviews.comment(reviews.review(reviews.compared((head,), (base,))), NOWHERE)
    folded = text.partition("<summary>Question, answers and tool calls that differ</summary>")[2]
    assert "**Both answers are equal** (base pass, 1.00; head fail, 0.20)" in folded
    assert "Base's tool calls" not in folded
    assert (
        "**Head's tool calls that differ** (1 of 2)\n\n~~~text\n"
        'send_email {"text": "```\\n@ada <!\u200b-- x", "to": "all@example.com"}\n~~~\n'
    ) in folded


def test_check__as_people_read_it(golden: Golden) -> None:
    title, summary = reviews.check(reviews.regression_and_gate(), reviews.UPLOADED, 12)
    assert title == "Failed: 2 tests regressed (1 of them failed a required gate)."
    assert "12 more annotations are not shown." in summary
    golden.check("check.md", summary)


def test_comment__only_the_time_changes_between_two_runs() -> None:
    def run(factor: float) -> str:
        tests = [
            reviews.result(f"t{number}", "fail" if number else "pass", duration_ms=1000.0 * factor)
            for number in range(2)
        ]
        base = [reviews.result(f"t{number}", duration_ms=700.0 * factor) for number in range(2)]
        suite = reviews.compared(tuple(tests), tuple(base))
        return reviews.comment(reviews.review(suite, duration_ms=9000 * factor), reviews.LINKS)

    first, second = run(1), run(7)
    assert first != second
    assert _TIME.sub("TIME", first) == _TIME.sub("TIME", second)


def test_notices__equal_ones_are_counted_and_many_are_folded() -> None:
    suite = reviews.compared((reviews.result("a"),), (reviews.result("a"),))
    five = reviews.review(suite, notices=("b", "a", "b", "c", "d", "e", "b"))
    text = reviews.comment(five, NOWHERE)
    shown = [line for line in text.splitlines() if line.startswith("> ")][2:]
    assert shown == ["> b (3 times)", "> a", "> c", "> d", "> e"]
    seven = reviews.with_facts(five, notices=("f", "`g` <b>"))
    text = reviews.comment(seven, NOWHERE)
    assert "<details><summary>2 more notices</summary>\n\n- f\n- `g` &#60;b&#62;\n" in text


def wordy(number: int) -> Review:
    """So many regressions and as many failed gates, with long answers."""
    gates: dict[str, Any] = {"gates": ("g",), "failed": ("g",)}
    head = [reviews.result(f"t{test}", "fail", answer=f"{test} " * 900) for test in range(number)]
    head += [
        reviews.result(f"g{test}", "fail", answer=f"{test} " * 900, **gates)
        for test in range(number)
    ]
    base = [reviews.result(test.eval_id, answer="x" * 3_000) for test in head]
    return reviews.review(reviews.compared(tuple(head), tuple(base)))


def test_comment__lists_are_cut_and_the_link_stays_if_it_is_too_long() -> None:
    full = reviews.comment(wordy(5), reviews.LINKS)
    assert "The lists are cut" not in full
    assert full.count("Question and answers<") == 10
    cut = reviews.comment(wordy(30), reviews.LINKS)
    assert "[run's summary](https://github.com/acme/support-agent/actions/runs/42)" in cut
    assert cut.count("\n- … and 15 more") == 2
    assert cut.count("Question and answers<") == 6
    uploaded = reviews.comment(wordy(30), reviews.UPLOADED)
    assert f"**[Open the report]({reviews.UPLOADED.report_url})**" in uploaded
    assert f"the [report page]({reviews.UPLOADED.report_url})." in uploaded
    assert "the report folder" in reviews.comment(wordy(30), NOWHERE)


def test_comment__nothing_in_it_comes_alive_but_what_is_ours() -> None:
    for links in (reviews.LINKS, reviews.UPLOADED, NOWHERE):
        page = oracle.rendered(reviews.comment(reviews.hostile(), links))
        outside = oracle.text_outside_code(page)
        assert not re.search(r"@\w|#\d|www\.\w|(?i:gh-\d)|evil\.example/", outside)
        assert all(
            address.startswith(
                (
                    "https://github.com/acme/support-agent/",
                    "https://github.com/org/agentevals-action/blob/main/docs/",
                )
            )
            for address in re.findall(r'href="([^"]*)"', page)
        )
        for forbidden in ("<img", "<script", "<a href='", "onerror=", "<h1"):
            assert forbidden not in re.sub(
                r"<pre.*?</pre>|<code>.*?</code>", "", page, flags=re.DOTALL
            )
        assert page.count("<details") == page.count("</details>")


def test_comment__the_marker_is_there_once_and_cannot_be_forged() -> None:
    text = reviews.comment(reviews.hostile(), reviews.LINKS)
    assert text.count("<!--") == 1
    assert text.splitlines()[0] == markdown.MARKER


@pytest.mark.parametrize(
    "word", ["`" * 300, "|" * 300, "@a#1" * 90, "\U0001f642" * 300, "\n" * 300, "<!--" * 80]
)
def test_comment__always_fits(word: str) -> None:
    fields: dict[str, Any] = {
        "conversation_id": word,
        "misses": (word,) * 7,
        "gates": (word,),
        "failed": (word,),
        "answer": word * 50,
        "question": word * 50,
    }
    called = [(f"{number}{word}", {word: word}) for number in range(60)]
    head = tuple(
        reviews.said(reviews.result(f"{number}{word}", "fail", **fields), *called)
        for number in range(12)
    )
    head += tuple(reviews.result(f"e{number}{word}", None, error=word) for number in range(12))
    base = tuple(reviews.result(row.eval_id, answer=word) for row in head)
    diagnostics = (Diagnostic(Location(word, 1, 1), word, word),) * 40
    review = reviews.review(
        *(reviews.compared(head, base, path=f"{word}/{suite}.yaml") for suite in range(2)),
        invalid=diagnostics,
        warnings=diagnostics,
        gone_suites=(word,) * 40,
        notices=(word,) * 40,
        baseline=replace(reviews.BASELINE, tried=(IncompleteSource(word, word),) * 40),
        selections=(Selection(word, (word,) * 9),) * 40,
    )
    assert len(reviews.comment(review, reviews.LINKS).encode("utf-16-le")) // 2 <= 65_000
    title, summary = reviews.check(review, NOWHERE)
    assert (len(title) <= 255, "\n" in title, len(summary) <= 65_535) == (True, False, True)


def test_job_summary__is_not_cut_where_the_comment_is() -> None:
    summary = reviews.job_summary(wordy(30), reviews.LINKS)
    assert len(summary) > 65_000
    assert "The lists are cut" not in summary
    assert markdown.MARKER not in summary


def test_verdict__what_got_worse_is_stated_also_when_it_does_not_block() -> None:
    head = (reviews.result("a", "fail", gates=("g",), failed=("g",)),)
    suite = reviews.compared(head, (reviews.result("a", gates=("g",)),))
    text = reviews.comment(reviews.review(suite, policy=Policy(frozenset({"never"}))), NOWHERE)
    assert text.splitlines()[1:3] == [
        "> [!IMPORTANT]",
        "> **Passed:** 1 test in 1 suite, 1 fail; 1 test regressed and failed a required gate; "
        "this does not block, because of the input `fail-on`.",
    ]


def test_verdict__of_no_suite_names_those_of_the_repository() -> None:
    text = reviews.comment(reviews.nothing_touched(), NOWHERE)
    assert "the change affects no suite (of 14 suites in the repository)" in text


def test_diagnostics__of_the_configuration_are_not_attributed_to_a_suite() -> None:
    suite, entry = (
        Diagnostic(Location("a.yaml", 1, 1), "bad"),
        Diagnostic(Location(FILE, 3, 5), "expired"),
    )
    text = reviews.comment(reviews.review(invalid=(entry,)))
    assert "### 1 error in `.agentevals.yaml`" in text
    text = reviews.comment(reviews.review(invalid=(suite, entry)))
    assert "### 2 errors in suites that the change affects and in `.agentevals.yaml`" in text


def test_removed__is_visible_and_not_folded_at_every_length() -> None:
    text = reviews.comment(reviews.gone(), NOWHERE)
    visible = re.sub(r"<details>.*?</details>", "", text, flags=re.DOTALL)
    names = ("evals/safety/EVAL.yaml", "leaks-no-address", "no-unapproved-refund", "quality/safe")
    assert all(f"`{name}`" in visible for name in names)
    assert "were removed" in reviews.check(reviews.gone(), NOWHERE)[0]
    shortest = reviews.with_facts(wordy(30), gone_suites=("evals/safety/EVAL.yaml",))
    assert "- suite `evals/safety/EVAL.yaml`" in reviews.comment(shortest, NOWHERE)


def test_group__of_more_than_five_tests_is_a_list_with_folded_answers() -> None:
    heads = [reviews.result(f"t{place}", "fail", misses=("m", "n")) for place in range(6)]
    bases = [reviews.result(head.eval_id) for head in heads]
    text = reviews.comment(reviews.review(reviews.compared(tuple(heads), tuple(bases))), NOWHERE)
    shown, _, folded = text.partition("<details><summary>Questions and answers of the 6 tests")
    assert (shown.count("· missed: m (+1)"), shown.count("####")) == (6, 0)
    assert folded.count("#### `t") == 6


def custom(text: str) -> CommentTemplate:
    return CommentTemplate("mine.md.j2", text)


def test_template__a_custom_one_replaces_a_block() -> None:
    template = custom(
        '{% extends "comment.md.j2" %}{% block details %}\nOurs, {{ parts.footer() }}\n{% endblock %}'
    )
    markdown.check_template(template)
    lines = reviews.comment(reviews.gone(), NOWHERE, template).splitlines()
    assert (lines[0], lines[-1][:23]) == (markdown.MARKER, "Ours, agentevals-action")


def test_template__without_the_marker_is_an_error() -> None:
    for text in ("hello", "`{{ marker }}`", f"{'x' * 70_000}\n{{{{ marker }}}}"):
        with pytest.raises(InvalidInput, match=r"the template mine\.md\.j2 loses the marker"):
            markdown.check_template(custom(text))


def test_template__that_is_too_long_is_cut() -> None:
    text = reviews.comment(reviews.gone(), NOWHERE, custom("{{ marker }}\n" + "x\n" * 70_000))
    assert len(text) <= 65_000
    assert "its end is cut off" in text
