"""The report page in a real browser."""

from dataclasses import replace
from pathlib import Path
from typing import Any, Literal

import pytest
from playwright.sync_api import Browser as Chromium

from agentevals_action.model.baseline import BaselineInfo
from agentevals_action.model.comparison import Review
from agentevals_action.model.result import (
    ErrorInfo,
    EvaluatorResult,
    Fingerprint,
    JudgeRecord,
    TestResult,
)
from agentevals_action.reports.page.layout import TEXT
from agentevals_action.reports.page.report_page import report_page
from agentevals_action.reports.view.build import build_view
from tests.support import reviews
from tests.support.browser import Window, opened

pytestmark = pytest.mark.slow

_ROWS = "#list tbody tr"
_IDS = "#list tbody a"
#: A picture of one dot.
_GIF = "data:image/gif;base64,R0lGODlhAQABAIAAAAAAAP///yH5BAEAAAAALAAAAAABAAEAAAIBRAA7"


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


def _of_one(head: TestResult, base: TestResult | None = None) -> Review:
    """A review of one test."""
    return reviews.review(reviews.compared((head,), (base,) if base else None))


def _opened_test(browser: Window, folder: Path, review: Review, id: str) -> None:
    browser.open(_written(folder, review), f"#test/evals%2Fsupport%2FEVAL.yaml/{id}")
    browser.expect("#test h1", [id])


def test_advisory_judge__is_marked_with_its_reason(browser: Window, tmp_path: Path) -> None:
    judge = EvaluatorResult(
        name="tone",
        type="llm_judge",
        score=0.1,
        passed=False,
        misses=("it is rude",),
        judge=JudgeRecord(key="a" * 64, models=("m-1",)),
        advisory="it is <b>not calibrated</b>",
    )
    word = EvaluatorResult(name="word", type="contains", score=1.0, passed=True)
    made = reviews.result("greets")
    samples = tuple(replace(sample, evaluator_results=(word, judge)) for sample in made.samples)
    _opened_test(
        browser,
        tmp_path,
        _of_one(replace(made, samples=samples, evaluator_results=(word, judge))),
        "greets",
    )
    shown = browser.run("document.querySelector('#test').textContent")
    assert "tone (llm_judge) ✗ 0.10 (advisory)" in shown
    assert "Advisory, decides nothing: it is <b>not calibrated</b>" in shown
    assert not browser.texts("#test .facts .bad")  # no reason of a failure
    browser.run("location.hash = ''")
    overview = browser.run("document.querySelector('#overview').textContent")
    assert "The judge tone (m-1) is advisory: it is <b>not calibrated</b>" in overview


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
    assert browser.texts(".changes a") == ["1 failed a required gate", "1 improved"]
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
    assert browser.texts("#test .badge") == ["gate safe failed"]
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


def test_answers__open_at_the_first_difference_and_fold_equal_text(
    browser: Window, tmp_path: Path
) -> None:
    text = "\n".join(f"Paragraph {number} states the same on both sides." for number in range(200))
    other = text.replace("Paragraph 120 states", "Paragraph 120 denies")
    other = other.replace("Paragraph 150 states the", "Paragraph 150 states not the")
    review = _of_one(reviews.result("a", "fail", answer=other), reviews.result("a", answer=text))
    _opened_test(browser, tmp_path, review, "a")
    assert browser.texts("#test .side.base mark") == ["states"]
    assert browser.texts("#test .side.head mark") == ["denies", "not"]
    assert browser.run("document.querySelector('mark').getBoundingClientRect().bottom") < 900
    folds = browser.texts("#test .side.head .fold")
    assert len(folds) == 3
    assert folds[0].endswith("equal characters)")
    assert browser.texts("#test .side.base .fold") == folds
    browser.press("n")
    assert browser.texts("mark.current") == ["states", "denies"]
    browser.press("n", "n")
    assert browser.texts("mark.current") == ["not"]
    assert browser.texts("#test [role=status]") == ["difference 2 of 2"]
    browser.press("p")
    assert browser.texts("mark.current") == ["states", "denies"]
    for _ in folds:
        browser.page.locator("#test .side.head .fold").first.click()
    shown = "[...document.querySelectorAll('#test .side pre')].map((node) => node.textContent)"
    assert browser.run(shown) == [text, other]


