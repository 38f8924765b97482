"""Archives of report folders, also such as no upload makes."""

import io
import json
import zipfile
from pathlib import Path

import pytest

from agentevals_action.baselines.artifact_archive import ReportArchive, read_archive
from tests.support import base_tree, results
from tests.support.github_history import zipped

COMMIT = "c" * 40
SUMMARY = json.dumps({"headSha": COMMIT})
DEEP = '{"x":' + "[" * 20_000 + "]" * 20_000 + "}"
ROW = base_tree.jsonl([results.result(path="evals/EVAL.yaml")])


@pytest.mark.parametrize("folder", ["", "agentevals-report/", "/absolute/", "../../up/"])
def test_read_archive__wherever_the_report_lies_in_it(folder: str) -> None:
    other = base_tree.jsonl([results.result(path="other/EVAL.yaml")])
    read = read_archive(
        zipped(
            {
                f"{folder}results.jsonl": ROW + "\n" + other,
                f"{folder}summary.json": SUMMARY,
                "x/base.jsonl": "no",
            }
        ),
        {"evals/EVAL.yaml"},
    )
    assert read == ReportArchive(
        COMMIT, {"evals/EVAL.yaml": (results.result(path="evals/EVAL.yaml"),)}
    )


@pytest.mark.parametrize(
    ("files", "words"),
    [
        ({}, "it contains no `results.jsonl`"),
        (
            {"a/results.jsonl": ROW, "b/results.jsonl": ROW},
            "it contains more than one `results.jsonl`",
        ),
        ({"results.jsonl": ROW}, "it contains no `summary.json` with the commit"),
        (
            {"a/results.jsonl": ROW, "summary.json": SUMMARY},
            "it contains no `summary.json` with the commit",
        ),
        (
            {"results.jsonl": ROW, "summary.json": "{}"},
            "its `summary.json` does not name the commit",
        ),
        (
            {"results.jsonl": ROW, "summary.json": "[]"},
            "its `summary.json` does not name the commit",
        ),
        (
            {"results.jsonl": ROW + "{}\n", "summary.json": SUMMARY},
            "its results are damaged",
        ),
        (
            {"results.jsonl": ROW[:-20], "summary.json": SUMMARY},
            "its results are damaged",
        ),
        (
            {"results.jsonl": ROW + DEEP, "summary.json": SUMMARY},
            "its results are damaged",
        ),
        (
            {"results.jsonl": ROW, "summary.json": DEEP},
            "its `summary.json` does not name the commit",
        ),
        (
            {"results.jsonl": ROW, "summary.json": "no"},
            "its `summary.json` does not name the commit",
        ),
    ],
)
def test_read_archive__says_what_is_wrong(files: dict[str, str], words: str) -> None:
    assert read_archive(zipped(files), {"evals/EVAL.yaml"}) == words


def test_read_archive__no_archive_or_half_of_one() -> None:
    whole = zipped({"results.jsonl": ROW * 50, "summary.json": SUMMARY})
    for content in (b"", b"<html>", whole[:-30], whole[40:]):
        assert str(read_archive(content, {"evals/EVAL.yaml"})).startswith(
            "it is not a valid archive"
        ), content[:10]
    broken = whole[:60] + bytes(byte ^ 255 for byte in whole[60:90]) + whole[90:]
    assert isinstance(read_archive(broken, {"evals/EVAL.yaml"}), str)


def test_read_archive__more_files_than_a_report_has() -> None:
    assert (
        read_archive(zipped(dict.fromkeys(map(str, range(10_001)), "")), ())
        == "it contains more than 10000 files"
    )


@pytest.mark.slow
def test_read_archive__what_unpacks_to_too_much_is_not_unpacked(tmp_path: Path) -> None:
    content = io.BytesIO()
    with zipfile.ZipFile(content, "w", zipfile.ZIP_DEFLATED) as archive:
        archive.writestr("summary.json", SUMMARY)
        with archive.open("results.jsonl", "w") as file:
            for _ in range(257):
                file.write(b"\n" * 1024 * 1024)
    assert read_archive(content.getvalue(), ()) == "its results are larger than 256 MiB"
