"""The comment, the check run's text and the job summary."""

import re
from dataclasses import replace
from datetime import date
from pathlib import Path
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from agentevals_action.errors import InvalidInput
from agentevals_action.model.baseline import BaselineInfo, BaselineOrigin, IncompleteSource
from agentevals_action.model.comparison import (
    ChangeKind,
    Evidence,
    Finding,
    SuiteComparison,
    TestComparison,
)
from agentevals_action.model.diagnostic import Diagnostic, Location
from agentevals_action.model.edits import Edit, EditKind
from agentevals_action.model.messages import wire_message
from agentevals_action.model.quarantine import Quarantine
from agentevals_action.model.result import ErrorInfo, EvaluatorResult, TestResult, TraceSummary
from agentevals_action.model.review import CommentTemplate, Review, Selection
from agentevals_action.model.suite import Message, ToolCall
from agentevals_action.reports import markdown
from agentevals_action.reports.view.links import Links
from agentevals_action.reports.view.page import MARKER
from agentevals_action.review.comparison.compare import Knowledge
from agentevals_action.review.gate import Policy
from tests.conftest import Golden
from tests.support import markdown as oracle
from tests.support import results, review_at_scale, reviews

NOWHERE = Links()
_TIME = re.compile(r"(?:\d+(?:\.\d)?(?:&nbsp;| )(?:s|min|h)\b(?:&nbsp;| )?)+")


@pytest.mark.slow
@pytest.mark.parametrize("name", reviews.GOLDEN)
def test_comment__as_people_read_it(name: str, golden: Golden) -> None:
    review = reviews.GOLDEN[name]()
    assert review.decision.outcome is reviews.OUTCOMES[name]
    text = reviews.comment(review, reviews.LINKS)
    assert len(text) < 65_000
    golden.check(f"{name}.md", text)


def test_comment__at_scale_as_people_read_it(golden: Golden) -> None:
    review = review_at_scale.at_scale()
    tests = [test for suite in review.suites for test in suite.tests]
    assert (len(review.suites), len(tests)) == (12, 150)
    assert sum(test.is_regression for test in tests) == 20
    golden.check("at-scale.md", reviews.comment(review, reviews.LINKS))


def test_comment__with_an_uploaded_page_links_to_it_and_its_tests(golden: Golden) -> None:
    golden.check("uploaded.md", reviews.comment(reviews.regression_and_gate(), reviews.UPLOADED))
    changed = reviews.comment(reviews.many_regressions(200), reviews.UPLOADED)
    assert f"The full report is in the [report page]({reviews.UPLOADED.report_url})." in changed


def test_check__as_people_read_it(golden: Golden) -> None:
    title, summary = reviews.check(reviews.regression_and_gate(), reviews.UPLOADED, 12)
    assert title == "Failed: 2 tests regressed (1 of them failed a required gate)."
    assert "12 more annotations are not shown." in summary
    golden.check("check.md", summary)


def test_job_summary__as_people_read_it(golden: Golden) -> None:
    golden.check(
        "job-summary.md", reviews.job_summary(reviews.regression_and_gate(), reviews.UPLOADED)
    )


def test_comment__without_a_host_has_no_links() -> None:
    text = reviews.comment(reviews.regression_and_gate(), NOWHERE)
    assert "](" not in text
    assert "`refund-over-limit`" in text


def test_comment__only_the_time_changes_between_two_runs() -> None:
    def run(factor: float) -> str:
        tests = [
            reviews.result(f"t{number}", "fail" if number else "pass", duration_ms=1000.0 * factor)
            for number in range(2)
        ]
        base = [reviews.result(f"t{number}", duration_ms=700.0 * factor) for number in range(2)]
        return reviews.comment(
            reviews.review(reviews.compared(tuple(tests), tuple(base)), duration_ms=9000 * factor),
            reviews.LINKS,
        )

    one, two = run(1), run(7)
    assert one != two
    assert _TIME.sub("TIME", one) == _TIME.sub("TIME", two)


