"""The report page in a real browser."""

from dataclasses import replace
from pathlib import Path
from typing import Any, Literal

import pytest
from playwright.sync_api import Browser as Chromium

from agentevals_action.model.result import EvaluatorResult, Fingerprint, TestResult
from agentevals_action.model.review import Review
from agentevals_action.reports.html.report_page import report_page
from agentevals_action.reports.view.build import build_view
from tests.support import reviews
from tests.support.browser import Window, opened

pytestmark = pytest.mark.slow

_ROWS = "#list tbody tr"
_IDS = "#list tbody a"


def _written(folder: Path, review: Review) -> Path:
    page = folder / "report.html"
    page.write_text(report_page(build_view(review, reviews.LINKS)), encoding="utf-8", newline="\n")
    return page


def _answered(id: str, verdict: str, answer: str, amount: float, **fields: Any) -> TestResult:
    """A result with a call of a tool."""
    made = reviews.result(id, verdict, answer=answer, **fields)
    call = {"id": "1", "tool": "refund", "input": {"order": 7, "amount": amount}, "output": "done"}
    messages = (
        {"role": "assistant", "content": "", "tool_calls": [call]},
        {"role": "assistant", "content": answer},
    )
    checks = (EvaluatorResult(name="polite", type="contains", score=1.0, passed=verdict == "pass"),)
    samples = tuple(
        replace(sample, output_messages=messages, evaluator_results=checks)
        for sample in made.samples
    )
    return replace(made, samples=samples, evaluator_results=checks)


def _review() -> Review:
    base = (
        _answered("refund", "pass", "I refunded 9.50 EUR to your card.", 9.5),
        reviews.result("opening hours?", line=9),
        reviews.result("tone", "fail"),
    )
    head = (
        _answered(
            "refund",
            "fail",
            "I refunded 100 EUR to your card.",
            100,
            gates=("safe",),
            failed=("safe",),
        ),
        reviews.result("opening hours?", line=9),
        reviews.result("tone"),
    )
    other = (reviews.result("greets", path="evals/other/EVAL.yaml"),)
    return reviews.review(
        reviews.compared(head, base), reviews.compared(other, other, path="evals/other/EVAL.yaml")
    )


def test_list__filters_are_in_the_address_and_come_from_it(browser: Window, tmp_path: Path) -> None:
    browser.open(_written(tmp_path, _review()))
    assert browser.texts(_IDS) == ["refund", "tone", "opening hours?", "greets"]
    browser.run("change('group', 'improved')")
    assert browser.texts(_IDS) == ["tone"]
    assert browser.hash == "#group=improved"
    browser.open(tmp_path / "report.html", "#suite=evals%2Fother%2FEVAL.yaml")
    browser.expect(_IDS, ["greets"])
    browser.open(tmp_path / "report.html", "#text=HOURS&sort=drop")
    browser.expect(_IDS, ["opening hours?"])
    assert browser.texts("[role=status]") == ["1 of 4 tests"]
    browser.open(tmp_path / "report.html", "#gate=failed")
    browser.expect(_IDS, ["refund"])
    browser.open(tmp_path / "report.html", "#evaluator=polite&group=nothing")
    browser.expect(_IDS, [])


def test_overview__counts_of_groups_lead_to_their_tests(browser: Window, tmp_path: Path) -> None:
    browser.open(_written(tmp_path, _review()))
    assert browser.texts(".changes a") == ["1\nfailed a required gate", "1\nimproved"]
    browser.run("document.querySelector('.changes li:nth-child(2) a').click()")
    browser.expect(_IDS, ["tone"])
    assert browser.hash == "#group=improved"


def test_overview__pass_rate_has_its_interval(browser: Window, tmp_path: Path) -> None:
    browser.open(_written(tmp_path, _review()))
    # Wilson's interval of 2 of 3, of 1 of 1, and of 3 of 4
    assert browser.texts("td .interval") == ["21–94%", "21–100%", "30–95%"]


def test_overview__lists_lead_to_the_tests_of_the_page(browser: Window, tmp_path: Path) -> None:
    browser.open(_written(tmp_path, reviews.edited()))
    browser.page.locator("#overview details li a", has_text="greets-by-name").first.click()
    browser.expect("#test h1", ["greets-by-name"])


def test_page__without_a_test_says_so(browser: Window, tmp_path: Path) -> None:
    browser.open(_written(tmp_path, reviews.nothing_touched()))
    assert "No test ran." in browser.texts("section p")
    browser.press("j", "/", "?", "Enter")
    assert browser.messages == []


def test_list__states_why_a_test_could_not_be_scored(browser: Window, tmp_path: Path) -> None:
    head = (reviews.result("a", None, error="the agent <b>hangs</b>"),)
    suite = reviews.compared(head, (reviews.result("a"),))
    browser.open(_written(tmp_path, reviews.review(suite)))
    assert browser.texts("#list td.wide .small")[0].endswith(": the agent <b>hangs</b>")


