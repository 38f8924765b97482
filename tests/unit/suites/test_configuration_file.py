"""`.agentevals.yaml`: what is in quarantine, whose file says so, and every fault of it."""

import json
from datetime import date
from pathlib import Path

import pytest

from agentevals_action.model.diagnostic import Location
from agentevals_action.model.quarantine import FILE, Quarantine, Quarantines
from agentevals_action.suites.configuration_file import read_quarantines
from agentevals_action.suites.json_schema import configuration_schema

ROOT = Path(__file__).resolve().parents[3]
TODAY = date(2026, 3, 1)
ENTRY = "  - {tests: refund-*, owner: ada, reason: the provider flakes, expires: 2026-03-01}\n"


def tree(folder: Path, text: str | None) -> Path:
    folder.mkdir()
    if text is not None:
        (folder / FILE).write_text(text)
    return folder


def read(tmp_path: Path, text: str, today: date = TODAY) -> Quarantines:
    return read_quarantines(tree(tmp_path / "head", text), today)


def errors(tmp_path: Path, text: str) -> list[str]:
    return [str(diagnostic) for diagnostic in read(tmp_path, text).errors]


def test_read__an_entry_and_where_it_stands(tmp_path: Path) -> None:
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
    found = read(tmp_path, text)
    assert found == Quarantines(
        (
            Quarantine(
                ("refund-*", "!refund-over-limit"),
                "@ada",
                "the provider flakes",
                TODAY,
                ("evals/support/**",),
                Location(FILE, 3, 5),
            ),
        )
    )
    assert str(found.head[0].location) == ".agentevals.yaml:3:5"


@pytest.mark.parametrize("text", [None, "", "quarantine:\n", "quarantine: []\n", "# nothing\n"])
def test_read__nothing_is_in_quarantine(tmp_path: Path, text: str | None) -> None:
    assert read_quarantines(tree(tmp_path / "head", text), TODAY) == Quarantines()


def test_read__a_day_holds_to_its_end_and_is_an_error_then(tmp_path: Path) -> None:
    head = tree(tmp_path / "head", f"quarantine:\n{ENTRY}")
    assert len(read_quarantines(head, date(2026, 3, 1)).head) == 1
    late = read_quarantines(head, date(2026, 3, 2))
    assert late.head == ()
    assert [str(diagnostic) for diagnostic in late.errors] == [
        ".agentevals.yaml:2:73: the quarantine of 'refund-*' expired on 2026-03-01 (owner ada: the provider flakes); "
        "fix the tests and remove it, or set a later day"
    ]


def test_read__all_faults_at_once_each_at_its_place(tmp_path: Path) -> None:
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
    assert sorted(errors(tmp_path, text)) == [
        ".agentevals.yaml:10:14: `quarantine[1].expires`: '01.02.2026' is not a valid day; write it as YYYY-MM-DD",
        ".agentevals.yaml:11:5: `quarantine[2]` is the text 'greets'; write an object",
        ".agentevals.yaml:12:17: `quarantine[3].tests[1]` is an empty text; write a text that is not empty",
        ".agentevals.yaml:2:12: `quarantine[0].tests` is the number 5; write a text or a list",
        ".agentevals.yaml:3:12: `quarantine[0].suites` is empty; write a text or a list",
        ".agentevals.yaml:4:12: `quarantine[0].owner` is the text ' '; write a text that is not empty",
        '.agentevals.yaml:5:13: `quarantine[0].reason` is the number 3; write a text, in quotes: "3"',
        ".agentevals.yaml:6:14: `quarantine[0].expires`: '2026-02-30' is not a valid day; write it as YYYY-MM-DD",
        ".agentevals.yaml:7:12: `quarantine[1].tests` is an empty list; write at least one item",
        ".agentevals.yaml:7:5: `quarantine[1].reason` is missing; every item needs it",
        ".agentevals.yaml:8:5: the field `suits` is unknown; did you mean `suites`?",
    ]


@pytest.mark.parametrize(
    ("text", "told"),
    [
        (
            "- a\n",
            ".agentevals.yaml:1:1: this file is a list; write an object with `watch` or `quarantine`",
        ),
        (
            "quarantine: refund-*\n",
            ".agentevals.yaml:1:13: `quarantine` is the text 'refund-*'; write a list",
        ),
        ("quarantine: [\n", "this is not valid YAML"),
        ("quarantine: []\nquarantine: []\n", "is repeated"),
    ],
)
def test_read__a_file_of_another_shape(tmp_path: Path, text: str, told: str) -> None:
    (diagnostic,) = errors(tmp_path, text)
    assert told in diagnostic


