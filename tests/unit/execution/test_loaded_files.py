"""Files that decide: a change after loading is found, and judges run from copies."""

import asyncio
import os
import subprocess
import sys
from collections.abc import Collection
from pathlib import Path

import pytest

from agentevals_action.errors import AttemptError
from agentevals_action.execution.loaded_files import LoadedFiles
from agentevals_action.model.suite import Suite
from agentevals_action.system.files.regular_files import digest_of
from tests.support import suites

FILES = {
    "evals/EVAL.yaml": """\
name: suite
tests:
  - id: judged
    input: q
    assert: [{type: code_judge, script: [python3, judges/check.py]}]
  - id: asked
    input: q
    assert: [{type: llm_judge, prompt: ./prompt.md}]
  - id: compared
    input: q
    expected_output: [{role: assistant, content: [{type: file, value: answer.txt}]}]
    criteria: c
""",
    "evals/judges/check.py": "import helper, lib.shared\nprint(helper.NAME, lib.shared.NAME)\n",
    "evals/judges/helper.py": "NAME = 'helper'\n",
    "evals/judges/deep/more.py": "",
    "evals/judges/lib": "",
    "evals/prompt.md": "Score {{ answer }}",
    "evals/answer.txt": "42",
    ".agentv/targets.yaml": suites.TARGETS,
}


@pytest.fixture
def root(tmp_path: Path) -> Path:
    made = suites.write(tmp_path / "repository", FILES)
    (made / "evals/judges/lib").unlink()
    suites.write(made, {"evals/lib/shared.py": "NAME = 'shared'\n"})
    (made / "evals/judges/lib").symlink_to("../lib")
    return made.resolve()


def tracked(root: Path) -> frozenset[str]:
    return frozenset(path.relative_to(root).as_posix() for path in root.rglob("*"))


def loaded(root: Path, tracks: Collection[str] | None = None) -> tuple[LoadedFiles, Suite]:
    suite = suites.load_valid(root, "evals/EVAL.yaml")
    files = LoadedFiles(root.parent / "copies")
    files.add(suite, tracked(root) if tracks is None else tracks)
    files.link_rest(root)
    return files, suite


def problems(files: LoadedFiles, suite: Suite) -> dict[str, str]:
    """The error of each test, empty if it may be scored."""
    found = {}
    for test in suite.tests:
        try:
            asyncio.run(files.check(suite, test, files.states(suite, test)))
            found[test.id] = ""
        except AttemptError as error:
            found[test.id] = str(error)
    return found


ALL = {"judged", "asked", "compared"}


@pytest.mark.parametrize(
    ("path", "tests"),
    [
        ("evals/EVAL.yaml", ALL),
        (".agentv/targets.yaml", ALL),
        ("evals/judges/check.py", {"judged"}),
        ("evals/judges/helper.py", {"judged"}),
        ("evals/prompt.md", {"asked"}),
        ("evals/answer.txt", {"compared"}),
    ],
)
@pytest.mark.parametrize("way", ["same size and time", "deleted", "replaced by a pipe"])
def test_check__a_changed_file_is_an_error_of_the_tests_that_depend_on_it(
    root: Path, path: str, tests: set[str], way: str
) -> None:
    files, suite = loaded(root)
    assert set(problems(files, suite).values()) == {""}
    file = root / path
    facts, content = file.stat(), file.read_bytes()
    if way == "same size and time":
        with file.open("r+b") as opened:
            opened.write(content[:-1] + b"#")
        os.utime(file, ns=(facts.st_atime_ns, facts.st_mtime_ns))
    else:
        file.unlink()
    if way == "replaced by a pipe":
        os.mkfifo(file)

    expected = f"{path} was changed by a program after it was loaded"
    found = problems(files, suite)
    assert found == {name: expected if name in tests else "" for name in ALL}
    assert files.changed() == (path,)