def test_comment__unknown_figures_are_a_dash_and_never_zero() -> None:
    unknown = reviews.compared(
        (reviews.result("a", None, cost_usd=None),), (reviews.result("a", cost_usd=None),)
    )
    known = reviews.compared(
        (reviews.result("a"),), (reviews.result("a"),), path="evals/known.yaml"
    )
    text = reviews.comment(reviews.review(unknown, known), NOWHERE)
    row = next(line for line in text.splitlines() if line.startswith("| ") and reviews.PATH in line)
    assert "100% →&nbsp;–" in row
    assert "1.00 →&nbsp;–" in row
    assert "| – |" in row
    assert "$0" not in row


def called(amount: float, verdict: Any, misses: tuple[str, ...]) -> TestResult:
    call = ToolCall("refund", {"amount": amount})
    trajectory = EvaluatorResult(name="calls", type="tool_trajectory", score=None, misses=misses)
    group = EvaluatorResult(
        name="all", type="composite", score=None, evaluator_results=(trajectory,)
    )
    one = results.result("pays-back", verdict, misses=misses)
    sample = replace(
        one.samples[0],
        output_messages=(wire_message(Message("assistant", "done", tool_calls=(call,))),),
        trace_summary=TraceSummary(tool_call_count=1),
    )
    return replace(one, samples=(sample,), evaluator_results=(group,))


def test_comment__a_regression_of_a_trajectory_shows_the_calls_of_both_sides() -> None:
    miss = 'called "refund" with {"amount": 100}, expected {"amount": 9.5}'
    head, base = called(100, "fail", (miss,)), called(9.5, "pass", ())
    text = reviews.comment(reviews.review(reviews.compared((head,), (base,))), NOWHERE)
    assert f"- missed: {miss}" in text
    assert '**Base\'s tool calls** (1 call)\n\n```text\nrefund {"amount": 9.5}\n```' in text
    assert '**Head\'s tool calls** (1 call)\n\n```text\nrefund {"amount": 100}\n```' in text
    held = reviews.compared((called(100, "fail", ()),), (base,))
    assert "tool calls" not in reviews.comment(reviews.review(held), NOWHERE)


def rows(text: str) -> list[str]:
    return [line for line in text.splitlines() if line.startswith("| ")]


def test_table__has_no_column_that_states_nothing() -> None:
    silent = (reviews.result("a", cost_usd=None),)
    assert rows(reviews.comment(reviews.review(reviews.compared(silent, silent)), NOWHERE))[0] == (
        "| | Suite | Pass rate | Mean score | Regressed | Time |"
    )
    alone = reviews.review(
        reviews.compared(silent, None), baseline=BaselineInfo("none", wanted=False)
    )
    assert rows(reviews.comment(alone, NOWHERE))[0] == "| | Suite | Pass rate | Mean score | Time |"
    known = reviews.compared((reviews.result("a", tokens=(1000, 200)),), silent)
    assert rows(reviews.comment(reviews.review(known), NOWHERE))[0].endswith(
        "| Regressed | Cost | Tokens | Time |"
    )
    assert (
        "| – →&nbsp;$0.0021 | – →&nbsp;1.2k |"
        in rows(reviews.comment(reviews.review(known), NOWHERE))[1]
    )


def test_table__suites_add_up() -> None:
    def suite(path: str, head: float | None, base: float) -> SuiteComparison:
        return reviews.compared(
            (reviews.result("a", cost_usd=head),), (reviews.result("a", cost_usd=base),), path=path
        )

    whole = rows(
        reviews.comment(
            reviews.review(suite("a.yaml", 0.3, 0.1), suite("b.yaml", 0.3, 0.4)), NOWHERE
        )
    )
    assert "| $0.5000 →&nbsp;$0.6000 (+20%) |" in whole[-1]
    part = rows(
        reviews.comment(
            reviews.review(suite("a.yaml", 0.3, 0.1), suite("b.yaml", None, 0.4)), NOWHERE
        )
    )
    assert "| $0.5000 →&nbsp;≥&nbsp;$0.3000 |" in part[-1]