def test_read__a_file_with_an_invalid_entry_puts_nothing_in_quarantine(tmp_path: Path) -> None:
    found = read(tmp_path, f"quarantine:\n{ENTRY}{ENTRY.replace('{tests', '{suits: a, tests')}")
    assert (found.head, len(found.errors)) == ((), 1)


def test_read__an_unknown_part_of_the_file_is_an_error(tmp_path: Path) -> None:
    found = read(tmp_path, f"quarantin:\n{ENTRY}")
    assert found.head == ()
    assert [str(one) for one in found.errors] == [
        ".agentevals.yaml:1:1: the field `quarantin` is unknown; did you mean `quarantine`?"
    ]


def test_read__another_name_of_the_file_is_a_warning(tmp_path: Path) -> None:
    head = tree(tmp_path / "head", None)
    (head / ".agentevals.yml").write_text(f"quarantine:\n{ENTRY}")
    found = read_quarantines(head, TODAY)
    assert found.head == ()
    assert [str(one) for one in found.warnings] == [
        ".agentevals.yml:1:1: this file is not read; call it `.agentevals.yaml`"
    ]


def test_read__a_file_that_cannot_be_read_is_no_file_without_entries(tmp_path: Path) -> None:
    (tmp_path / "outside.yaml").write_text(f"quarantine:\n{ENTRY}")
    head = tree(tmp_path / "head", None)
    (head / FILE).symlink_to(tmp_path / "outside.yaml")
    assert "leaves the repository" in str(read_quarantines(head, TODAY).errors[0])
    (head / FILE).unlink()
    (head / FILE).symlink_to(head / "nowhere.yaml")
    assert "cannot be read" in str(read_quarantines(head, TODAY).errors[0])
    (head / FILE).unlink()
    (head / FILE).mkdir()
    assert "cannot be read" in str(read_quarantines(head, TODAY).errors[0])


def both(tmp_path: Path, head: str | None, base: str | None) -> Quarantines:
    tree(tmp_path / "head", head)
    return read_quarantines(tmp_path / "head", TODAY, (base or "").encode(), by_base=True)


def test_by_base__both_files_are_read(tmp_path: Path) -> None:
    found = both(tmp_path, f"quarantine:\n{ENTRY}", f"quarantine:\n{ENTRY}")
    assert found.base == found.head
    assert len(found.head) == 1


def test_by_base__a_base_without_the_file_has_nothing_in_quarantine(tmp_path: Path) -> None:
    assert both(tmp_path, f"quarantine:\n{ENTRY}", None).base == ()


def test_by_base__what_has_expired_there_is_not_the_change_s_fault(tmp_path: Path) -> None:
    old = ENTRY.replace("2026-03-01", "2026-02-01")
    found = both(tmp_path, f"quarantine:\n{ENTRY}", f"quarantine:\n{old}")
    assert (found.base, found.errors, found.warnings) == ((), (), ())
    assert len(found.head) == 1


def test_by_base__errors_there_are_warnings_and_nothing_is_in_quarantine(tmp_path: Path) -> None:
    found = both(tmp_path, "", f"quarantine:\n{ENTRY}  - {{tests: a}}\n")
    assert (found.base, found.errors) == ((), ())
    assert str(found.warnings[0]) == (
        ".agentevals.yaml:3:5: on base, `quarantine[1].owner` is missing; "
        "its file puts nothing in quarantine"
    )


def test_by_base__a_base_that_could_not_be_had_holds_nothing_and_says_so(tmp_path: Path) -> None:
    head = tree(tmp_path / "head", f"quarantine:\n{ENTRY}")
    found = read_quarantines(head, TODAY, None, by_base=True)
    assert found.base == ()
    assert "the base's tree is missing" in str(found.warnings[0])
    (head / FILE).unlink()
    assert read_quarantines(head, TODAY, None, by_base=True) == Quarantines((), ())


def test_schema__is_the_one_that_stands_in_the_repository() -> None:
    assert (
        json.loads((ROOT / "schemas/agentevals.schema.json").read_text(encoding="utf-8"))
        == configuration_schema()
    )
