"""Nothing in the tree that belongs to one machine, to one registry, or to later."""

import contextlib
import re
import subprocess
from collections.abc import Mapping
from functools import cache
from pathlib import Path

import pytest

ROOT = Path(__file__).resolve().parents[2]

#: Written in two halves, so that this file is not a find of its own.
UNWANTED = {
    "a path of one machine": r"(?<![\w.$}])/" + r"(?:work|root|Users|tmp/\w+)/[\w.]",
    "a registry's address": r"(?i)\b(?:"
    + r"pypi\.org|pythonhosted\.org|registry\.npmjs|deb\.debian\.org)",
    "something left for later": r"\b(?:TO" + r"DO|FIX" + r"ME)\b",
    "a mock": r"unittest\.mo" + r"ck|Magic" + r"Mock|\bmock\.pa" + r"tch",
}


def tracked() -> list[Path]:
    words = ["git", "-C", str(ROOT), "-c", f"safe.directory={ROOT}", "ls-files", "-z"]
    listing = subprocess.run(words, capture_output=True, text=True, check=True)
    return [path for name in listing.stdout.split("\0") if name and (path := ROOT / name).is_file()]


@cache
def texts() -> Mapping[Path, str]:
    """The files that are no pictures."""
    read = {}
    for path in tracked():
        with contextlib.suppress(UnicodeDecodeError):
            read[path] = path.read_text(encoding="utf-8")
    return read


@pytest.mark.parametrize("what", UNWANTED)
def test_tree__has_no(what: str) -> None:
    pattern = re.compile(UNWANTED[what])
    found = [
        f"{path.relative_to(ROOT)}:{text.count(chr(10), 0, match.start()) + 1}: {match[0]}"
        for path, text in texts().items()
        for match in pattern.finditer(text)
    ]
    assert found == []