def test_spent__is_stated_once_where_people_look() -> None:
    tests = (reviews.result("a", cost_usd=0.31, replies=120, cached_replies=40),)
    review = reviews.review(
        reviews.compared(tests, None), baseline=BaselineInfo("none", wanted=False)
    )
    text = "This run cost $0.31; 40 of 120 replies came from the cache."
    for text in (
        reviews.comment(review, NOWHERE),
        reviews.check(review, NOWHERE)[1],
        reviews.job_summary(review, NOWHERE),
    ):
        assert text.count(text) == 1


def test_conversation__turns_are_next_to_each_other_in_their_order_wherever_they_are_listed() -> (
    None
):
    def suite(number: int) -> SuiteComparison:
        head = tuple(
            reviews.result(f"{talk}{turn}", "fail", conversation_id=talk, misses=(f"miss {turn}",))
            for turn in range(1, number + 1)
            for talk in ("a", "b")
        )
        return reviews.compared(
            head,
            tuple(reviews.result(one.eval_id, conversation_id=one.conversation_id) for one in head),
        )

    text = reviews.comment(reviews.review(suite(30)), NOWHERE)
    order = [(str(turn), talk) for talk in ("a", "b") for turn in range(1, 31)]
    assert re.findall(r"\| [ab]\d+ \(turn (\d+) of 30 of ([ab])\) \|", text) == order
    assert re.findall(r"turn (\d+) of 30: `([ab])\d+`", text) == order[:40]
    assert text.count("#### Conversation `a`\n") == text.count("#### Conversation `b`\n") == 1


def test_conversation__of_one_test_is_not_mentioned() -> None:
    tests = (reviews.result("a", "fail", conversation_id="alone"),)
    assert "alone" not in reviews.comment(
        reviews.review(reviews.compared(tests, (reviews.result("a"),))), NOWHERE
    )


def test_conversation__is_of_its_suite_alone() -> None:
    tests = (reviews.result("a", "fail", conversation_id="talk"),)
    suites = [
        reviews.compared(tests, (reviews.result("a"),), path=f"evals/{number}.yaml")
        for number in (1, 2)
    ]
    assert "talk" not in reviews.comment(reviews.review(*suites), NOWHERE)


def test_notices__equal_ones_are_counted_and_many_are_folded() -> None:
    suite = reviews.compared((reviews.result("a"),), (reviews.result("a"),))
    five = reviews.review(suite, notices=("b", "a", "b", "c", "d", "e", "b"))
    text = reviews.comment(five, NOWHERE)
    assert [line for line in text.splitlines() if line.startswith("> ")][2:] == [
        "> b (3 times)",
        "> a",
        "> c",
        "> d",
        "> e",
    ]
    text = reviews.comment(replace(five, notices=(*five.notices, "f", "`g` <b>")), NOWHERE)
    assert "> d\n" in text
    assert "<details><summary>3 more notices</summary>\n\n- e\n- f\n- `g` &#60;b&#62;\n" in text


def test_errors__their_kinds_are_in_words() -> None:
    def error(name: str, kind: str) -> TestResult:
        made = reviews.result(name, None, error="why")
        return replace(made, error=ErrorInfo(kind=kind, message="why"))

    head = (
        error("a", "budget"),
        error("b", "workspace"),
        error("c", "budget"),
        error("d", "of <another> tool"),
    )
    text = reviews.comment(
        reviews.review(reviews.compared(head, None), baseline=BaselineInfo("none", wanted=False)),
        NOWHERE,
    )
    title = "4 tests ended in an error: budget spent (2), workspace failed (1), of &#60;another&#62; tool error (1)"
    assert f"<summary>{title}</summary>" in text
    assert "`a` · error · budget spent: why" in text
    assert "`b` · error · workspace failed: why" in text