def test_answers__of_thousands_of_words_differ_in_few(browser: Window, tmp_path: Path) -> None:
    text = "\n".join(f"Line {number} of a long answer that is the same." for number in range(400))
    base, head = f"First {text}\nlast", f"Begin {text}\nend"
    review = _of_one(reviews.result("a", "fail", answer=head), reviews.result("a", answer=base))
    _opened_test(browser, tmp_path, review, "a")
    assert browser.texts("#test .side.head mark") == ["Begin", "end"]


@pytest.mark.parametrize(
    ("base", "head", "heading"),
    [
        ("x" * TEXT + "end", "x" * TEXT + "END", "The answers differ after the part that is shown"),
        ("x" * TEXT, "x" * TEXT + "END", "The answers differ after the part that is shown"),
        ("x" * 50_000, "x" * 50_000, "Both answers are equal in the part that is shown"),
        ("x", "x", "Both answers are equal"),
    ],
)
def test_answers__that_are_shown_alike_say_whether_they_are(
    browser: Window, tmp_path: Path, base: str, head: str, heading: str
) -> None:
    review = _of_one(reviews.result("a", "fail", answer=head), reviews.result("a", answer=base))
    _opened_test(browser, tmp_path, review, "a")
    assert browser.texts("#test h3") == [f"{heading}: base pass, 1.00; head fail, 0.20"]


def test_list__begins_with_failed_gates_which_have_a_badge(browser: Window, tmp_path: Path) -> None:
    ids = ("improved", "still", "error", "worse", "gate")
    base = tuple(reviews.result(id, "fail" if id in ids[:2] else "pass") for id in ids)
    head = (
        reviews.result("improved"),
        reviews.result("still", "fail"),
        reviews.result("error", None, error="no answer"),
        reviews.result("worse", "fail"),
        reviews.result("gate", "fail", gates=("safe",), failed=("safe",)),
    )
    browser.open(_written(tmp_path, reviews.review(reviews.compared(head, base))))
    assert browser.texts(_IDS) == ["gate", "worse", "error", "still", "improved"]
    assert browser.texts("#list .badge") == ["gate safe failed"]


def test_evaluators__folded_ones_show_the_score_of_each_side(
    browser: Window, tmp_path: Path
) -> None:
    polite = EvaluatorResult(name="polite", type="contains", score=1.0, passed=True)
    safe = EvaluatorResult(name="safe", type="llm_judge", score=2 / 3, passed=False, required=0.67)
    base = _evaluated(reviews.result("a"), polite, replace(safe, score=0.9, passed=True))
    _opened_test(browser, tmp_path, _of_one(_evaluated(base, polite, safe), base), "a")
    summaries = ["polite (contains) ✓ 1.00", "safe (llm_judge, required) ✓ 0.90 → ✗ 0.66"]
    assert browser.texts("#test summary") == summaries
    assert browser.texts("#test details[open] > summary") == summaries[1:]


def test_answers__of_a_variant_stand_beside_those_of_the_sides(
    browser: Window, tmp_path: Path
) -> None:
    suite = reviews.armed(["pass", "fail"], ["fail", "pass"], 1)
    _opened_test(browser, tmp_path, reviews.review(suite), "t1")
    sides = browser.texts("#test .side h3")
    assert sides[:2] == ["Head: pass, 1.00", "Without the skill: fail, 0.20"]
    browser.open(_written(tmp_path, reviews.review(suite)))
    assert browser.texts("section[aria-labelledby=variants] li")[0].startswith(
        "evals/support/EVAL.yaml, without the skill · 1 test passes only with the skill: t1"
    )


