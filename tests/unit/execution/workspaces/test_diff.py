"""The diff of what an agent did in its folder: complete, bounded, and never at the mercy of what
the agent left there."""

import asyncio
import contextlib
import os
import subprocess
from collections.abc import Callable
from pathlib import Path

import pytest

from agentevals_action.execution.workspaces.diff import MAX_CHARACTERS, MAX_FILE_BYTES
from tests.support import repositories, workspaces

FILES: dict[str, str | bytes] = {
    "start/app.py": "one\ntwo\nthree\n",
    "start/old.txt": "old\n",
    "start/data/table.csv": "a,b\n",
    "start/.gitignore": "*.log\ncache/\n/dist\n!keep.log\n",
    "start/dist/shipped.js": "shipped\n",
}
SHOWN = """\
diff --git a/app.py b/app.py
index 4cb29ea..f04eb26 100644
--- a/app.py
+++ b/app.py
@@ -1,3 +1,3 @@
 one
-two
+2
 three
diff --git a/made/new file.txt b/made/new file.txt
new file mode 100644
index 0000000..3e75765
--- /dev/null
+++ b/made/new file.txt\t
@@ -0,0 +1 @@
+new
diff --git a/old.txt b/old.txt
deleted file mode 100644
index 3367afd..0000000
--- a/old.txt
+++ /dev/null
@@ -1 +0,0 @@
-old
"""


def diff(tmp_path: Path, work: Callable[[Path], None], workspace: str = "  template: start") -> str:
    root = workspaces.suite(tmp_path / "repository", workspace, FILES)
    return asyncio.run(workspaces.changed(root, tmp_path / "scratch", work))


def in_shell(script: str, **variables: str) -> Callable[[Path], None]:
    """Runs a script in the folder."""

    def work(folder: Path) -> None:
        environment = {**workspaces.ENVIRONMENT, **variables}
        subprocess.run(["sh", "-ec", script], cwd=folder, env=environment, check=True)

    return work


@pytest.mark.parametrize(
    ("script", "expected"),
    [
        ("true", ""),
        ("echo new > app.log; mkdir cache; echo x > cache/x", ""),
        ("sed -i s/two/2/ app.py; rm old.txt; mkdir made; echo new > 'made/new file.txt'", SHOWN),
    ],
)
def test_diff__is_the_unified_diff(tmp_path: Path, script: str, expected: str) -> None:
    assert diff(tmp_path, in_shell(script)) == expected


@pytest.mark.parametrize(
    ("script", "expected"),
    [
        ("chmod 755 app.py", ["old mode 100644\nnew mode 100755\n"]),
        ("printf '\\0' > image", ["Binary files /dev/null and b/image differ\n"]),
        ("ln -s app.py link", ["new file mode 120000\n"]),
        (
            "rm old.txt app.py; mkdir app.py old.txt; echo in > old.txt/file",
            ["-old\n", "+in\n", "-one\n"],
        ),
        ("rm -r data; echo data > data", ["-a,b\n", "+data\n"]),
        ("rm -r $PWD", ["-one\n", "-old\n", "-a,b\n", "-shipped\n", "-*.log\n"]),
        # An agent's own rules hide nothing.
        ("echo '*' > .gitignore; echo hidden > hidden.py", ["+hidden\n"]),
        ("mkdir sub; echo '*' > sub/.gitignore; echo hidden > sub/x.py", ["+hidden\n"]),
        ("echo '* -diff binary filter=x' > .gitattributes; echo 2 > app.py", ["-one\n", "+2\n"]),
        # No link is followed, and what was there before is never ignored.
        ("ln -s $SECRETS/key link; ln -s $SECRETS folder", ["+++ b/link\n", "+++ b/folder\n"]),
        ("rm -r data; ln -s $SECRETS data", ["-a,b\n", "+++ b/data\n"]),
        ("rm -r $PWD; ln -s $SECRETS $PWD", ["-one\n"]),
        ("echo x | tee dist/made.js dist/shipped.js keep.log", ["-shipped\n", "+++ b/keep.log\n"]),
    ],
)
def test_diff__shows_what_changed(tmp_path: Path, script: str, expected: list[str]) -> None:
    (tmp_path / "secrets").mkdir()
    (tmp_path / "secrets" / "key").write_text("hunter2\n")

    text = diff(tmp_path, in_shell(script, SECRETS=str(tmp_path / "secrets")))

    assert [part for part in expected if part not in text] == []
    assert "hunter2" not in text
    assert "dist/made.js" not in text
    assert (tmp_path / "secrets" / "key").exists()


