"""`.agentevals.yaml`: the tests in quarantine by the files of head and base, and every error."""

from datetime import date
from pathlib import Path

import pytest

from agentevals_action.model.diagnostic import Location
from agentevals_action.model.quarantine import FILE, Quarantine, Quarantines
from agentevals_action.suites.configuration_file import (
    parse_configuration,
    read_configuration,
    read_quarantines,
)

ROOT = Path(__file__).resolve().parents[3]
TODAY = date(2026, 3, 1)
ENTRY = "  - {tests: refund-*, owner: ada, reason: the provider flakes, expires: 2026-03-01}\n"


def quarantines(head: str, base: str | None = None, today: date = TODAY) -> Quarantines:
    """Those of two files; `base` None is a run of suites as they are."""
    content = None if base is None else base.encode()
    file = parse_configuration(head.encode())
    return read_quarantines(file, today, content, by_base=base is not None)


def errors(text: str) -> list[str]:
    return [str(diagnostic) for diagnostic in quarantines(text).errors]


def test_read_quarantines__an_entry_and_its_location() -> None:
    text = """\
# Who may fail.
quarantine:
  - tests: [refund-*, "!refund-over-limit"]
    suites: evals/support/**
    owner: "@ada"
    reason: |
      the provider flakes
    expires: 2026-03-01
"""
    tests, suites = ("refund-*", "!refund-over-limit"), ("evals/support/**",)
    location = Location(FILE, 3, 5)
    entry = Quarantine(
        tests=tests,
        owner="@ada",
        reason="the provider flakes",
        expires=TODAY,
        suites=suites,
        location=location,
    )

    assert quarantines(text) == Quarantines((entry,))


@pytest.mark.parametrize("text", ["", "quarantine:\n", "quarantine: []\n", "# nothing\n"])
def test_read_quarantines__none(text: str) -> None:
    assert quarantines(text) == Quarantines()


def test_read_quarantines__a_day_counts_to_its_end_and_is_an_error_then() -> None:
    text = f"quarantine:\n{ENTRY}"

    late = quarantines(text, today=date(2026, 3, 2))

    assert len(quarantines(text).head) == 1
    assert late.head == ()
    assert [str(diagnostic) for diagnostic in late.errors] == [
        ".agentevals.yaml:2:5: the quarantine of 'refund-*' expired on 2026-03-01 (owner ada: the "
        "provider flakes); fix the tests and remove it, or set a later day"
    ]


def test_errors__all_at_once_with_their_locations() -> None:
    text = """\
quarantine:
  - tests: 5
    suites:
    owner: " "
    reason: 3
    expires: 2026-02-30
  - tests: []
    suits: evals/**
    owner: ada
    expires: 01.02.2026
  - greets
  - {tests: [a, ""], owner: ada, reason: flaky, expires: 2026-02-28}
"""
    assert sorted(errors(text)) == [
        ".agentevals.yaml:10:14: `quarantine[1].expires` is the text '01.02.2026'; write a day as YYYY-MM-DD",
        ".agentevals.yaml:11:5: `quarantine[2]` is the text 'greets'; write an object",
        ".agentevals.yaml:12:17: `quarantine[3].tests[1]` is an empty text; write a text that is not empty",
        ".agentevals.yaml:2:12: `quarantine[0].tests` is the number 5; write a text or a list",
        ".agentevals.yaml:3:12: `quarantine[0].suites` is empty; write a text or a list",
        ".agentevals.yaml:4:12: `quarantine[0].owner` is the text ' '; write a text that is not empty",
        '.agentevals.yaml:5:13: `quarantine[0].reason` is the number 3; write a text, in quotes: "3"',
        ".agentevals.yaml:6:14: `quarantine[0].expires` is the text '2026-02-30'; write a day as YYYY-MM-DD",
        ".agentevals.yaml:7:12: `quarantine[1].tests` is an empty list; write at least one item",
        ".agentevals.yaml:7:5: `quarantine[1].reason` is missing; every item needs it",
        ".agentevals.yaml:8:5: the field `suits` is unknown; did you mean `suites`?",
    ]


