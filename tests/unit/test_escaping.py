"""Untrusted text in Markdown: it is shown, and nothing of it comes alive."""

import re

import pytest
from hypothesis import example, given, settings
from hypothesis import strategies as st

from agentevals_action import escaping
from tests.support import markdown

_PIECES = [
    "@octocat", "@acme/team", "#1", "acme/app#22", "GH-7", "fixes #3", "closes", "https://evil.example/x", "http://e.e", "www.evil.example",
    "a@b.example", "mailto:a@b.example", "ftp://x.example", "c0ffee1234", "c0ffee1234567890c0ffee1234567890c0ffee12", "GHSA-aaaa-bbbb-cccc",
    "CVE-2020-1234", "<b>", "</details>", "<img src=x>", "<!--", "-->", "<!-- agentevals-report -->", "[a](b)", "![a](b)", "[^1]", "[x]", "`", "``",
    "```", "~~~", "~~", "*", "**", "_", "__", "|", "\\", "\\|", "\n", "\r", "\t", "# ", "> ", "- ", "1. ", "1) ", "+ ", "===", "---", "&lt;", "&#64;",
    "&", ":tada:", ":", "$x$", "$", "\u202e", "\u200b", "\u200d", "\ud800", "\x1b[31m", "\x00", "    ", "é", "漢", "🙂", "word", "a", "0", "{{ x }}",
]  # fmt: skip
hostile = st.lists(st.one_of(st.sampled_from(_PIECES), st.text(max_size=5)), max_size=12).map(
    "".join
)
many = settings(max_examples=4 * settings().max_examples)

#: Tags that the escapers make themselves.
_OWN = {"<p>", "</p>", "<span>", "</span>", "<code>", "</code>"}
#: Characters that a comparison by culture passes over, and white space that the runner trims.
WEIGHTLESS = ["\u200b", "\u00ad", "\ufeff", "\x01", "\u2060", "\x1b"]
SPACES = [" ", "\t", "\u00a0", "\u2003", "\x0b", "\x0c", "\x85", "\u2028"]


def runner_takes(line: str) -> bool:
    """Whether the runner may take a line for a command: `::` first after white space, or `##[`
    anywhere; characters without weight count as absent, as in a comparison by culture."""
    seen = "".join(char for char in line if char not in WEIGHTLESS)
    return seen.lstrip().startswith("::") or "##[" in seen


def assert_dead(page: str, allowed: set[str]) -> None:
    assert set(markdown.tags(page)) <= allowed, page
    assert not markdown.LIVE.search(markdown.text_outside_code(page)), page


@many
@given(hostile)
def test_inline__nothing_comes_alive_and_all_is_shown(text: str) -> None:
    page = markdown.rendered(escaping.inline(text, 10_000))
    assert_dead(page, _OWN - {"<code>", "</code>"})
    assert markdown.shown(page) == (escaping.plain(text, 10_000) or "(empty)")


@many
@given(hostile)
def test_inline__stays_in_its_table_cell_and_list_item(text: str) -> None:
    table = markdown.rendered(f"| a | b |\n|--|--|\n| {escaping.inline(text)} | end |\n")
    assert table.count("<td>") == 2
    assert "<td>end</td>" in table
    items = markdown.rendered(f"- {escaping.inline(text)}\n- end\n")
    assert set(markdown.tags(items)) <= {"<ul>", "</ul>", "<li>", "</li>", "<span>", "</span>"}


@many
@given(hostile)
def test_inline__is_safe_inside_html(text: str) -> None:
    page = f"<summary>{escaping.html_code(text)}</summary>"
    assert set(markdown.tags(page)) <= {
        "<summary>",
        "</summary>",
        "<code>",
        "</code>",
        "<span>",
        "</span>",
    }
    assert "<!--" not in page


@many
@given(hostile)
def test_code__nothing_comes_alive_and_all_is_shown(text: str) -> None:
    page = markdown.rendered(f"| a | b |\n|--|--|\n| {escaping.code(text, 10_000)} | end |\n")
    assert page.count("<td>") == 2
    cell = page.split("<td>")[1].split("</td>")[0]
    assert_dead(cell, _OWN)
    assert markdown.shown(cell) == (escaping.plain(text, 10_000) or "(empty)")
    assert "<!--" not in escaping.code(text)


