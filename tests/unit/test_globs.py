"""Globs: what they match, and that those by a name alone, which are told without the library, mean
the same as with it."""

import pytest
from hypothesis import example, given
from hypothesis import strategies as st
from wcmatch import glob

from agentevals_action.model.path_patterns import matches, selected

_FLAGS = glob.GLOBSTAR | glob.BRACE | glob.DOTGLOB | glob.FORCEUNIX
_PIECES = (
    "a",
    "B",
    "é",
    " ",
    "\n",
    "\udcff",
    "-",
    "_",
    ".",
    "..",
    "1",
    "*",
    "!",
    "[",
    "{",
    "~",
    "\\",
    "EVAL.yaml",
    ".eval.yaml",
    "/",
)
_PATHS = st.lists(st.sampled_from(_PIECES), max_size=8).map("".join)
_ENDS = st.lists(st.sampled_from((*"aB.-_1*{", "..", "EVAL.yaml", ".eval.yaml")), max_size=3).map(
    "".join
)
_PATTERNS = st.tuples(
    st.sampled_from(("**/", "./**/", "")), st.sampled_from(("", "*", "**")), _ENDS
).map("".join)


@pytest.mark.parametrize(
    ("path", "pattern", "is_matched"),
    [
        ("EVAL.yaml", "**/EVAL.yaml", True),
        ("a/b/EVAL.yaml", "**/EVAL.yaml", True),
        ("a/b/EVAL.yaml/c", "**/EVAL.yaml", True),
        ("a/MEVAL.yaml", "**/EVAL.yaml", False),
        ("a/eval.yaml", "**/EVAL.yaml", False),
        ("a/.hidden/x.eval.yaml", "**/*.eval.yaml", True),
        (".eval.yaml", "**/*.eval.yaml", True),
        ("a/eval.yaml", "**/*.eval.yaml", False),
        ("a/b.yaml", "a", True),
        ("a/b.yaml", "*.yaml", False),
        ("a/b.yaml", "a/*.{yml,yaml}", True),
        ("a/b/c.py", "a/**", True),
    ],
)
def test_matches__what_the_documentation_says(path: str, pattern: str, is_matched: bool) -> None:
    assert matches(path, pattern) is is_matched


@given(_PATHS, _PATTERNS)
@example("a/..\n", "**/*.eval.yaml")
@example("..\n/a.eval.yaml", "**/*.eval.yaml")
@example("a//EVAL.yaml", "**/EVAL.yaml")
@example("EVAL.yaml/", "**/EVAL.yaml")
@example("../EVAL.yaml", "**/EVAL.yaml")
@example("", "**/*")
def test_matches__as_the_library_does(path: str, pattern: str) -> None:
    bare = pattern.removeprefix("./")
    assert matches(path, pattern) is bool(
        glob.globmatch(path, [bare, bare.rstrip("/") + "/**"], flags=_FLAGS)
    )


def test_selected__the_last_that_matches_decides() -> None:
    patterns = ("**/*.yaml", "!drafts", "drafts/final.yaml")
    assert [
        selected(path, patterns)
        for path in ("a.yaml", "drafts/a.yaml", "drafts/final.yaml", "a.txt")
    ] == [True, False, True, False]
