"""Redaction of records before their texts are cut or escaped."""

from dataclasses import replace
from typing import Any

from hypothesis import given
from hypothesis import strategies as st

from agentevals_action.model.comparison import ChangeKind
from agentevals_action.reports.view.links import Links
from agentevals_action.system.redaction import Redactor, redact_record
from tests.support import results, reviews

SECRET = "sk_live_c0ffee1234567890|*"


REDACTOR = Redactor([SECRET])


def test_redact_record__no_form_of_the_report_holds_a_secret_that_escaping_would_disguise() -> None:
    fields: dict[str, Any] = {
        "misses": (SECRET,),
        "question": SECRET,
        "answer": f"key: {SECRET}",
        "gates": (SECRET,),
    }
    head = (
        reviews.result(SECRET, "fail", failed=(SECRET,), **fields),
        reviews.result("b", None, error=SECRET),
    )
    review = redact_record(
        reviews.review(
            reviews.compared(head, (reviews.result(SECRET, **fields),)), notices=(SECRET,)
        ),
        REDACTOR,
    )
    for text in (
        reviews.comment(review, Links()),
        reviews.job_summary(review, Links()),
        "".join(reviews.check(review, Links())),
    ):
        assert "live" not in text
    assert "key: ***" in reviews.comment(review, Links())
    assert review.suites[0].tests[0].change is ChangeKind.REGRESSED


def test_redact_record__reaches_mappings_and_leaves_the_rest_alone() -> None:
    details = {"a": [SECRET, {"b": (SECRET, 1, None)}], SECRET: True}
    result = results.result("a", evaluator_results=(results.evaluated(details=details),))
    clean = redact_record(result, REDACTOR)
    assert clean.evaluator_results[0].details == {
        "a": ["***", {"b": ("***", 1, None)}],
        "***": True,
    }
    assert replace(clean, evaluator_results=result.evaluator_results) == result


#: Texts with characters that JSON escapes, or that it cannot contain.
TEXTS = st.text(
    st.characters(exclude_categories=())
    | st.sampled_from("\"\\/\b\f\n\r\t\0\x1b\x7f\x85\u2028\ud800é<&'+ "),
    max_size=12,
)


@given(
    before=TEXTS,
    secret=TEXTS.map(lambda text: f"s3cr3t-{text}-k3y"),
    after=TEXTS,
    as_key=st.booleans(),
)
def test_redact_record__finds_any_secret_in_any_text(
    before: str, secret: str, after: str, as_key: bool
) -> None:
    redactor, text = Redactor([secret]), before + secret + after
    details = {text: 1} if as_key else {"a": [text]}
    clean = redact_record(results.evaluated(details=details), redactor)
    shown = [*clean.details, *clean.details.get("a", ())]
    assert redactor.redact(text) in shown
    assert text not in shown


def test_redact_record__data_that_nests_too_deeply_is_masked() -> None:
    deep: Any = SECRET
    for _ in range(900):
        deep = [deep]
    result = results.result(
        "a",
        evaluator_results=(results.evaluated(details={"a": deep, "b": "kept", "c": [[["kept"]]]}),),
    )
    details = redact_record(result, REDACTOR).evaluator_results[0].details
    assert "live" not in repr(details)
    assert "***" in repr(details)
    assert (details["b"], details["c"]) == ("kept", [[["kept"]]])