def test_evaluators__of_an_agent_that_failed_did_not_run(browser: Window, tmp_path: Path) -> None:
    polite = EvaluatorResult(name="polite", type="contains", score=1.0, passed=True)
    text = "Traceback:\n  " + "x" * 500
    head = reviews.result("a", None, error=text)
    head = replace(head, error=ErrorInfo(kind="target", message=text))
    base = _evaluated(reviews.result("a"), polite)
    _opened_test(browser, tmp_path, _of_one(head, base), "a")
    assert browser.texts("#test summary") == [
        "polite (contains) ✓ 1.00 → Not run: the agent failed"
    ]
    assert browser.texts("#test pre.error") == [text]


@pytest.mark.parametrize("width", [1280, 390])
def test_reasons__stand_above_the_answers(chromium: Chromium, tmp_path: Path, width: int) -> None:
    misses = tuple(f"names fact {number}" for number in range(7))
    safe = EvaluatorResult(
        name="safe", type="llm_judge", score=0.0, passed=False, reasoning="It swears. " * 100
    )
    facts = EvaluatorResult(name="facts", type="json", score=0.1, passed=False, misses=misses)
    polite = EvaluatorResult(name="polite", type="contains", score=1.0, passed=True)
    swears = f"safe: {safe.reasoning}"
    talks: dict[str, Any] = {"conversation_id": "talk"}
    head = (
        _evaluated(reviews.result("a", "fail", answer="No."), safe, polite, facts),
        reviews.result("b", None, error="no route to host\nat line 3"),
        _evaluated(reviews.result("first", "fail", **talks), facts),
        reviews.result("second", **talks),
    )
    base = tuple(reviews.result(row.eval_id, conversation_id=row.conversation_id) for row in head)
    page = _written(tmp_path, reviews.review(reviews.compared(head, base)))
    with opened(chromium, width=width) as window:
        for id, shown in (
            ("a", [f"{swears[:300]}…", *(f"facts: {miss}" for miss in misses[:4])]),
            ("b", ["the agent failed: no route to host at line 3"]),
            ("second", [f"facts: {miss}" for miss in misses[:5]]),  # of the turn before
        ):
            window.open(page, f"#test/evals%2Fsupport%2FEVAL.yaml/{id}")
            window.expect("#test h1", [id])
            assert window.texts("#test li.bad") == shown
            places = "document.querySelector(selector).getBoundingClientRect().top"
            tops = [window.run(f"selector => {places}", selector) for selector in ("li.bad", "pre")]
            assert tops[0] < tops[1]
        assert "… and 2 more, below" in window.texts("#test li")


def _answers_of(browser: Window, folder: Path, base: str, head: str) -> list[str]:
    """What a reader sees of both answers, and after each side what is marked."""
    review = _of_one(reviews.result("a", "fail", answer=head), reviews.result("a", answer=base))
    _opened_test(browser, folder, review, "a")
    return [
        text
        for side in ("base", "head")
        for selector in ("> pre", "> pre mark")
        for text in browser.texts(f"#test .side.{side} {selector}")
    ]


@pytest.mark.parametrize(
    ("base", "head", "shown"),
    [
        pytest.param(
            '{"b": {"y": [1, 2], "x": "ü"}, "a": "Thursday"}',
            '{"a":"Friday","b":{"x":"\\u00fc","y":[1,2]}}',
            [
                '{\n  "a": "Thursday",\n  "b": {\n    "x": "ü",\n    "y": [\n      1,\n      2\n    ]\n  }\n}',
                "Thursday",
                '{\n  "a": "Friday",\n  "b": {\n    "x": "ü",\n    "y": [\n      1,\n      2\n    ]\n  }\n}',
                "Friday",
            ],
            id="keys-are-sorted",
        ),
        pytest.param(
            '{"a": 1.0}', '{"a": 1}', ['{"a": 1.0}', ".0", '{"a": 1}'], id="only-the-form-differs"
        ),
        pytest.param(
            '{"id": 12345678901234567}',
            '{"id": 12345678901234568}',
            [
                '{"id": 12345678901234567}',
                "12345678901234567",
                '{"id": 12345678901234568}',
                "12345678901234568",
            ],
            id="numbers-that-a-browser-rounds",
        ),
        pytest.param("[1]", "No.", ["[1]", "[1]", "No.", "No."], id="one-side-is-text"),
    ],
)
def test_answers__of_json_are_indented_and_compared_by_their_structure(
    browser: Window, tmp_path: Path, base: str, head: str, shown: list[str]
) -> None:
    assert _answers_of(browser, tmp_path, base, head) == shown