def test_list__without_a_match_says_so(browser: Window, tmp_path: Path) -> None:
    browser.open(_written(tmp_path, _review()), "#text=nowhere")
    browser.expect("[role=status]", ["No test matches the filters."])


def test_test__fingerprints_state_why_it_is_compared(browser: Window, tmp_path: Path) -> None:
    marks = {"question": "q", "grading": "g", "agent": "a"}
    base = replace(reviews.result("a"), fingerprint=Fingerprint(**marks))
    head = {
        "same": replace(base, fingerprint=Fingerprint(**{**marks, "agent": "b"})),
        "asked": replace(base, fingerprint=Fingerprint(**{**marks, "question": "r"})),
    }
    compared = {
        name: reviews.compared((row,), (base,), path=f"evals/{name}.yaml")
        for name, row in head.items()
    }
    page = _written(tmp_path, reviews.review(*compared.values()))
    browser.open(page, "#test/evals%2Fsame.yaml/a")
    browser.wait("document.querySelector('#test h1')")
    assert browser.texts("#test .origin p")[0] == (
        "The sides are comparable: question and grading are the same."
    )
    assert browser.texts("#test .origin li") == [
        "question: the same on both sides",
        "grading: the same on both sides",
        "agent: changed",
    ]
    browser.open(page, "#test/evals%2Fasked.yaml/a")
    browser.wait("document.querySelector('#test .origin li').innerText === 'question: changed'")
    assert "because the question changed" in browser.texts("#test .origin p")[0]


def test_print__shows_what_is_folded(chromium: Chromium, tmp_path: Path) -> None:
    page = _written(tmp_path, reviews.regression_and_gate())
    with opened(chromium) as window:
        window.open(page)
        folded = "document.querySelector('[aria-labelledby=run] li').checkVisibility({contentVisibilityAuto: true, visibilityProperty: true})"
        height = "document.querySelector('[aria-labelledby=run] li').getBoundingClientRect().height"
        assert not window.run(folded)
        window.page.emulate_media(media="print")
        assert window.run(height) > 0


def test_test__link_shows_both_answers_and_what_differs(browser: Window, tmp_path: Path) -> None:
    page = _written(tmp_path, _review())
    browser.open(page, "#test/evals%2Fsupport%2FEVAL.yaml/refund")
    browser.expect("#test h1", ["refund"])
    assert browser.texts("#overview") == []
    assert browser.texts("#test .side.base pre mark") == ["9.50"]
    assert browser.texts("#test .side.head pre mark") == ["100"]
    assert browser.texts("#test .side.head .facts mark") == ["amount: 100"]
    assert "required gate safe failed" in browser.texts("#test .facts li")
    assert "agentevals-action run evals/support/EVAL.yaml --test refund" in browser.texts(
        "#test code"
    )
    links = browser.run("[...document.querySelectorAll('#test a[rel]')].map((link) => link.href)")
    assert links == [
        f"https://github.com/acme/support-agent/blob/{sha}/evals/support/EVAL.yaml#L3"
        for sha in (reviews.HEAD, reviews.BASE)
    ]
    browser.open(page, "#test/evals%2Fsupport%2FEVAL.yaml/opening%20hours%3F")
    browser.expect("#test h1", ["opening hours?"])
    assert "--test 'opening hours[?]'" in browser.texts("#test code")[0]
    browser.open(page, "#test/evals%2Fsupport%2FEVAL.yaml/unknown%")
    browser.expect("#test h1", ["This report has no test unknown%"])


def test_keyboard__walks_opens_searches_and_goes_back(browser: Window, tmp_path: Path) -> None:
    browser.open(_written(tmp_path, _review()))
    browser.press("j", "j", "k", "Enter")
    browser.expect("#test h1", ["refund"])
    browser.press("j")
    browser.expect("#test h1", ["tone"])
    browser.press("Escape")
    browser.wait("!document.getElementById('overview').hidden")
    assert browser.run("document.activeElement.innerText") == "tone"
    browser.press("/")
    browser.wait("document.activeElement.type === 'search'")
    browser.press(*"greets")
    browser.expect(_IDS, ["greets"])
    browser.press("Escape", "?")
    browser.expect("dialog h2", ["Keys"])
    browser.press("Escape")
    browser.expect("dialog h2", [])


def test_test__shows_all_messages_of_its_input(browser: Window, tmp_path: Path) -> None:
    def asked(system: str) -> TestResult:
        messages = (
            {"role": "system", "content": system},
            {"role": "user", "content": "Is it open?"},
        )
        return replace(reviews.result("a"), question="Is it open?", input_messages=messages)

    other = replace(reviews.result("b"), input_messages=asked("Be brief.").input_messages)
    suite = reviews.compared((asked("Be brief."), other), (asked("Be kind."), other))
    page = _written(tmp_path, reviews.review(suite))
    browser.open(page, "#test/evals%2Fsupport%2FEVAL.yaml/a")
    browser.wait("document.querySelector('#test h1')")
    texts = browser.texts("#test h2 ~ .message")
    assert texts[:2] == ["system\n\nBe brief.", "user\n\nIs it open?"]
    assert texts[2:4] == ["system\n\nBe kind.", "user\n\nIs it open?"]
    # Each is in the page once, whatever the number of its tests.
    assert page.read_text(encoding="utf-8").count("Is it open?") == 2  # a question, a message