@pytest.mark.parametrize(
    ("text", "error"),
    [
        (
            "- a\n",
            "1:1: this file is a list; write an object with `watch`, `skills`, `quarantine` or `runners`",
        ),
        ("quarantine: refund-*\n", "1:13: `quarantine` is the text 'refund-*'; write a list"),
        ("quarantine: [\n", "this is not valid YAML"),
        (f"quarantin:\n{ENTRY}", "1:1: the field `quarantin` is unknown; did you mean"),
        *(
            (
                f"watch: src/**\n{name}: 1\n",
                f"2:1: `{name}` is an input, and this file cannot set it; write it in the workflow",
            )
            for name in ("fail-on", "fail_on", "samples")
        ),
        (f"quarantine:\n{ENTRY}  - {{tests: a, owner: a, reason: b}}\n", "is missing"),
        ("watch: 'src/{1..1001}'\n", "1:8: `watch`: the braces of `src/{1..1001}` have more"),
        (
            f"runners: [{{name: a, results: junit, suites: a, errors: {'x' * 50_001}}}]\n",
            "1:56: `runners[0].errors`",
        ),
        ("suites: 'a/{1..1001}'\n", "1:9: `suites`: the braces of `a/{1..1001}` have more"),
    ],
)
def test_errors__a_file_with_one_has_no_entry(text: str, error: str) -> None:
    found = quarantines(text)

    assert found.head == ()
    assert error in str(found.errors[0])
    assert len(found.errors) == 1


@pytest.mark.parametrize(
    ("words", "globs"),
    [
        ("true", ("*",)),
        ("false", ()),
        ("safe-*", ("safe-*",)),
        ('["*", "!slow"]', ("*", "!slow")),
    ],
)
def test_runners__required_is_a_switch_or_globs(words: str, globs: tuple[str, ...]) -> None:
    entry = f"{{name: ours, results: junit, suites: a.py, required: {words}}}"

    file = parse_configuration(f"runners: [{entry}]\n".encode())

    assert file.errors == ()
    assert [runner.required for runner in file.content.runners or ()] == [globs]


@pytest.mark.parametrize("words", ["[]", '""', "3"])
def test_runners__required_is_nothing_else(words: str) -> None:
    entry = f"{{name: ours, results: junit, suites: a.py, required: {words}}}"

    file = parse_configuration(f"runners: [{entry}]\n".encode())

    assert "write true, or globs over test ids" in str(file.errors[0])


def test_read_configuration__another_name_of_the_file_is_a_warning(tmp_path: Path) -> None:
    (tmp_path / ".agentevals.yml").write_text(f"quarantine:\n{ENTRY}")

    file = read_configuration(tmp_path)

    assert file.content.quarantine is None
    assert [str(warning) for warning in file.warnings] == [
        ".agentevals.yml:1:1: this file is not read; call it `.agentevals.yaml`"
    ]


def test_read_configuration__a_link_out_of_the_repository_is_an_error(tmp_path: Path) -> None:
    (tmp_path / "outside.yaml").write_text(f"quarantine:\n{ENTRY}")
    head = tmp_path / "head"
    head.mkdir()
    for target, problem in (("../outside.yaml", "leaves the repository"), ("no", "cannot be read")):
        (head / FILE).unlink(missing_ok=True)
        (head / FILE).symlink_to(target)
        assert problem in str(read_configuration(head).errors[0])


def test_by_base__both_files_count() -> None:
    text = f"quarantine:\n{ENTRY}"

    both, head_only = quarantines(text, text), quarantines(text, "")

    assert (both.base, len(both.head)) == (both.head, 1)
    assert (head_only.base, len(head_only.head)) == ((), 1)


def test_by_base__an_expired_entry_is_ignored() -> None:
    old = ENTRY.replace("2026-03-01", "2026-02-01")

    found = quarantines(f"quarantine:\n{ENTRY}", f"quarantine:\n{old}")

    assert (found.base, found.errors, found.warnings) == ((), (), ())
    assert len(found.head) == 1


def test_by_base__an_error_is_a_warning_and_nothing_is_in_quarantine() -> None:
    found = quarantines("", f"quarantine:\n{ENTRY}  - {{tests: a}}\n")

    assert (found.base, found.errors) == ((), ())
    assert str(found.warnings[0]) == (
        ".agentevals.yaml:3:5: on base, `quarantine[1].owner` is missing; "
        "its file puts nothing in quarantine"
    )


def test_by_base__without_its_commit_nothing_is_in_quarantine() -> None:
    head = parse_configuration(f"quarantine:\n{ENTRY}".encode())

    found = read_quarantines(head, TODAY, None, by_base=True)

    assert found.base == ()
    assert "the base's tree is missing" in str(found.warnings[0])
    assert read_quarantines(parse_configuration(b""), TODAY, None, by_base=True) == Quarantines(
        (), ()
    )
