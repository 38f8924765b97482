"""Judges whose interpreter would load modules from the folder that the agent writes."""

import json
import os
import subprocess
import sys
from pathlib import Path

import pytest

from agentevals_action.evaluators.code_judge.interpreters import without_current_folder

MODULE = "import json, sys\nprint(json.dumps([__name__, sys.argv[1:]]))\n"


@pytest.fixture
def folders(tmp_path: Path) -> tuple[Path, Path]:
    """A folder that an agent writes, and its copy from before."""
    folder, copy = tmp_path / "tree", tmp_path / "copy"
    for each in (folder, copy):
        (each / "judges").mkdir(parents=True)
        (each / "judges/check.py").write_text(MODULE)
    (folder / "json.py").write_text("def dumps(value): return 'hijacked'\n")
    (folder / "runpy.py").write_text("raise SystemExit('hijacked')\n")
    (folder / "judges/check.py").write_text("print('hijacked')\n")
    return folder, copy


@pytest.mark.parametrize(
    ("words", "printed"),
    [
        (["-m", "judges.check", "-x", "1"], ["__main__", ["-x", "1"]]),
        (["-u", "-W", "ignore", "-m", "judges.check"], ["__main__", []]),
        (["-c", MODULE, "a"], ["__main__", ["a"]]),
        (["-c", "from __future__ import annotations\n" + MODULE], ["__main__", []]),
        (["-I", "-c", MODULE], ["__main__", []]),
    ],
)
def test_python__imports_from_the_copy(
    folders: tuple[Path, Path], words: list[str], printed: list[object]
) -> None:
    folder, copy = folders
    copies = {folder: copy}
    made = without_current_folder(
        [sys.executable, *words], folder, lambda path: copies.get(path, path)
    )
    done = subprocess.run(made, cwd=folder, capture_output=True, text=True, check=True)
    assert json.loads(done.stdout) == printed


@pytest.mark.parametrize(
    "words", [["python3", "check.py", "-m", "x"], ["python3"], ["sh", "-c", "true"], ["bun", "x"]]
)
def test_other_commands__stay_as_they_are(folders: tuple[Path, Path], words: list[str]) -> None:
    folder, copy = folders
    assert without_current_folder(words, folder, lambda _: copy) == words


@pytest.mark.parametrize("words", [["run", "check.ts"], ["check.ts"]])
def test_bun__has_the_configuration_of_the_copy_or_none(
    folders: tuple[Path, Path], words: list[str]
) -> None:
    folder, copy = folders
    copies = {folder / "bunfig.toml": copy / "bunfig.toml"}
    made = without_current_folder(["bun", *words], folder, lambda path: copies.get(path, path))
    options = [f"--config={copy / 'bunfig.toml'}", f"--env-file={os.devnull}"]
    assert made == ["bun", *options, *words]