@pytest.mark.slow
def test_comment__levels_are_chosen_by_measuring() -> None:
    full = reviews.comment(reviews.many_regressions(8), reviews.LINKS)
    changed = reviews.comment(reviews.many_regressions(200), reviews.LINKS)
    counts = reviews.comment(reviews.thousands(), reviews.LINKS)
    assert "shortened" not in full
    assert full.count("Question and answers") == 8
    assert "shortened" in changed
    assert all(f"[case-{number:03}-of-the-long-suite](" in changed for number in range(200))
    assert "shortened" in counts
    assert "case" not in counts
    assert "[run's summary](https://github.com/acme/support-agent/actions/runs/42)" in counts
    assert "the report folder" in reviews.comment(reviews.many_regressions(200), NOWHERE)


def test_comment__nothing_in_it_comes_alive_but_what_is_ours() -> None:
    for links in (reviews.LINKS, reviews.UPLOADED, NOWHERE):
        page = oracle.rendered(reviews.comment(reviews.hostile(), links))
        outside = oracle.text_outside_code(page)
        assert not re.search(r"@\w|#\d|www\.\w|(?i:gh-\d)|evil\.example/", outside)
        assert all(
            address.startswith("https://github.com/acme/support-agent/")
            for address in re.findall(r'href="([^"]*)"', page)
        )
        for forbidden in ("<img", "<script", "<a href='", "onerror=", "<h1"):
            assert forbidden not in re.sub(
                r"<pre.*?</pre>|<code>.*?</code>", "", page, flags=re.DOTALL
            )
        assert page.count("<details") == page.count("</details>")


def test_comment__thousands_of_edits_are_counted_and_the_first_are_named() -> None:
    suites = []
    for number in range(10):
        names = [f"case-{number}-{one}-{'x' * 60}" for one in range(60)]
        tests = tuple(reviews.result(name, gates=(name,)) for name in names)
        failed = {
            name: reviews.result(name, "fail", gates=(name,), failed=(name,)) for name in names
        }
        edits = tuple(
            Edit(
                EditKind.GATE,
                name,
                "changed",
                Location(f"evals/{name}.yaml", 7),
                tests=(name,),
            )
            for name in names
        )
        path = f"evals/{number}/EVAL.yaml"
        known = Knowledge(by_base=failed, edits=edits)
        suites.append(reviews.compared(tests, tests, path, known))
    review = reviews.review(*suites)
    text = reviews.comment(review, reviews.LINKS)
    assert len(text) < 65_000
    assert "`case-0-0-" in text.splitlines()[2]
    assert "and 597 more gates" in text.splitlines()[2]
    assert "… and 5" in text
    title, summary = reviews.check(review, reviews.LINKS)
    assert "pass only with the changed evaluators" in title
    assert len(title) <= 255
    assert len(summary) <= 65_535


def test_comment__the_marker_is_there_once_and_cannot_be_forged() -> None:
    text = reviews.comment(reviews.hostile(), reviews.LINKS)
    assert text.count(MARKER) == 1
    assert text.count("<!--") == 1
    assert text.splitlines()[0] == MARKER


_words = st.text(max_size=400) | st.sampled_from(
    [
        "`" * 300,
        "|" * 300,
        "@a#1" * 90,
        "\U0001f642" * 300,
        "/".join("漢" * 60),
        "\n" * 300,
        "<!--" * 80,
        "$" * 300,
    ]
)


def _every_way(
    test: TestComparison, held: Quarantine, word: str, unsure: Evidence
) -> tuple[TestComparison, ...]:
    flaky = replace(unsure, finding=Finding.CLEARED)
    return (
        test,
        replace(test, quarantine=held),
        replace(test, accepted_by=word),
        replace(test, change=ChangeKind.UNDECIDED, evidence=unsure),
        replace(test, change=ChangeKind.FLAKY, evidence=flaky),
    )