_MARKUP = """\
# Refunds

Take **5 days**: [policy](https://evil.example/x) [run](javascript:alert(1))

1. print
2. send

| Item | Price |
|:--|--:|
| Shoes | 90 |

![pixel](https://evil.example/i.png) <img src=x onerror=alert(1)> <https://evil.example>

```js" onclick="alert(1)
alert(1)
```
"""


def test_answers__markdown_is_rendered_without_links_pictures_and_scripts(
    browser: Window, tmp_path: Path
) -> None:
    answers = (
        reviews.result("a", "fail", answer=_MARKUP),
        reviews.result("a", answer="Only text."),
    )
    _opened_test(browser, tmp_path, _of_one(*answers), "a")
    assert len(browser.page.query_selector_all("#test .rendered")) == 1
    browser.page.locator("#test summary", has_text="Rendered Markdown").click()
    for selector, texts in {
        "h4": ["Refunds"],
        "strong": ["5 days"],
        "li": ["print", "send"],
        "th": ["Item", "Price"],
        "pre": ["alert(1)"],
        "a, img, script, [onclick], [onerror], [style], [class]": [],
    }.items():
        assert browser.texts(f"#test .rendered :is({selector})") == texts
    assert "<img src=x onerror=alert(1)>" in browser.texts("#test .rendered")[0]
    assert set(browser.requests) <= {(tmp_path / "report.html").as_uri(), "data:,"}
    assert browser.messages == []


def _asked(of: TestResult, *pictures: str) -> TestResult:
    """The result of a question with pictures."""
    parts = [{"type": "image", "value": value} for value in pictures]
    content = [{"type": "text", "value": "What is it?"}, *parts]
    return replace(of, input_messages=({"role": "user", "content": content},))


def test_question__its_pictures_are_shown_and_nothing_is_loaded(
    browser: Window, tmp_path: Path
) -> None:
    forged = ("https://evil.example/i.png", "data:image/svg+xml;base64,PHN2Zy8+", "photo.png (…)")
    head = _asked(reviews.result("a", "fail"), _GIF, *forged)
    _opened_test(browser, tmp_path, _of_one(head, _asked(reviews.result("a"), _GIF)), "a")
    sizes = "[...document.querySelectorAll('#test img')].map(shown => shown.naturalWidth)"
    browser.wait("[...document.querySelectorAll('#test img')].every(shown => shown.complete)")
    assert browser.run(sizes) == [1, 1]  # of head, and of base, whose message is another one
    shown = browser.texts("#test .message pre")[:4]
    assert shown == ["What is it?", *(f"[image] {value}" for value in forged)]
    assert all(url.startswith(("file:", "data:")) for url in browser.requests)
    assert browser.messages == []


def _evaluated(of: TestResult, *found: EvaluatorResult) -> TestResult:
    samples = tuple(replace(sample, evaluator_results=found) for sample in of.samples)
    return replace(of, samples=samples, evaluator_results=found)


@pytest.mark.parametrize("width", [1280, 390])
@pytest.mark.parametrize("name", ["regression-and-gate", "edited", "conversations", "believable"])
def test_overview__tests_are_on_the_first_screen(
    chromium: Chromium, tmp_path: Path, name: str, width: int
) -> None:
    page = _written(tmp_path, reviews.REVIEWS[name]())
    with opened(chromium, width=width) as window:
        window.open(page)
        assert window.texts("#overview h2")[:2] == ["Tests", "Suites"]
        assert window.run(f"document.querySelector('{_IDS}').getBoundingClientRect().bottom") < 840
        window.press("/")
        window.wait("document.activeElement.type === 'search'")


