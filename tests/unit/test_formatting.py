"""Numbers as people read them."""

import pytest

from agentevals_action import formatting


@pytest.mark.parametrize(
    ("share", "words"),
    [
        (None, "–"),
        (0.0, "0%"),
        (1.0, "100%"),
        (0.9999, "99.9%"),
        (0.29, "29%"),
        (2 / 3, "66.7%"),
        (0.94999, "94.9%"),
        (0.07, "7%"),
    ],
)
def test_percent__all_is_all_and_nothing_less(share: float | None, words: str) -> None:
    assert formatting.percent(share) == words


@pytest.mark.parametrize(
    ("value", "words"),
    [
        (None, "–"),
        (0.0, "0.00"),
        (0.7999, "0.79"),
        (0.8, "0.80"),
        (0.5999, "0.59"),
        (0.899, "0.89"),
        (0.29, "0.29"),
        (2 / 3, "0.67"),
        (0.125, "0.13"),
        (1.0, "1.00"),
        (0.1 + 0.2, "0.30"),
    ],
)
def test_score__never_shows_a_threshold_that_it_missed(value: float | None, words: str) -> None:
    assert formatting.score(value) == words


@pytest.mark.parametrize(
    ("usd", "words"),
    [
        (None, "–"),
        (0.0, "$0.0000"),
        (0.00001, "<$0.0001"),
        (0.0123, "$0.0123"),
        (12.5, "$12.50"),
        (1234.0, "$1,234.00"),
    ],
)
def test_cost__unknown_is_not_zero(usd: float | None, words: str) -> None:
    assert formatting.cost(usd) == words


@pytest.mark.parametrize(
    ("usd", "words"),
    [
        (0.0, "$0"),
        (1.0, "$1"),
        (2.5, "$2.50"),
        (0.075, "$0.075"),
        (0.00001, "$0.00001"),
        (1_000_000.0, "$1,000,000"),
        (1e22, "$10,000,000,000,000,000,000,000"),
    ],
)
def test_dollars__as_they_were_given(usd: float, words: str) -> None:
    assert formatting.dollars(usd) == words


def test_plain__has_no_exponent() -> None:
    assert [formatting.plain(number) for number in (300, 0.5, 1e-7, 1e7)] == [
        "300",
        "0.5",
        "0.0000001",
        "10,000,000",
    ]


@pytest.mark.parametrize(
    ("milliseconds", "words"),
    [
        (None, "–"),
        (0.0, "0.0 s"),
        (1250.0, "1.2 s"),
        (59_999.0, "60.0 s"),
        (61_000.0, "1 min 1 s"),
        (3_720_000.0, "1 h 2 min"),
    ],
)
def test_time__in_its_largest_units(milliseconds: float | None, words: str) -> None:
    assert formatting.time(milliseconds) == words


@pytest.mark.parametrize(
    ("number", "words"),
    [
        (None, "–"),
        (0, "0"),
        (999, "999"),
        (999.6, "1k"),
        (1234, "1.23k"),
        (12_345, "12.3k"),
        (123_456, "123k"),
        (999_600, "1M"),
        (5e13, "50,000G"),
    ],
)
def test_tokens__three_digits_and_a_unit(number: float | None, words: str) -> None:
    assert formatting.tokens(number) == words


def test_step__whole_percent_of_base() -> None:
    assert [
        formatting.step(*pair)
        for pair in (
            (2.0, 3.0),
            (2.0, 1.0),
            (200.0, 200.9),
            (None, 1.0),
            (1.0, None),
            (0.0, 1.0),
            (1.0, 0.0),
        )
    ] == [
        *(50, -50, 0),
        *(None, None, None, -100),
    ]


def test_delta__is_that_of_the_shown_scores() -> None:
    base, head = 1.0, 3 / 7
    assert (formatting.score(head), formatting.delta(base, head)) == ("0.43", "−0.57")


def test_delta__signed_or_nothing() -> None:
    assert [
        formatting.delta(*pair)
        for pair in ((0.5, 0.75), (0.75, 0.5), (0.5, 0.501), (None, 1.0), (1.0, None))
    ] == [
        "+0.25",
        "−0.25",
        "",
        "",
        "",
    ]


def test_moved__once_when_both_read_alike() -> None:
    assert formatting.moved(formatting.score, 0.8, 0.801) == "0.80"
    assert formatting.moved(formatting.score, None, 0.8) == "– → 0.80"


def test_joined__as_a_sentence_lists() -> None:
    assert [formatting.joined(parts) for parts in ([], ["a"], ["a", "b"], ["a", "b", "c"])] == [
        "",
        "a",
        "a and b",
        "a, b and c",
    ]


def test_words__known_and_strange() -> None:
    assert (
        formatting.error_kind("budget"),
        formatting.error_kind("workspace"),
        formatting.error_kind("odd"),
    ) == (
        "budget spent",
        "workspace failed",
        "odd error",
    )


def test_counted__the_frequent_first() -> None:
    assert (
        formatting.counted_error_kinds(["target", "budget", "budget"])
        == "budget spent (2), target failed (1)"
    )
    assert formatting.counted_error_kinds(["budget", "budget"]) == "budget spent"


def test_plural__of_nouns_and_verbs() -> None:
    assert [formatting.plural(number, "test") for number in (0, 1, 2)] == ["tests", "test", "tests"]
    assert [formatting.plural(number, "is", "are") for number in (1, 2)] == ["is", "are"]


def test_one_of__names_every_choice() -> None:
    assert formatting.join_choices(["a", "b", "c"]) == "`a`, `b` or `c`"
    assert formatting.join_choices(["a"]) == "`a`"


def test_cut__keeps_the_limit() -> None:
    assert formatting.cut("abcd", 4) == "abcd"
    assert formatting.cut("abcde", 4) == "abc…"


def test_quoted__is_one_line_and_shows_white_space_alone() -> None:
    assert formatting.quoted("a\nb") == '"a b"'
    assert formatting.quoted("\n\t") == '"\\n\\t"'
    assert len(formatting.quoted("x" * 100)) == 82


def test_each_once__in_their_order_and_counted() -> None:
    assert formatting.each_once(("b", "a", "b", "b")) == ("b (3 times)", "a")


def test_ends_of__a_cause_is_shown_where_node_and_where_python_write_it() -> None:
    frames = [f"    at frame{number} (node:internal/modules/esm/loader:1)" for number in range(20)]
    cause = "Error [ERR_MODULE_NOT_FOUND]: Cannot find package 'shop'"
    node = ["node:internal/modules/esm/resolve:873", "  throw new ERR()", "        ^", "", cause]
    text = "\n".join([*node, *frames, "  code: 'ERR_MODULE_NOT_FOUND'", "}", "", "Node.js v20"])
    found = formatting.cut_middle(text, 6, 8, 1_000)
    assert cause in found
    assert found.endswith("Node.js v20")
    assert found.splitlines()[6] == "… 13 more lines …"
    assert (
        formatting.cut_middle("Traceback\n\nValueError: no", 6, 8, 1_000)
        == "Traceback\nValueError: no"
    )


def test_ends_of__long_lines_are_cut() -> None:
    lines = [*["a" * 600] * 6, *["b"] * 10, *["c" * 600] * 8]
    found = formatting.cut_middle("\n".join(lines), 6, 8, 1_000)
    assert len(found) < 2_050
    assert found.startswith("a" * 600)
    assert found.endswith("c" * 600)
    assert len(formatting.cut_middle("a" * 9_000, 6, 8, 1_000)) == 2_000