@pytest.mark.slow
@settings(max_examples=20)
@given(word=_words, tests=st.integers(0, 24), suites=st.integers(1, 4), places=st.integers(0, 200))
def test_comment__always_fits(word: str, tests: int, suites: int, places: int) -> None:
    fields: dict[str, Any] = {
        "conversation_id": word,
        "misses": (word,) * 7,
        "gates": (word,),
        "failed": (word,),
        "answer": word * 50,
        "question": word * 50,
    }
    compared = [
        reviews.compared(
            tuple(
                reviews.result(
                    f"{number}{word}",
                    "fail" if number % 2 else None,
                    error="" if number % 2 else word,
                    **fields,
                )
                for number in range(tests)
            ),
            tuple(
                reviews.result(f"{number}{word}", **{**fields, "failed": ()})
                for number in range(tests + 3)
            ),
            path=f"{word}/{suite}.yaml",
        )
        for suite in range(suites)
    ]
    held = Quarantine((word,), word, word, date(2026, 3, 1))
    unsure = reviews.evidence(Finding.UNDECIDED, (1, 2), (1, 3), reason=word)
    compared = [
        replace(
            suite,
            tests=tuple(
                one for test in suite.tests for one in _every_way(test, held, word, unsure)
            ),
            origin=BaselineOrigin(word, word, False, word),
        )
        for suite in compared
    ]
    review = reviews.review(
        *compared,
        invalid=(Diagnostic(Location(word, 1, 1), word, word),) * places,
        warnings=(Diagnostic(Location(word, 1, 1), word, word),) * places,
        gone_suites=(word,) * places,
        notices=(word,) * places,
        baseline=BaselineInfo(
            word,
            wanted=True,
            commit=word,
            commit_time=word,
            problem=word,
            incomplete=(IncompleteSource(word, word),) * places,
        ),
        selections=(Selection(word, (word,) * 9),) * places,
    )
    for links in (reviews.LINKS, NOWHERE):
        text = reviews.comment(review, links)
        assert len(text.encode("utf-16-le")) // 2 <= 65_000
        title, summary = reviews.check(review, links)
        assert len(title) <= 255
        assert "\n" not in title
        assert len(summary) <= 65_535


@pytest.mark.slow
def test_job_summary__contains_more_than_the_comment_and_fits() -> None:
    review = reviews.many_regressions(200)
    summary = reviews.job_summary(review, reviews.LINKS)
    assert summary.count("Question and answers") == 200
    assert MARKER not in summary
    assert len(reviews.job_summary(reviews.thousands(), reviews.LINKS).encode()) <= 1024 * 1024
    answer = "\U0001f642" * 5000
    head = tuple(reviews.result(f"t{number}", "fail", answer=answer) for number in range(300))
    base = tuple(reviews.result(f"t{number}", answer=answer) for number in range(300))
    assert (
        len(
            reviews.job_summary(
                reviews.review(reviews.compared(head, base)), reviews.LINKS
            ).encode()
        )
        <= 1024 * 1024
    )


def verdict_line(review: Review) -> str:
    return reviews.comment(review, NOWHERE).splitlines()[2]


def test_verdict__what_got_worse_is_stated_also_when_it_does_not_block() -> None:
    review = reviews.review(
        reviews.compared(
            (reviews.result("a", "fail", gates=("g",), failed=("g",)),),
            (reviews.result("a", gates=("g",)),),
        ),
        policy=Policy(frozenset({"never"})),
    )
    text = reviews.comment(review, NOWHERE)
    assert "> [!IMPORTANT]" in text
    assert (
        verdict_line(review)
        == "> **Passed:** 1 test in 1 suite, 1 fail; 1 test regressed and failed a required gate. "
        "This does not block, because of the input `fail-on`."
    )