def test_samples__each_can_be_shown(browser: Window, tmp_path: Path) -> None:
    base, head = reviews.history("a", 3, 3), reviews.history("a", 1, 3, answer="bad")
    page = _written(tmp_path, reviews.review(reviews.compared((head,), (base,))))
    browser.open(page, "#test/evals%2Fsupport%2FEVAL.yaml/a?head=3")
    browser.expect("#test .side.head button[aria-pressed=true]", ["3: pass 1.00"])
    browser.run("document.querySelector('#test .side.head button').click()")
    assert browser.texts("#test .side.head button[aria-pressed=true]") == ["1: fail 0.20"]
    assert browser.hash == "#test/evals/support/EVAL.yaml/a?head=1"


@pytest.mark.parametrize("name", reviews.SMALL)
def test_page__asks_for_nothing_and_logs_nothing(
    browser: Window, tmp_path: Path, name: str
) -> None:
    page = _written(tmp_path, reviews.REVIEWS[name]())
    browser.open(page)
    count = browser.run("tests.length")
    for index in range(min(count, 3)):
        browser.run("index => { location.hash = hashOf({}, tests[index]) }", index)
        browser.wait("document.querySelector('#test h1')")
        browser.run("location.hash = '#tests'")
        browser.wait("document.getElementById('test').hidden")
    assert set(browser.requests) <= {page.as_uri(), "data:,"}
    assert browser.messages == []


def test_hostile_texts__stay_texts(browser: Window, tmp_path: Path) -> None:
    browser.open(_written(tmp_path, reviews.hostile()))
    markup = '[...document.querySelectorAll(\'img, iframe, script[src], object, embed, a:not([href^="#"]):not([href^="https://github.com/acme/"])\')].map((found) => found.outerHTML)'
    assert browser.run(markup) == []
    browser.run("location.hash = hashOf({}, tests[0])")
    browser.wait("document.querySelector('#test h1')")
    assert browser.run(markup) == []
    assert any("<script>alert(1)</script>" in text for text in browser.texts("#test pre"))


@pytest.mark.parametrize(
    ("width", "scheme"), [(1280, "light"), (1280, "dark"), (360, "dark"), (360, "light")]
)
def test_accessibility__axe_finds_nothing(
    chromium: Chromium, tmp_path: Path, width: int, scheme: Literal["light", "dark"]
) -> None:
    page = _written(tmp_path, _review())
    with opened(chromium, width=width, scheme=scheme) as window:
        window.open(page)
        assert window.violations() == []
        assert window.run("document.documentElement.scrollWidth") <= width
        window.open(page, "#test/evals%2Fsupport%2FEVAL.yaml/refund")
        window.wait("document.querySelector('#test h1')")
        assert window.violations() == []
        assert window.run("document.documentElement.scrollWidth") <= width


def test_without_javascript__outcome_suites_and_tests_are_text(
    chromium: Chromium, tmp_path: Path
) -> None:
    with opened(chromium, javascript=False) as window:
        window.open(_written(tmp_path, _review()))
        text = window.page.inner_text("main")
    assert "Failed: 1 test regressed and failed a required gate." in text
    for shown in ("evals/other/EVAL.yaml", "opening hours?", "pass → fail"):
        assert shown in text


@pytest.mark.parametrize(
    ("number", "megabytes"), [(1_000, 2), pytest.param(20_000, 10, marks=pytest.mark.slow)]
)
def test_size__stays_below_its_limit(
    browser: Window, tmp_path: Path, number: int, megabytes: int
) -> None:
    head = tuple(
        _answered(
            f"case-{index:05}",
            "fail" if index % 40 == 0 else "pass",
            f"Answer {index}: {'all is well ' * 15}",
            index,
        )
        for index in range(number)
    )
    base = tuple(
        _answered(f"case-{index:05}", "pass", f"Answer {index}: {'all is fine ' * 15}", index)
        for index in range(number)
    )
    page = _written(tmp_path, reviews.review(reviews.compared(head, base)))
    assert page.stat().st_size <= megabytes * 1_000_000
    browser.open(page)
    browser.run("change('group', 'regressions')")
    assert len(browser.texts(_ROWS)) == min(number // 40, 100)
    browser.run("id => change('text', id)", f"case-{number - 1:05}")
    browser.run("change('group', '')")
    assert browser.texts(_IDS) == [f"case-{number - 1:05}"]