def test_diff__same_size_and_time(tmp_path: Path) -> None:
    """Attack: an agent hides what it changed, within the second in which its files were made."""

    def work(folder: Path) -> None:
        facts = (folder / "old.txt").stat()
        # The clock of files ticks every few milliseconds; no agent answers within one tick.
        while (folder / "old.txt").stat().st_ctime_ns == facts.st_ctime_ns:
            (folder / "old.txt").write_text("OLD\n")
            os.utime(folder / "old.txt", ns=(facts.st_atime_ns, facts.st_mtime_ns))

    root = workspaces.suite(tmp_path / "repository", "  template: start", FILES)
    for path in (tmp_path / "repository").rglob("*.txt"):
        os.utime(path, (10**9, 10**9))
    found = asyncio.run(workspaces.changed(root, tmp_path / "scratch", work))
    assert "-old\n+OLD\n" in found


def test_diff__what_it_cannot_show_is_counted(tmp_path: Path) -> None:
    def work(folder: Path) -> None:
        os.mkfifo(folder / "pipe")
        with (folder / "large").open("wb") as large:
            large.truncate(MAX_FILE_BYTES + 1)
        (folder / ".GIT").mkdir()
        (folder / ".GIT" / "x").write_text("x")
        (folder / ".gitmodules").symlink_to("x")
        (folder / "app.py").chmod(0)
        (folder / "data").chmod(0)
        Path(os.fsdecode(os.fsencode(folder) + b"/\xff\n")).write_text("x")
        with contextlib.chdir(folder):  # a path that is too long for the operating system
            for _ in range(25):
                Path("deeper" * 40).mkdir()
                os.chdir("deeper" * 40)
            Path("end").write_text("x\n")

    assert diff(tmp_path, work).splitlines()[-1] == (
        "# 8 changes cannot be shown: special or unreadable files, files over 20 MB, or names that "
        "git does not take"
    )


def test_diff__names_that_mean_something_to_git(tmp_path: Path) -> None:
    names = ("-x", ":(exclude)y", "git~1", 'quo"te', "new\nline", "tab\t", " x ", "b\\s", "ü", "*")

    def work(folder: Path) -> None:
        for name in names:
            (folder / name).mkdir()
            (folder / name / "f").write_text("x\n")

    assert diff(tmp_path, work).count("new file mode") == len(names)


def test_diff__is_cut_and_lists_the_files(tmp_path: Path) -> None:
    def work(folder: Path) -> None:
        (folder / "app.py").write_text("x\n" * MAX_CHARACTERS)
        (folder / "zz.py").write_text("last\n")

    text = diff(tmp_path, work)
    assert len(text) < MAX_CHARACTERS + 1000
    assert text.endswith(
        "# The diff is cut here, at 1,000,000 characters. 2 changed files:\n# M\tapp.py\n# A\tzz.py\n"
    )


@pytest.mark.parametrize(
    "script",
    [
        "echo 'o' > app/main.o",
        "git -C app -c user.name=a -c user.email=a@b commit --quiet --all --message mine",
        "rm -r app/.git",
        "rm -r app/.git; echo 'gitdir: /etc' > app/.git",
        "git -C app config core.fsmonitor 'touch $MARK'; git -C app config core.worktree /etc",
        "git init --quiet data; rm -r data/.git/objects",
    ],
)
def test_diff__repositories_inside_with_their_path(tmp_path: Path, script: str) -> None:
    root = workspaces.suite(
        tmp_path / "repository",
        "  template: start\n  repos: [{path: app, repo: ./origin}]",
        FILES,
    )
    repositories.Repository.create(root / "origin", {"main.c": "int a;\n", ".gitignore": "*.o\n"})
    script = f"echo 'int b;' > app/main.c; echo b > data/table.csv; {script}"
    work = in_shell(script, MARK=str(tmp_path / "ran"))

    text = asyncio.run(workspaces.changed(root, tmp_path / "scratch", work))

    assert "--- a/app/main.c\n+++ b/app/main.c\n@@ -1 +1 @@\n-int a;\n+int b;\n" in text
    assert "+++ b/data/table.csv\n@@ -1 +1 @@\n-a,b\n+b\n" in text
    assert text.count("+++") == 2
    assert not (tmp_path / "ran").exists()