def test_check__a_file_that_is_only_touched_is_the_same(root: Path) -> None:
    files, suite = loaded(root)
    for path in ("evals/EVAL.yaml", "evals/prompt.md"):
        os.utime(root / path, ns=(1, 1))
    assert set(problems(files, suite).values()) == {""}
    assert files.changed() == ()


def test_check__a_changed_copy_is_an_error_too(root: Path) -> None:
    files, suite = loaded(root)
    copy = files.copy_of(root / "evals/judges/check.py")
    copy.chmod(0o644)
    copy.write_text("print(1)")
    assert problems(files, suite)["judged"].startswith("the copy of evals/judges/check.py was")


def test_check__a_script_that_a_build_writes_is_not_compared(root: Path) -> None:
    files, suite = loaded(root, tracked(root) - {"evals/judges/check.py"})
    script = root / "evals/judges/check.py"
    script.write_text("print(2)")
    assert problems(files, suite)["judged"] == ""
    assert files.copy_of(script) == script


def test_copies__find_their_neighbours_and_the_rest_of_the_tree(root: Path) -> None:
    files, _ = loaded(root)
    script = root / "evals/judges/check.py"
    script.write_text("print('rewritten')")
    (root / "evals/judges/helper.py").write_text("NAME = 'rewritten'")
    # Attack: a module that is imported before the real one appears while the tests run.
    (root / "evals/judges/shared.py").write_text("NAME = 'added'")
    copy = files.copy_of(script)
    done = subprocess.run(
        [sys.executable, str(copy)], cwd=root / "evals", capture_output=True, text=True, check=True
    )
    assert done.stdout == "helper shared\n"
    assert not (copy.parent / "shared.py").exists()
    assert (copy.parents[1] / "prompt.md").resolve() == root / "evals/prompt.md"
    assert not (copy.parent / "deep/more.py").is_symlink()


def test_copies__keep_the_right_to_execute_and_cannot_be_written(root: Path) -> None:
    (root / "evals/judges/check.py").chmod(0o755)
    files, _ = loaded(root)
    modes = [
        files.copy_of(root / "evals/judges" / name).stat().st_mode & 0o777
        for name in ("check.py", "helper.py")
    ]
    assert modes == [0o555, 0o444]


def test_copies__of_one_tree_are_not_those_of_another(root: Path, tmp_path: Path) -> None:
    files, _ = loaded(root)
    other = suites.write(tmp_path / "base", FILES | {"evals/judges/lib": "x"}).resolve()
    files.add(suites.load_valid(other, "evals/EVAL.yaml"), tracked(other))
    (other / "evals/judges/check.py").write_text("print('rewritten')")
    copies = {files.copy_of(tree / "evals/judges/check.py") for tree in (root, other)}
    assert len(copies) == 2
    assert all("import helper" in copy.read_text() for copy in copies)


def test_copies__a_linked_script_runs_next_to_what_it_leads_to(root: Path) -> None:
    suites.write(
        root, {"evals/shared/real.py": "import near\n", "evals/shared/near.py": "print(3)"}
    )
    script = root / "evals/judges/check.py"
    script.unlink()
    script.symlink_to("../shared/real.py")
    files, _ = loaded(root)
    (root / "evals/shared/real.py").write_text("print('rewritten')")
    done = subprocess.run(
        [sys.executable, str(files.copy_of(script))], capture_output=True, text=True, check=True
    )
    assert done.stdout == "3\n"


