import os
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from agentevals_action.errors import AttemptError, UnusableVariables
from agentevals_action.targets.variables import names_in, parse_dotenv, read_variables, resolve


def test_names_in__anywhere_once_in_order() -> None:
    value = {
        "a": "${{ B }} ${{A}}",
        "list": ["x", {"deep": "${{ C }}${{ A }}"}],
        "number": 1,
        "none": None,
        "tuple": ("${{ D }}",),
    }
    assert names_in(value) == ("B", "A", "C", "D")


def test_names_in__what_is_no_reference() -> None:
    assert names_in("$B {B} ${B} {{ B }} $ {{ B }}") == ()


def test_resolve__fills_in_nested_values_and_leaves_the_rest() -> None:
    value = {
        "url": "https://${{ HOST }}/${{ PATH_PART }}",
        "list": ["${{ HOST }}"],
        "words": ("a", "${{HOST}}"),
        "n": 1.5,
        "t": True,
    }
    assert resolve(value, {"HOST": "h", "PATH_PART": "p"}) == {
        "url": "https://h/p",
        "list": ["h"],
        "words": ("a", "h"),
        "n": 1.5,
        "t": True,
    }


def test_resolve__a_value_is_not_resolved_again() -> None:
    assert resolve("${{ A }}", {"A": "${{ B }}", "B": "no"}) == "${{ B }}"


def test_resolve__missing_names_are_named() -> None:
    with pytest.raises(
        AttemptError, match=r"the variables FIRST, secrets\.SECOND are not set"
    ) as caught:
        resolve(
            {"a": "${{ FIRST }}", "b": ["${{ secrets.SECOND }}"], "c": "${{ THERE }}"},
            {"THERE": "x"},
        )
    assert caught.value.kind == "configuration"
    assert "forks" in caught.value.hint


def test_read_variables__environment_then_nearest_file(tmp_path: Path) -> None:
    folder = tmp_path / "a" / "b"
    folder.mkdir(parents=True)
    (tmp_path / ".env").write_text("ROOT=root\nBOTH=root\nENV=root\nEMPTY=from-file\n")
    (tmp_path / "a" / ".env").write_text("MIDDLE=middle\n")
    (folder / ".env").write_text("BOTH=folder\n")
    variables = read_variables({"ENV": "environment", "EMPTY": "", "NOTHING": ""}, tmp_path, folder)
    assert variables == {
        "ROOT": "root",
        "BOTH": "folder",
        "MIDDLE": "middle",
        "ENV": "environment",
        "EMPTY": "from-file",
    }


def test_read_variables__files_beside_and_below_are_not_read(tmp_path: Path) -> None:
    for name in ("beside", "here", "here/below"):
        (tmp_path / name).mkdir()
    (tmp_path / "beside/.env").write_text("A=1")
    (tmp_path / "here/below/.env").write_text("B=1")
    (tmp_path.parent / ".env").write_text("C=1")
    assert read_variables({}, tmp_path, tmp_path / "here") == {}


@pytest.mark.parametrize(
    "name",
    [
        "GITHUB_TOKEN",
        "ACTIONS_RUNTIME_TOKEN",
        "ACTIONS_ID_TOKEN_REQUEST_TOKEN",
        "INPUT_GITHUB-TOKEN",
        "INPUT_TARGET",
    ],
)
def test_read_variables__the_runners_own_never_resolve(tmp_path: Path, name: str) -> None:
    (tmp_path / ".env").write_text(f"{name}=from-file\n".replace("-", "_"))
    variables = read_variables(
        {name: "ghs_0123456789", "GITHUB_SHA": "abc", "GITHUB_TOKENS": "other"}, tmp_path, tmp_path
    )
    assert variables == {"GITHUB_SHA": "abc", "GITHUB_TOKENS": "other"}


def test_read_variables__a_file_that_leads_out_is_refused(tmp_path: Path) -> None:
    (tmp_path / "outside").write_text("A=1")
    (tmp_path / "repo").mkdir()
    (tmp_path / "repo" / ".env").symlink_to(tmp_path / "outside")
    with pytest.raises(
        UnusableVariables, match=r"\.env:1:1: this file leads out of the repository"
    ):
        read_variables({}, tmp_path / "repo", tmp_path / "repo")


@pytest.mark.parametrize(
    ("data", "problem"),
    [
        (b"B=1\nA=\xff", r"2:3: this is not UTF-8"),
        (b"A=" + b"x" * 1024 * 1024, r"1:1: this file is over 1 MB"),
    ],
)
def test_read_variables__a_file_that_cannot_be_used_is_named(
    tmp_path: Path, data: bytes, problem: str
) -> None:
    (tmp_path / "a").mkdir()
    (tmp_path / "a" / ".env").write_bytes(data)
    with pytest.raises(UnusableVariables, match=rf"^a/\.env:{problem}$"):
        read_variables({}, tmp_path, tmp_path / "a")


def test_read_variables__a_named_pipe_is_named(tmp_path: Path) -> None:
    os.mkfifo(tmp_path / ".env")
    problem = r"^\.env:1:1: this file cannot be read \(it is not a regular file\)$"
    with pytest.raises(UnusableVariables, match=problem):
        read_variables({}, tmp_path, tmp_path)


@pytest.mark.parametrize(
    ("line", "value"),
    [
        ("  export A = spaced out  # a remark", "spaced out"),
        ("A='single # \\n $X'", "single # \\n $X"),
        ('A="over\ntwo lines"', "over\ntwo lines"),
        ("A=$(touch x) ${B}", "$(touch x) ${B}"),
        ("A=first\nA=second", "second"),
    ],
)
def test_parse_dotenv__forms(line: str, value: str) -> None:
    assert parse_dotenv(line)["A"] == value


def test_parse_dotenv__other_lines_are_left_aside() -> None:
    assert parse_dotenv("# A=1\nexport B\nnot an assignment\n1X=2\nC=3\n") == {"1X": "2", "C": "3"}


@given(st.text())
def test_parse_dotenv__never_fails(text: str) -> None:
    assert all(isinstance(value, str) for value in parse_dotenv(text).values())