def test_verdict__many_reasons_are_a_list() -> None:
    suites = [
        reviews.compared(
            (reviews.result("a", None),), (reviews.result("a"),), path=f"evals/{number}.yaml"
        )
        for number in range(6)
    ]
    text = reviews.comment(reviews.review(*suites), NOWHERE)
    assert "and 4 more reasons." in text
    assert "- the suite `evals/5.yaml` scored no test" in text


def test_verdict__nothing_to_compare_with() -> None:
    head = (reviews.result("a", "fail", misses=("says DENIED",)), reviews.result("b"))
    review = reviews.review(
        reviews.compared(head, None),
        policy=Policy(frozenset({"failures"})),
        baseline=BaselineInfo("none", wanted=False, reason="there is no base on `schedule`"),
    )
    text = reviews.comment(review, NOWHERE)
    assert "Failed:** 1 test failed." in text
    assert "### 1 test failed with nothing to compare with" in text
    assert "missed: says DENIED" in text
    assert "Nothing to compare with: there is no base on `schedule`." in text


def test_gone__is_visible_and_not_folded() -> None:
    text = reviews.comment(reviews.gone(), NOWHERE)
    visible = re.sub(r"<details>.*?</details>", "", text, flags=re.DOTALL)
    for name in (
        "evals/safety/EVAL.yaml",
        "leaks-no-address",
        "no-unapproved-refund",
        "privacy",
        "quality/safe",
    ):
        assert f"`{name}`" in visible
    assert "1 suite, 1 test and 3 required gates of the base were removed." in text.splitlines()[2]
    assert "were removed" in reviews.check(reviews.gone(), NOWHERE)[0]


def test_gone__is_listed_at_every_level() -> None:
    shortest = replace(reviews.thousands(), gone_suites=("evals/safety/EVAL.yaml",))
    assert "- suite `evals/safety/EVAL.yaml`" in reviews.comment(shortest, NOWHERE)


def test_entry__facts_of_a_gate_samples_and_grading() -> None:
    head = reviews.result(
        "a", "fail", gates=("held", "failed", "new"), failed=("held", "failed", "new")
    )
    head = replace(head, samples=(*head.samples * 2, results.result().samples[0]))
    base = reviews.result("a", "fail", gates=("held", "failed"), failed=("failed",))
    again = replace(reviews.compared((head,), (base,)).tests[0], regraded=True)
    suite = replace(reviews.compared((head,), (base,)), tests=(again,))
    text = reviews.comment(reviews.review(suite), NOWHERE)
    assert (
        "required gate `held` failed (held in 1 of 3 samples on head, in 1 of 1 on base)"
        " · required gate `failed` failed (held in 1 of 3 samples on head, in 0 of 1 on base)"
        " · required gate `new` failed (new on head, held in 1 of 3 samples on head)" in text
    )
    assert "1 of 3 samples pass" in text
    assert "re-scored: head's evaluators scored the base's answer" in text


def fallen(number: int, **fields: Any) -> str:
    head = tuple(
        reviews.result(f"t{one:03}", "fail", misses=("first", "first", "second"), **fields)
        for one in range(number)
    )
    base = tuple(reviews.result(one.eval_id) for one in head)
    return reviews.comment(reviews.review(reviews.compared(head, base)), NOWHERE)


def test_regressions__are_a_table_from_six_on() -> None:
    few, many = fallen(5), fallen(6)
    assert "| Test |" not in few
    assert "#### `t000` pass → fail" in few.replace("&nbsp;", " ")
    shown, _, folded = many.partition("<details><summary>Questions, answers and statistics of the ")
    assert "| Test | Verdict | Missed |" in shown
    assert shown.count("| pass&nbsp;→&nbsp;fail | first (+1) |") == 6
    assert "####" not in shown
    assert folded.startswith("6 tests</summary>")
    assert folded.count("#### `t") == 6


