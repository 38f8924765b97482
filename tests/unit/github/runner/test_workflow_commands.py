"""Commands, outputs and summary as GitHub's runner reads them."""

import os
from collections.abc import Callable
from pathlib import Path

import pytest

from agentevals_action.github.runner import workflow_commands
from agentevals_action.github.runner.workflow_commands import CommandFile
from agentevals_action.reports.publication import Annotation
from tests.support.runner import read_outputs


def test_command__encodes_its_parts() -> None:
    line = workflow_commands.command(
        "error", "50% done:\r\nsee, there", file="evals/a,b:c.yaml", line=3, title="x\ny%"
    )
    assert (
        line
        == "::error file=evals/a%2Cb%3Ac.yaml,line=3,title=x%0Ay%25::50%25 done:%0D%0Asee, there"
    )


def test_command__without_properties() -> None:
    assert workflow_commands.command("group", "a\n::error::b") == "::group::a%0A::error::b"
    assert workflow_commands.command("endgroup") == "::endgroup::"


def test_annotations__are_ten_of_each_level_and_the_rest_is_counted() -> None:
    found = [Annotation("a.yaml", number, "failure", "t", "m") for number in range(1, 13)]
    found += [Annotation("a.yaml", number, "warning", "t", "m") for number in range(1, 12)]
    lines = list(workflow_commands.annotations(found))
    assert [line.split()[0] for line in lines] == ["::error"] * 10 + ["::warning"] * 10 + ["Not"]
    assert lines[0] == "::error file=a.yaml,line=1,title=t::m"
    assert lines[-1] == "Not shown as annotations: 2 errors and 1 warning more."


def test_outputs__cannot_be_forged_by_a_value(tmp_path: Path) -> None:
    path = tmp_path / "output"
    path.write_text("earlier=1\n")
    hostile = "x\nend_0\npass-rate=1\noutcome<<EOF\npassed\nEOF"
    workflow_commands.write_outputs(
        CommandFile("GITHUB_OUTPUT", path), {"outcome": "failed", "reason": hostile, "empty": ""}
    )
    assert dict(read_outputs(path.read_text())) == {
        "earlier": "1",
        "outcome": "failed",
        "reason": hostile,
        "empty": "",
    }


@pytest.mark.parametrize("name", ["", "a=b", "a\nb", "a<<b", "1a"])
def test_outputs__of_no_name_are_refused(tmp_path: Path, name: str) -> None:
    path = tmp_path / "output"
    with pytest.raises(ValueError, match="not a valid name"):
        workflow_commands.write_outputs(CommandFile("GITHUB_OUTPUT", path), {name: "x"})
    assert not path.exists()


def test_summary__is_added_to_what_stands(tmp_path: Path) -> None:
    path = tmp_path / "summary"
    path.write_text("# Earlier\n")
    workflow_commands.append_summary(CommandFile("GITHUB_STEP_SUMMARY", path), "# Ours 😀")
    assert path.read_text(encoding="utf-8") == "# Earlier\n# Ours 😀\n"


@pytest.mark.parametrize("before", [0, 500_000, 1024 * 1024 - 200])
def test_summary__stays_under_a_mebibyte_with_a_note(tmp_path: Path, before: int) -> None:
    path = tmp_path / "summary"
    path.write_text("x" * before)
    workflow_commands.append_summary(
        CommandFile("GITHUB_STEP_SUMMARY", path), "zeile ü😀\n" * 200_000
    )
    written = path.read_bytes()
    assert len(written) <= 1024 * 1024
    added = written[before:].decode()
    assert added.endswith(
        "\n\n**The summary is longer than GitHub's limit of 1 MiB: the rest is cut off.**\n"
    )
    assert set(added.split("\n\n**")[0].splitlines()) == {"zeile ü😀"}


def test_summary__of_a_full_file_is_left_as_it_is(tmp_path: Path) -> None:
    path = tmp_path / "summary"
    path.write_text("x" * 1024 * 1024)
    workflow_commands.append_summary(CommandFile("GITHUB_STEP_SUMMARY", path), "more")
    assert path.stat().st_size == 1024 * 1024


def test_summary__with_a_broken_character_is_written(tmp_path: Path) -> None:
    path = tmp_path / "summary"
    workflow_commands.append_summary(CommandFile("GITHUB_STEP_SUMMARY", path), "a\ud800b")
    assert path.read_text() == "a?b\n"


def _append(path: Path) -> None:
    path.write_text(path.read_text() + "outcome=passed\n")


def _make_fifo(path: Path) -> None:
    path.unlink()
    os.mkfifo(path)


def _link(path: Path) -> None:
    path.unlink()
    path.symlink_to(path.with_name("victim"))


@pytest.mark.parametrize("attack", [_append, Path.unlink, _make_fifo, _link])
def test_command_file__what_another_program_wrote_does_not_count(
    tmp_path: Path, attack: Callable[[Path], None]
) -> None:
    path, victim = tmp_path / "output", tmp_path / "victim"
    path.write_text("earlier=1\n")
    victim.write_text("untouched")
    file = CommandFile("GITHUB_OUTPUT", path)
    attack(path)
    workflow_commands.write_outputs(file, {"outcome": "failed"})
    assert list(read_outputs(path.read_text())) == [("earlier", "1"), ("outcome", "failed")]
    assert victim.read_text() == "untouched"


@pytest.mark.parametrize("path", [Path("/dev/null"), Path("/dev/stdout"), Path("/dev")])
def test_command_file__that_was_never_a_file_is_left_alone(path: Path) -> None:
    before = path.lstat()
    workflow_commands.append_summary(CommandFile("GITHUB_STEP_SUMMARY", path), "text")
    assert (path.lstat().st_ino, path.lstat().st_mode) == (before.st_ino, before.st_mode)


def test_command_file__that_cannot_be_written_is_a_warning(
    tmp_path: Path, caplog: pytest.LogCaptureFixture
) -> None:
    file = CommandFile("GITHUB_STEP_SUMMARY", tmp_path / "missing" / "summary")
    workflow_commands.append_summary(file, "text")
    assert "GITHUB_STEP_SUMMARY could not be written" in caplog.text
