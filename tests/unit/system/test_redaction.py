"""Redaction of texts, and of records before their texts are cut or escaped."""

import base64
import json
import logging
from dataclasses import replace
from io import StringIO
from typing import Any
from urllib.parse import quote, quote_plus

import pytest
from hypothesis import example, given
from hypothesis import strategies as st

from agentevals_action.formatting import cut
from agentevals_action.model.result import ErrorInfo
from agentevals_action.system.redaction import MASK, Redactor, looks_secret, redact_record
from tests.support import results

SECRET = 'pä/ss "w+rd"\\&<1>~%?'
SECRETS = st.text(min_size=8, max_size=40).filter(
    lambda text: len(text.strip()) >= 8 and len(text.splitlines()) == 1
)


CREDENTIALS = """
    GITHUB_TOKEN INPUT_GITHUB-TOKEN OPENAI_API_KEY AWS_SECRET_ACCESS_KEY DB_PASSWORD DB_PASS
    PGPASSWORD apikey NPM_AUTH SENTRY_DSN AZURE_CREDENTIALS SSH_PRIVATE_KEY GH_PAT
"""
OTHERS = """
    PATH PWD OLDPWD GIT_AUTHOR_NAME KEYBOARD MONKEY COMPASS GITHUB_REPOSITORY PATTERN
"""


def test_looks_secret__names_of_credentials() -> None:
    names = (CREDENTIALS + OTHERS).split()
    assert list(filter(looks_secret, names)) == CREDENTIALS.split()


FORMS = {
    "plain": SECRET,
    "url": quote(SECRET, safe=""),
    "url with slashes": quote(SECRET),
    "form": quote_plus(SECRET),
    "url in lower case": quote(SECRET, safe="").lower(),
    "json": json.dumps(SECRET)[1:-1],
    "json unescaped": json.dumps(SECRET, ensure_ascii=False)[1:-1],
    "python": repr({"key": SECRET})[9:-2],
    "json in json": json.dumps(json.dumps(SECRET))[3:-3],
    "json in json in json": json.dumps(json.dumps(json.dumps(SECRET)))[7:-7],
}


@pytest.mark.parametrize("form", FORMS.values(), ids=FORMS)
def test_redact__every_form(form: str) -> None:
    assert Redactor([SECRET]).redact(f"before {form} after") == f"before {MASK} after"


@pytest.mark.parametrize(
    "secret", ['with"quote\\backslash', "both'quotes\"in-it", "one'quote\\in-it"]
)
def test_redact__a_key_that_python_prints(secret: str) -> None:
    assert Redactor([secret]).redact(repr([secret]))[2:-2] == MASK


@given(before=st.binary(max_size=12), secret=SECRETS, after=st.binary(max_size=12))
def test_redact__an_encoded_secret_cannot_be_decoded(
    before: bytes, secret: str, after: bytes
) -> None:
    core = secret.strip().encode("utf-8", "replace")
    encoded = base64.b64encode(before + core + after).decode()
    clean = Redactor([secret]).redact(encoded)
    assert MASK in clean
    left = len(clean.replace("=", "")) - len(MASK)
    assert left <= (len(before) + len(after)) * 8 / 6 + 3


@pytest.mark.parametrize("form", FORMS.values(), ids=FORMS)
def test_redact__the_beginning_that_a_sentence_quotes(form: str) -> None:
    assert Redactor([SECRET]).redact(f"'{cut(form, 12)}' is wrong") == f"'{MASK}…' is wrong"
    assert Redactor([SECRET]).redact(form[:11]) == form[:11]  # a word that only begins alike


def test_redact__short_values_are_left_alone() -> None:
    assert Redactor(["true", "admin12", ""]).redact("true admin12") == "true admin12"


def test_redact__the_longest_wins() -> None:
    redactor = Redactor(["password", "password-long"])
    assert redactor.redact("password-long password") == f"{MASK} {MASK}"


def test_redact__each_long_line_of_a_key_is_a_secret() -> None:
    key = "-----BEGIN KEY-----\nMIIEowIBAAKCAQEA\nshort\nq83vEjRWeJA8nQWz\n-----END KEY-----\n"
    clean = Redactor([key]).redact(f"{key} and MIIEowIBAAKCAQEA and short")
    assert clean.count(MASK) == 2
    assert "MIIE" not in clean
    assert clean.endswith("and short")


def test_from_environ__secret_names_inputs_and_named_ones() -> None:
    environ = {
        "GITHUB_TOKEN": "ghs_01234567",
        "INPUT_GITHUB-TOKEN": "ghs_01234567",
        "PLAIN_NAME": "a-plain-value",
        "NAMED": "n4med-value-of-a-key",
    }
    redactor = Redactor.from_environ(environ, ["NAMED", "MODE", "NOT_SET"])
    assert (
        redactor.redact("ghs_01234567 a-plain-value n4med-value-of-a-key production")
        == f"{MASK} a-plain-value {MASK} production"
    )


@given(
    st.lists(SECRETS, min_size=1, max_size=4),
    st.lists(st.text(max_size=20), min_size=1, max_size=6),
    st.data(),
)
@example(["********", "0" * 8], ["*", "0"], None)
def test_redact__no_secret_survives(
    secrets: list[str], texts: list[str], data: st.DataObject | None
) -> None:
    pieces = list(texts)
    for secret in secrets:
        forms = [
            secret,
            json.dumps(secret)[1:-1],
            quote(secret, safe=""),
            base64.b64encode(secret.encode("utf-8", "replace")).decode(),
        ]
        index = data.draw(st.integers(0, len(pieces))) if data else 0
        pieces.insert(index, data.draw(st.sampled_from(forms)) if data else secret)
    clean = Redactor(secrets).redact("".join(pieces))
    assert not any(secret.strip() in clean for secret in secrets)


def test_filter__messages_arguments_and_tracebacks() -> None:
    stream = StringIO()
    handler = logging.StreamHandler(stream)
    handler.addFilter(Redactor(["s3cr3t-value"]).filter())
    logger = logging.Logger("test")
    logger.addHandler(handler)
    logger.info("with %s", "s3cr3t-value")
    try:
        raise RuntimeError("it was s3cr3t-value")
    except RuntimeError:
        logger.exception("failed")
    text = stream.getvalue()
    assert "s3cr3t-value" not in text
    assert f"with {MASK}" in text
    assert f"RuntimeError: it was {MASK}" in text


def test_record__a_secret_in_a_text_that_is_json_itself_is_found() -> None:
    secret = 'p4ss "w/rd" \\ k7LmTz9QvB'
    record = ErrorInfo(kind="target", message=json.dumps({"key": secret}))
    assert redact_record(record, Redactor([secret])).message == '{"key": "***"}'


#: A secret that Markdown escapes.
KEY = "sk_live_c0ffee1234567890|*"
REDACTOR = Redactor([KEY])


def test_redact_record__reaches_mappings_and_leaves_the_rest_alone() -> None:
    details = {"a": [KEY, {"b": (KEY, 1, None)}], KEY: True}
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
    deep: Any = KEY
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