def test_regressions__a_long_table_is_folded_and_what_is_left_out_is_counted() -> None:
    text = fallen(30)
    shown = text.partition("<summary>10 more tests</summary>")[0]
    assert shown.count("| t0") == 20
    assert text.count("| t0") == 30
    assert "… and" not in text
    assert "… and 50 more tests" in fallen(250)


def test_regressions__of_several_suites_name_it_and_the_failed_gate() -> None:
    gates: dict[str, Any] = {"gates": ("a|b", "c"), "failed": ("a|b", "c")}
    suites = [
        reviews.compared(
            tuple(reviews.result(f"t{one}", "fail", **gates) for one in range(4)),
            tuple(reviews.result(f"t{one}", gates=("a|b", "c")) for one in range(4)),
            path=f"evals/{name}/EVAL.yaml",
        )
        for name in ("refunds", "t*ne")
    ]
    text = reviews.comment(reviews.review(*suites), NOWHERE)
    assert "| Test | Suite | Verdict | Gate | Missed |" in text
    assert "| t0 | refunds | pass&nbsp;→&nbsp;fail | a&#124;b (+1) | – |" in text
    assert "| t0 | t&#42;ne | " in text


def test_notes__renamed_broken_and_missing_bases_are_listed() -> None:
    tests = (reviews.result("a"),)
    renamed = replace(reviews.compared(tests, tests), base_path="old/EVAL.yaml")
    new = reviews.compared(
        tests,
        None,
        path="evals/new.yaml",
        note="the suite is broken on base (evals/new.yaml:1:1: bad), so its tests count as new",
    )
    text = reviews.comment(reviews.review(renamed, new), NOWHERE)
    assert f"- `{reviews.PATH}` (on base `old/EVAL.yaml`) was renamed" in text
    assert "- `evals/new.yaml`: the suite is broken on base" in text


def test_changed_question__names_the_file() -> None:
    head = reviews.result("a", "fail", print=results.fingerprint(question="other"))
    knowledge = Knowledge(question_files={"a": ["prompts/system.md"]})
    text = reviews.comment(
        reviews.review(reviews.compared((head,), (reviews.result("a"),), knowledge=knowledge)),
        NOWHERE,
    )
    assert "1 test not compared: the question changed" in text
    assert "changed through prompts/system.md; if that is the agent&" not in text
    assert "put it under `watch`" in text


def custom(text: str) -> CommentTemplate:
    return CommentTemplate("mine.md.j2", text)


def test_template__a_custom_one_extends_ours(tmp_path: Path) -> None:
    template = custom(
        '{% extends "comment.md.j2" %}{% block footer %}\nOurs, {{ view.footer }}\n{% endblock %}',
    )
    markdown.check_template(template)
    assert (
        reviews.comment(reviews.gone(), NOWHERE, template)
        .splitlines()[-1]
        .startswith("Ours, agentevals-action")
    )


@pytest.mark.parametrize(
    "text",
    [
        '{% extends "comment.md.j2" %}{% block marker %}{% endblock %}',
        "`{{ view.marker }}`",
    ],
)
def test_template__without_the_marker_is_an_error(text: str) -> None:
    with pytest.raises(InvalidInput, match=r"the template mine\.md\.j2 loses the marker"):
        markdown.check_template(custom(text))


def test_template__that_loses_the_marker_makes_no_comment() -> None:
    with pytest.raises(InvalidInput, match=r"the template mine\.md\.j2 loses the marker"):
        reviews.comment(reviews.gone(), NOWHERE, custom("hello"))


@pytest.mark.slow
def test_template__too_long_is_an_error(tmp_path: Path) -> None:
    with pytest.raises(InvalidInput, match=r"makes more than 65,000 characters"):
        markdown.check_template(custom("{{ view.marker }}\n{{ 'x' * 70000 }}"))