def test_plot__marks_are_links_to_their_tests(browser: Window, tmp_path: Path) -> None:
    browser.open(_written(tmp_path, _review()))
    browser.page.locator("figure a[aria-label='2 tests: 1.00 → 1.00']").click()
    browser.expect(_IDS, ["opening hours?", "greets"])
    browser.page.locator("figure a[aria-label^='refund']").click()
    browser.expect("#test h1", ["refund"])


def test_conversation__its_turns_are_on_one_page(browser: Window, tmp_path: Path) -> None:
    def turn(number: int, verdict: str = "pass", answer: str = "Yes.") -> TestResult:
        return reviews.result(f"turn-{number}", verdict, answer=answer, conversation_id="booking")

    base = (turn(1), turn(2), turn(3))
    head = (turn(1), turn(2, "fail", "No."), turn(3))
    review = reviews.review(reviews.compared(head, base))
    _opened_test(browser, tmp_path, review, "turn-3")
    assert browser.texts("#test .turn > summary") == [
        "turn 1 of 3: turn-1 · unchanged pass",
        "turn 2 of 3: turn-2 ▼ regressed pass → fail",
        "turn 3 of 3: turn-3 · unchanged pass",
    ]
    opened_turns = browser.texts("#test .turn[open] pre")
    assert opened_turns == ["What about turn-2?", "Yes.", "No.", "What about turn-3?", "Yes."]
    browser.page.locator("#test .turn[open] a").click()
    browser.expect("#test h1", ["turn-2"])


def test_trace__calls_are_lines_and_only_those_that_differ_are_open(
    browser: Window, tmp_path: Path
) -> None:
    calls = [("Read", {"path": f"src/{number}.py", "limit": 200}) for number in range(60)]
    edited = [*calls[:30], ("Read", {"path": "src/30.py", "limit": 500}), *calls[31:]]
    edited.insert(5, ("Bash", {"command": "git push --force", "why": "it is long " * 100}))
    head = reviews.said(reviews.result("a", "fail"), *edited)
    _opened_test(browser, tmp_path, _of_one(head, reviews.said(reviews.result("a"), *calls)), "a")
    assert browser.texts("#test .call[open] > summary") == [
        "Read src/30.py, 200",
        "Read src/30.py, 500",
    ]
    assert browser.texts("#test .side.head .call[open] mark") == ["limit: 500"]
    browser.press("n")
    assert browser.texts("mark.current") == ["only on head"]
    browser.press("n")
    assert browser.texts("mark.current") == ["limit: 200", "limit: 500"]
    assert browser.texts("#test .only code") == ["Bash"]
    height = "document.documentElement.scrollHeight"
    assert browser.run(height) < 3_000


def test_search__escape_shows_all_tests_again(browser: Window, tmp_path: Path) -> None:
    browser.open(_written(tmp_path, _review()))
    browser.press("/")
    browser.wait("document.activeElement.type === 'search'")
    browser.press(*"tone")
    browser.expect(_IDS, ["tone"])
    browser.press("Escape")
    browser.expect(_IDS, ["refund", "tone", "opening hours?", "greets"])
    assert browser.run("[controls.text.value, document.activeElement.type]") == ["", None]


@pytest.mark.parametrize("hash", ["#sort=__proto__", "#sort=constructor", "#sort=x&base=__proto__"])
def test_address__an_unknown_order_is_ignored(browser: Window, tmp_path: Path, hash: str) -> None:
    browser.open(_written(tmp_path, _review()), hash)
    browser.expect(_IDS, ["refund", "tone", "opening hours?", "greets"])
    assert browser.messages == []


def test_address__names_a_test_or_says_that_there_is_none(browser: Window, tmp_path: Path) -> None:
    browser.open(_written(tmp_path, _review()), "#test=tone")
    browser.expect("#test h1", ["tone"])
    browser.open(tmp_path / "report.html", "#test=x")
    browser.expect("#test h1", ["This report has no test x"])
    assert browser.messages == []