@many
@given(hostile)
@example("]:tada:")
def test_code__is_one_link_text(text: str) -> None:
    page = markdown.rendered(f"[{escaping.code(text)}](https://github.com/acme)")
    assert re.findall(r'href="([^"]*)"', page) == ["https://github.com/acme"]


@many
@given(hostile)
def test_prose__only_code_between_backticks_comes_alive(text: str) -> None:
    assert_dead(markdown.rendered(escaping.prose(text)), _OWN)


@many
@given(hostile)
def test_fenced__holds_everything(text: str) -> None:
    page = markdown.rendered(f"{escaping.fenced(text, 10_000)}\n\nend\n")
    block = re.search(r"<pre>?.*?</pre>", page, re.DOTALL)
    if block is None:
        assert "(empty)" in page
        return
    rest = page.replace(block[0], "")
    assert_dead(
        rest, {"<p>", "</p>", "<ul>", "</ul>", "<li>", "</li>", "<blockquote>", "</blockquote>"}
    )
    assert markdown.shown(rest) == "end"
    assert "<!--" not in escaping.fenced(text, 10_000)


def test_fenced__is_longer_than_any_fence_inside() -> None:
    assert escaping.fenced("```\n````\n~~~~~~~", 100).startswith("`````text\n")
    assert escaping.fenced("`" * 500 + "\n~~~", 1000).startswith("~~~~text\n")


def test_fenced__counts_what_is_left_out() -> None:
    assert escaping.fenced("x" * 1500, 500).splitlines()[-2:] == [
        "… (1,000 more characters)",
        "```",
    ]
    assert "more" not in escaping.fenced("x" * 500, 500)


def test_fenced__shows_what_hides_or_reorders() -> None:
    assert (
        escaping.fenced("a\u202eb\u200bc\x1b[1m\x07\ud800\r\nd\te", 100)
        == "```text\na�b�c�[1m��\nd\te\n```"
    )


def test_visible__keeps_what_writing_needs() -> None:
    for text in ("می\u200cخواهم", "👩\u200d👩\u200d👧", "é", "e\u0301", "❤️", "नमस्ते"):
        assert escaping.visible(text) == text


def test_visible__cuts_piles_of_marks() -> None:
    assert len(escaping.visible("a" + "\u0301" * 200 + "b")) == 6


@pytest.mark.parametrize(
    "escape", [escaping.plain, escaping.inline, escaping.code, escaping.html_code, escaping.prose]
)
def test_cut__to_the_limit_also_when_huge(escape: object) -> None:
    assert callable(escape)
    for text in ("word " * 1_000_000, " " * 1_000_000 + "x"):
        result = str(escape(text, 50))
        assert "…" in result
        assert len(result) < 80


def test_plain__one_line() -> None:
    assert escaping.plain(" a\n\tb  c ") == "a b c"
    assert escaping.plain("x" * 300, 255) == "x" * 254 + "…"


@pytest.mark.parametrize("between", ["", "\u200b", "\ufeff"])
@pytest.mark.parametrize("end", ["\n", "\r", "\r\n"])
def test_safe_log_line__begins_no_command(between: str, end: str) -> None:
    for before in ("", *SPACES, *WEIGHTLESS, " \u200b \x85", "é "):
        raw = f"fine{end}{before}:{between}:error::pwned"
        safe = escaping.safe_log_line(raw)
        lines = re.split(r"\r\n|\r|\n", safe)
        assert not any(runner_takes(line) for line in lines)
        assert lines == ["fine", f"| {before}:{between}:error::pwned"]


@pytest.mark.parametrize(
    "raw",
    ["##[error]x", "text ##[set-env name=A]b", "###[group]", "#\u200b##[x]", "#\ufeff#\u00ad[x]"],
)
def test_safe_log_line__holds_no_old_command(raw: str) -> None:
    safe = escaping.safe_log_line(raw)
    assert not runner_takes(safe)
    assert safe.replace(" ", "") == raw.replace(" ", "")


@pytest.mark.parametrize(
    "line",
    ["std::vector<int>", "a: b", "## [heading]", "# #", "evals/EVAL.yaml:3:1: fault", "", "100%"],
)
def test_safe_log_line__leaves_other_lines_alone(line: str) -> None:
    assert escaping.safe_log_line(line) == line
