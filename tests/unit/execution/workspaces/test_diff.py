"""The diff of what an agent did in its folder: complete, bounded, and never at the mercy of what
the agent left there."""

import asyncio
import contextlib
import os
import shutil
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


def diff(tmp_path: Path, work: Callable[[Path], None], workspace: str = "  template: start") -> str:
    root = workspaces.suite(tmp_path / "repository", workspace, FILES)
    return asyncio.run(workspaces.changed(root, tmp_path / "scratch", work))


def test_diff__nothing(tmp_path: Path) -> None:
    assert diff(tmp_path, lambda folder: None) == ""


def test_diff__new_changed_and_deleted_files(tmp_path: Path) -> None:
    def work(folder: Path) -> None:
        (folder / "app.py").write_text("one\n2\nthree\n")
        (folder / "old.txt").unlink()
        (folder / "made").mkdir()
        (folder / "made" / "new file.txt").write_text("new\n")

    assert (
        diff(tmp_path, work)
        == """\
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
    )


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


def test_diff__modes_links_and_binary_files(tmp_path: Path) -> None:
    def work(folder: Path) -> None:
        (folder / "app.py").chmod(0o755)
        (folder / "picture.png").write_bytes(b"\x89PNG\0\0")
        (folder / "link").symlink_to("app.py")

    text = diff(tmp_path, work)
    assert "old mode 100644\nnew mode 100755\n" in text
    assert "Binary files /dev/null and b/picture.png differ\n" in text
    assert "new file mode 120000\n" in text


def test_diff__a_link_out_is_never_followed(tmp_path: Path) -> None:
    (tmp_path / "secret").write_text("hunter2\n")
    (tmp_path / "secrets").mkdir()
    (tmp_path / "secrets" / "key").write_text("hunter2\n")

    def work(folder: Path) -> None:
        (folder / "file").symlink_to(tmp_path / "secret")
        (folder / "folder").symlink_to(tmp_path / "secrets")
        (folder / "old.txt").unlink()
        (folder / "old.txt").symlink_to(tmp_path / "secret")
        shutil.rmtree(folder / "data")
        (folder / "data").symlink_to(tmp_path / "secrets")

    text = diff(tmp_path, work)
    assert "hunter2" not in text
    assert f"+{tmp_path}/secrets\n" in text


def test_diff__ignored_is_left_out_but_not_what_was_there(tmp_path: Path) -> None:
    def work(folder: Path) -> None:
        for name in ("run.log", "cache/x", "dist/made.js", "sub/cache/y", "keep.log"):
            (folder / name).parent.mkdir(parents=True, exist_ok=True)
            (folder / name).write_text("x\n")
        (folder / "dist" / "shipped.js").write_text("changed\n")

    names = [line for line in diff(tmp_path, work).splitlines() if line.startswith("+++")]
    assert names == ["+++ b/dist/shipped.js", "+++ b/keep.log"]


def test_diff__an_agents_own_rules_hide_nothing(tmp_path: Path) -> None:
    def work(folder: Path) -> None:
        (folder / ".gitignore").write_text("*\n")
        (folder / ".gitattributes").write_text("* -diff binary filter=evil\n")
        (folder / "hidden.py").write_text("hidden\n")
        (folder / "sub").mkdir()
        (folder / "sub" / ".gitignore").write_text("*\n")
        (folder / "sub" / "too.py").write_text("too\n")

    text = diff(tmp_path, work)
    assert "+hidden\n" in text
    assert "+too\n" in text


def test_diff__files_become_folders_and_folders_files(tmp_path: Path) -> None:
    def work(folder: Path) -> None:
        (folder / "old.txt").unlink()
        (folder / "old.txt").mkdir()
        (folder / "old.txt" / "inside").write_text("inside\n")
        (folder / "app.py").unlink()
        (folder / "app.py").mkdir()
        shutil.rmtree(folder / "data")
        (folder / "data").write_text("data\n")

    text = diff(tmp_path, work)
    for expected in ("-old\n", "+inside\n", "-one\n", "-a,b\n", "+data\n"):
        assert expected in text


def test_diff__what_no_diff_can_show_is_counted(tmp_path: Path) -> None:
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
        with contextlib.chdir(folder):
            for _ in range(25):
                Path("deeper" * 40).mkdir()
                os.chdir("deeper" * 40)
            Path("end").write_text("x\n")

    assert diff(tmp_path, work).splitlines()[-1] == (
        "# 8 changes cannot be shown: special or unreadable files, files over 20 MB, or names that "
        "git does not take"
    )


def test_diff__names_that_mean_something_to_git(tmp_path: Path) -> None:
    names = (
        "-x",
        ":(exclude)y",
        "git~1",
        'quo"te',
        "new\nline",
        "tab\t",
        " space ",
        "back\\slash",
        "ü",
        "*",
    )

    def work(folder: Path) -> None:
        for name in names:
            (folder / name).mkdir()
            (folder / name / "f").write_text("x\n")

    assert diff(tmp_path, work).count("new file mode") == len(names)


def test_diff__the_folder_is_gone(tmp_path: Path) -> None:
    assert diff(tmp_path, shutil.rmtree).count("deleted file mode") == 5


def test_diff__the_folder_is_a_link_somewhere_else(tmp_path: Path) -> None:
    (tmp_path / "secrets").mkdir()
    (tmp_path / "secrets" / "key").write_text("hunter2\n")

    def work(folder: Path) -> None:
        shutil.rmtree(folder)
        folder.symlink_to(tmp_path / "secrets")

    assert "hunter2" not in diff(tmp_path, work)
    assert (tmp_path / "secrets" / "key").exists()


def test_diff__is_cut_and_lists_the_files(tmp_path: Path) -> None:
    def work(folder: Path) -> None:
        (folder / "app.py").write_text("x\n" * MAX_CHARACTERS)
        (folder / "zz.py").write_text("last\n")

    text = diff(tmp_path, work)
    assert len(text) < MAX_CHARACTERS + 1000
    assert text.endswith(
        "# The diff is cut here, at 1,000,000 characters. The changed files:\n# M\tapp.py\n# A\tzz.py\n"
    )


REPOSITORY = "  template: start\n  repos: [{path: app, repo: ./origin}]"


def with_repository(tmp_path: Path, work: Callable[[Path], None]) -> str:
    root = workspaces.suite(tmp_path / "repository", REPOSITORY, FILES)
    repositories.Repository.create(root / "origin", {"main.c": "int a;\n", ".gitignore": "*.o\n"})
    return asyncio.run(workspaces.changed(root, tmp_path / "scratch", work))


def test_diff__repositories_inside_with_their_path(tmp_path: Path) -> None:
    def work(folder: Path) -> None:
        (folder / "app" / "main.c").write_text("int b;\n")
        (folder / "app" / "main.o").write_text("o\n")
        (folder / "old.txt").write_text("new\n")

    text = with_repository(tmp_path, work)
    assert "--- a/app/main.c\n+++ b/app/main.c\n" in text
    assert "+++ b/old.txt\n" in text
    assert "main.o" not in text


@pytest.mark.parametrize(
    "how", ["committed", "without git", "broken git", "hooks", "a new repository"]
)
def test_diff__whatever_is_done_to_git(tmp_path: Path, how: str) -> None:
    def work(folder: Path) -> None:
        app = folder / "app"
        (app / "main.c").write_text("int b;\n")
        inside = repositories.Repository(app)
        if how == "committed":
            inside.commit("mine")
        elif how == "without git":
            shutil.rmtree(app / ".git")
        elif how == "broken git":
            shutil.rmtree(app / ".git")
            (app / ".git").write_text("gitdir: /etc\n")
        elif how == "hooks":
            inside.git("config", "core.fsmonitor", f"touch {tmp_path}/ran")
            inside.git("config", "core.worktree", "/etc")
        else:
            repositories.Repository.create(folder / "data", {"table.csv": "b\n"})

    text = with_repository(tmp_path, work)
    assert "-int a;\n+int b;\n" in text
    assert ("-a,b\n+b\n" in text) is (how == "a new repository")
    assert not (tmp_path / "ran").exists()