def test_run__shows_verdicts_and_nothing_of_a_base(browser: Window, tmp_path: Path) -> None:
    head = (reviews.result("good"), reviews.result("bad", "fail"))
    alone = BaselineInfo("none", wanted=False, reason="`run` compares with nothing")
    review = reviews.review(reviews.compared(head, None), baseline=alone)
    browser.open(_written(tmp_path, review))
    assert browser.texts("#list th")[:2] == ["Verdict", "Test"]
    assert browser.texts("#list .word") == ["✗ fail", "✓ pass"]
    assert "new" not in browser.page.inner_text("main").split()
    assert "12.3 s" in browser.texts("header p")[-1]


def test_scores__are_rounded_and_never_show_a_threshold_that_they_missed(
    browser: Window, tmp_path: Path
) -> None:
    browser.open(_written(tmp_path, _review()))
    values = "[score(2 / 3), score(2 / 3, 0.67), score(0.7999), score(0.125), score(0.1 + 0.2)]"
    assert browser.run(values) == ["0.67", "0.66", "0.79", "0.13", "0.30"]


def test_long_words__do_not_widen_the_page(chromium: Chromium, tmp_path: Path) -> None:
    word = "W" * 3_000
    safe = EvaluatorResult(
        name=word[:500], type="llm_judge", score=0.0, passed=False, misses=(word,), reasoning=word
    )
    fields: dict[str, Any] = {"question": word, "answer": word, "misses": (word,)}
    fields["conversation_id"] = word
    head = reviews.result("a" + word, "fail", gates=(word,), failed=(word,), **fields)
    head = _evaluated(reviews.said(head, ("T" * 400, {word: word})), safe)
    error = reviews.result("b", None, error=word, conversation_id=word)
    path = f"evals/{word[:200]}/EVAL.yaml"
    suite = reviews.compared((head, error), (reviews.result("a" + word),), path=path)
    page = _written(tmp_path, reviews.review(suite, gone_suites=(word,), notices=(word,)))
    with opened(chromium, width=390) as window:
        window.open(page)
        assert window.run("document.documentElement.scrollWidth") <= 390
        for index in range(2):
            window.run("index => { location.hash = hashOf({}, tests[index]) }", index)
            window.wait("document.querySelector('#test h1')")
            assert window.run("document.documentElement.scrollWidth") <= 390


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


def test_test__of_a_runner_shows_only_what_is_known(browser: Window, tmp_path: Path) -> None:
    page = _written(tmp_path, reviews.runners())
    sections = {
        "evals%2Ftest_agent.py/test_agent.py%3A%3Atest_answer%5Bde%5D": [
            "Evaluators",
            "Comparison and source",
        ],
        "evals%2Fpromptfooconfig.yaml/safety%3A%20refund%20over%20the%20limit": [
            "Question",
            "Answers",
            "Evaluators",
            "Tokens, cost and time",
            "Comparison and source",
        ],
        "evals%2Ftask.py/task%400": ["Question", "Answers", "Evaluators", "Comparison and source"],
    }
    for test, headings in sections.items():
        browser.open(page, f"#test/{test}")
        browser.expect("#test h2", headings)
    assert browser.texts("#test h3") == ["Base: pass, 1.00", "Head: error"]


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
    (talks := tmp_path / "talks").mkdir()
    text = "Your room is booked. " * 50
    turns = [
        [
            reviews.result(f"turn-{number}", answer=text + word, conversation_id="booking")
            for number in (1, 2)
        ]
        for word in ("Thanks!", "Bye!")
    ]
    talk = _written(talks, reviews.review(reviews.compared(tuple(turns[0]), tuple(turns[1]))))
    marked = _asked(reviews.result("marked", "fail", answer=_MARKUP), _GIF)
    (marks := tmp_path / "marks").mkdir()
    with opened(chromium, width=width, scheme=scheme) as window:
        for file, test in (
            (page, ""),
            (page, "refund"),
            (talk, "turn-1"),
            (_written(marks, _of_one(marked)), "marked"),
        ):
            window.open(file, test and f"#test/evals%2Fsupport%2FEVAL.yaml/{test}")
            window.wait(f"(document.querySelector('#test h1')?.innerText ?? '') === '{test}'")
            window.run("document.querySelectorAll('details').forEach(d => { d.open = true })")
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