def test_imports__from_outside_the_folder_of_judges_are_copied_and_compared(root: Path) -> None:
    helper = "src/helpers.py"
    suites.write(
        root,
        {
            helper: "NAME = 'real'\n",
            "evals/judges/check.py": "import pathlib, sys\n"
            "sys.path.insert(0, str(pathlib.Path(__file__).parents[2] / 'src'))\n"
            "import helpers\nprint(helpers.NAME)\n",
        },
    )
    files, suite = loaded(root)
    before = {test.id: files.states(suite, test) for test in suite.tests}
    content = (root / helper).read_text()
    (root / helper).write_text("NAME = 'rewritten'\n")
    copy = files.copy_of(root / "evals/judges/check.py")
    done = subprocess.run([sys.executable, str(copy)], capture_output=True, text=True, check=True)
    assert done.stdout == "real\n"
    changed = f"{helper} was changed by a program after it was loaded"
    assert problems(files, suite) == {**dict.fromkeys(ALL, ""), "judged": changed}

    (root / helper).write_text(content)
    (judged,) = (test for test in suite.tests if test.id == "judged")
    with pytest.raises(AttemptError, match="changed and restored by a program while the test ran"):
        asyncio.run(files.check(suite, judged, before["judged"]))


def test_copies__have_the_configuration_and_the_sources_as_they_were(root: Path) -> None:
    names = ("package.json", "evals/tsconfig.json", "evals/judges/built.js")
    suites.write(root, {**dict.fromkeys(names, "{}"), "evals/data.json": "{}"})
    untracked = {"evals/tsconfig.json", "evals/judges/built.js", "evals/data.json"}
    files, _ = loaded(root, tracked(root) - untracked)
    suites.write(root, {**dict.fromkeys(names, "changed"), "evals/data.json": "new"})
    top = files.copy_of(root / "evals/judges/check.py").parents[2]
    assert [(top / name).read_text() for name in names] == ["{}"] * 3
    assert (top / "evals/data.json").read_text() == "new"  # a judge may read what an agent wrote


@pytest.mark.skipif(not sys.platform.startswith("linux"), reason="only Linux tells of moves")
def test_check__a_folder_that_is_moved_and_moved_back_is_an_error(root: Path) -> None:
    """Attack: while the answer is scored, another folder with another expected answer is there."""
    files, suite = loaded(root)
    test = next(test for test in suite.tests if test.id == "compared")
    before = files.states(suite, test)
    folder, aside = root / "evals", root / "aside"
    folder.rename(aside)
    suites.write(root, {"evals/answer.txt": "my own"})
    (folder / "answer.txt").unlink()
    folder.rmdir()
    aside.rename(folder)
    with pytest.raises(AttemptError, match="changed and restored by a program"):
        asyncio.run(files.check(suite, test, before))
    asyncio.run(files.check(suite, test, files.states(suite, test)))
    files.close()


def test_check__a_file_without_an_end_takes_no_time(root: Path) -> None:
    files, suite = loaded(root)
    os.truncate(root / "evals/answer.txt", 1024**4)
    expected = "evals/answer.txt was changed by a program after it was loaded"
    assert problems(files, suite)["compared"] == expected
    with pytest.raises(OSError, match="File too large"):
        digest_of(root / "evals/answer.txt")


def test_copies__load_no_compiled_code_of_the_tree(root: Path) -> None:
    """Attack: an agent replaces `__pycache__/score.cpython-313.pyc`, which the judge loads in place
    of `score.py`."""
    suites.write(root, {"evals/judges/__pycache__/score.cpython-313.pyc": "compiled"})
    files, _ = loaded(root, tracked(root) - {"evals/judges/__pycache__/score.cpython-313.pyc"})
    judges = files.copy_of(root / "evals/judges")
    assert judges != root / "evals/judges"
    assert not (judges / "__pycache__").exists()


def test_copies__what_appears_after_the_first_preparation_is_not_linked(root: Path) -> None:
    files, _ = loaded(root)
    judges = files.copy_of(root / "evals/judges")
    (judges / "__pycache__").mkdir()
    suites.write(root, {"evals/judges/json.py": "raise SystemExit", "evals/judges/yaml/x.py": ""})
    files.link_rest(root)
    assert not (judges / "json.py").exists()
    assert not (judges / "yaml").exists()
    assert list((judges / "__pycache__").iterdir()) == []
