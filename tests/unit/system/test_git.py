"""Git on real repositories: commits, changed files of every kind, what is sent to whom."""

import asyncio
import base64
import os
import shutil
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import pytest

from agentevals_action.errors import ExitCode, GitError
from agentevals_action.system.git import ChangedFile, GitRepository
from tests.support.git_http import served_as_github
from tests.support.loopback import LoopbackServer, QuietHandler
from tests.support.repositories import Repository, pull_request
from tests.support.waiting import Waiting

LONG = "".join(f"line {number}\n" for number in range(50))


@pytest.fixture
def made(tmp_path: Path) -> Repository:
    return Repository.create(
        tmp_path / "repository", {"EVAL.yaml": "name: a\n", "src/agent.py": LONG}
    )


def opened(made: Repository, **options: Any) -> Any:
    return Waiting(GitRepository(made.path, **options))


def test_root__from_a_folder_below(made: Repository) -> None:
    assert asyncio.run(GitRepository.open(made.path / "src")).root == made.path.resolve()


def test_root__without_a_repository(tmp_path: Path) -> None:
    with pytest.raises(GitError, match="is not a git repository") as caught:
        asyncio.run(GitRepository.open(tmp_path, environ={"GITHUB_ACTIONS": "true"}))
    assert caught.value.exit_code == ExitCode.INVALID
    assert "actions/checkout" in caught.value.hint
    with pytest.raises(GitError, match="is not a git repository") as caught:
        asyncio.run(GitRepository.open(tmp_path))
    assert "git init" in caught.value.hint


def test_root__without_git(made: Repository, tmp_path: Path) -> None:
    with pytest.raises(GitError, match="cannot be started") as caught:
        asyncio.run(GitRepository.open(made.path, environ={"PATH": str(tmp_path)}))
    assert "there is no command 'git'" in str(caught.value)


def test_head__of_a_repository_without_a_commit(tmp_path: Path) -> None:
    with pytest.raises(GitError, match="no commit yet"):
        opened(Repository.create(tmp_path / "empty")).head()


def test_environment__git_variables_of_the_caller_do_not_lead_elsewhere(
    made: Repository, tmp_path: Path
) -> None:
    other = Repository.create(tmp_path / "other", {"x": "1"})
    environ = {
        "PATH": os.environ["PATH"],
        "GIT_DIR": str(other.path / ".git"),
        "GIT_WORK_TREE": str(other.path),
        "GIT_INDEX_FILE": "/x",
    }
    assert opened(made, environ=environ).head() == made.head()


def test_resolve__a_branch_and_what_is_none(made: Repository) -> None:
    repository = opened(made)
    assert repository.resolve("main") == made.head()
    assert [repository.resolve(text) for text in ("nothing", "", "--all", "HEAD:EVAL.yaml")] == [
        None
    ] * 4


def test_commit_time__in_utc(made: Repository) -> None:
    assert opened(made).commit_time("HEAD") == "2026-01-02T02:04:05Z"


def test_fetch__one_commit_into_a_shallow_clone(tmp_path: Path) -> None:
    request = pull_request(tmp_path / "origin", {"a": "1"}, {"a": "2"}, {"b": "1"})
    made = request.checkout(tmp_path / "workspace", request.merge)
    workspace = opened(made)
    workspace.fetch(request.main)
    assert workspace.has(request.main)
    assert not workspace.has(request.base)
    assert (
        not (made.path / ".git" / "FETCH_HEAD").exists()
        or request.main not in (made.path / ".git" / "FETCH_HEAD").read_text()
    )


def test_changed_files__of_every_kind(made: Repository) -> None:
    first = made.head()
    head = made.commit(
        "second",
        {
            "EVAL.yaml": "name: b\n",
            "new.txt": "1",
            "src/agent.py": None,
            "lib/agent.py": LONG + "one more\n",
        },
    )
    assert set(opened(made).changed_files(first, head)) == {
        ChangedFile("EVAL.yaml", "modified"),
        ChangedFile("new.txt", "added"),
        ChangedFile("lib/agent.py", "renamed", "src/agent.py"),
    }
    assert set(opened(made).changed_files(head, first)) >= {ChangedFile("new.txt", "removed")}


NAMES = (
    os.fsdecode(b"caf\xe9.md"),
    "prüfung/ä b.yaml",
    "tab\there",
    "line\nbreak",
    'quote"d',
    "-option",
    "日本.md",
    " blank ",
)


def test_changed_files__any_name(made: Repository) -> None:
    first = made.head()
    head = made.commit("names", dict.fromkeys(NAMES, "x"))
    assert {file.path for file in opened(made).changed_files(first, head)} == set(NAMES)
    assert set(NAMES) <= set(opened(made).listing().files)


def test_changed_files__the_users_configuration_changes_nothing(made: Repository) -> None:
    first = made.head()
    head = made.commit("second", {"src/agent.py": None, "lib/agent.py": LONG, "ä": "1"})
    expected = opened(made).changed_files(first, head)
    for key, value in (
        ("diff.renames", "false"),
        ("diff.relative", "true"),
        ("diff.noprefix", "true"),
        ("diff.external", "false"),
    ):
        made.git("config", key, value)
    assert Waiting(GitRepository(made.path / "lib")).changed_files(first, head) == expected


def test_changed_files__to_the_working_tree_with_what_is_not_committed(made: Repository) -> None:
    first = made.head()
    made.write(
        {
            ".gitignore": "*.log\n",
            "EVAL.yaml": "name: b\n",
            "new.yaml": "1",
            "x.log": "1",
            "src/agent.py": None,
        }
    )
    assert set(opened(made).changed_files(first)) == {
        ChangedFile(".gitignore", "added"),
        ChangedFile("EVAL.yaml", "modified"),
        ChangedFile("new.yaml", "added"),
        ChangedFile("src/agent.py", "removed"),
    }


def test_changed_files__a_file_that_moved_and_is_not_tracked_yet(made: Repository) -> None:
    text = "".join(f"line {number}\n" for number in range(30))
    first = made.commit("a long file", {"evals/EVAL.yaml": text})
    before = made.snapshot()
    moved = text.replace("line 7\n", "")
    made.write({"evals/EVAL.yaml": None, "agents/:(glob)x/EVAL.yaml": moved, "other": "x"})
    Repository.create(made.path / "inner", {"x": "y"})
    assert set(opened(made).changed_files(first)) == {
        ChangedFile("agents/:(glob)x/EVAL.yaml", "renamed", "evals/EVAL.yaml"),
        ChangedFile("other", "added"),
        ChangedFile("inner/", "added"),
    }
    # The index of the repository is as it was.
    made.write({"evals/EVAL.yaml": text, "agents/:(glob)x/EVAL.yaml": None, "other": None})
    shutil.rmtree(made.path / "inner")
    assert made.snapshot() == before


def test_show__a_file_at_a_commit(made: Repository) -> None:
    first = made.head()
    made.commit("second", {"EVAL.yaml": "name: b\n"})
    assert opened(made).show(first, "EVAL.yaml") == b"name: a\n"
    assert opened(made).show(first, "nothing") is None


def test_hooks__of_the_workspace_are_not_run(made: Repository, tmp_path: Path) -> None:
    for hook in ("post-checkout", "reference-transaction", "pre-auto-gc"):
        path = made.path / ".git" / "hooks" / hook
        path.parent.mkdir(exist_ok=True)
        path.write_text(f"#!/bin/sh\ntouch {tmp_path}/hooked\n")
        path.chmod(0o755)
    made.git("config", "core.fsmonitor", f"touch {tmp_path}/hooked")
    opened(made).add_worktree(tmp_path / "tree", made.head())
    opened(made).listing()
    opened(made).changed_files(made.head())
    assert not (tmp_path / "hooked").exists()


@contextmanager
def serving() -> Iterator[tuple[str, list[list[str] | None]]]:
    seen: list[list[str] | None] = []

    class Handler(QuietHandler):
        """Wants nobody, and remembers the headers of who came."""

        def do_GET(self) -> None:
            seen.append(self.headers.get_all("Authorization"))
            self.send_response(404)
            self.end_headers()

    with LoopbackServer(Handler) as server:
        yield server.url, seen


@pytest.mark.parametrize(
    ("token", "own_server", "header"),
    [
        ("ghs_new", True, "basic " + base64.b64encode(b"x-access-token:ghs_new").decode()),
        ("ghs_new", False, "basic b2xkOm9sZA=="),
        (None, True, "basic b2xkOm9sZA=="),
    ],
)
def test_token__is_the_one_header_for_its_server(
    made: Repository, token: str | None, own_server: bool, header: str
) -> None:
    with serving() as (url, seen):
        made.git("remote", "add", "origin", f"{url}/acme/agent")
        made.git("config", f"http.{url}/.extraheader", "AUTHORIZATION: basic b2xkOm9sZA==")
        server_url = f"{url}/" if own_server else "https://github.com"
        with pytest.raises(GitError, match="`git fetch` failed") as caught:
            opened(made, token=token, server_url=server_url).fetch("9" * 40)
    assert seen == [[header]]
    assert "ghs_new" not in str(caught.value) + caught.value.hint
    assert "ghs_new" not in (made.path / ".git" / "config").read_text()


#: Starts the real git and notes its command, and whether its environment holds the token.
RECORDING_GIT = """\
#!/bin/sh
command=$1
case "$1" in --*) command=$2 ;; esac
case "$(env)" in *{basic}*) with=token ;; *) with=none ;; esac
echo "$command $with" >> {log}
exec {git} "$@"
"""
#: Serves the origin of a clone, and notes the same.
RECORDING_ORIGIN = """\
#!/bin/sh
case "$(env)" in *{basic}*) with=token ;; *) with=none ;; esac
echo "connection $with" >> {log}
exec {git} upload-pack "$@"
"""


def recorded(tmp_path: Path, clone: Repository) -> tuple[Any, Path]:
    """The repository of a clone, and the file that lists its calls of git and its connections."""
    git, log, token = shutil.which("git"), tmp_path / "calls", "ghs_new"
    basic = base64.b64encode(f"x-access-token:{token}".encode()).decode()
    (tmp_path / "bin").mkdir()
    for path, text in (
        (tmp_path / "bin/git", RECORDING_GIT),
        (tmp_path / "origin-program", RECORDING_ORIGIN),
    ):
        path.write_text(text.format(basic=basic, log=log, git=git))
        path.chmod(0o755)
    clone.git("config", "remote.origin.uploadpack", str(tmp_path / "origin-program"))
    environ = {"PATH": f"{tmp_path / 'bin'}:{os.environ['PATH']}"}
    return opened(clone, token=token, environ=environ), log


def test_token__only_calls_that_may_fetch_get_it(tmp_path: Path) -> None:
    request = pull_request(tmp_path / "origin", {"a": "1"}, {"a": "2"}, {"b": "1"})
    clone = request.checkout(tmp_path / "workspace", request.merge)
    repository, log = recorded(tmp_path, clone)
    repository.fetch(request.main)
    repository.changed_files(request.main, request.merge)
    repository.show(request.main, "a")
    repository.listing()
    repository.uncommitted()
    repository.add_worktree(tmp_path / "tree", request.main)
    assert set(log.read_text().splitlines()) == {
        *(f"{name} token" for name in ("fetch", "connection", "diff", "cat-file", "worktree")),
        *(f"{name} none" for name in ("rev-parse", "ls-files", "status")),
    }


def test_origin__whose_authority_is_in_ssl_cert_file(made: Repository, tmp_path: Path) -> None:
    clone = Repository.create(tmp_path / "clone")
    with served_as_github(made, tmp_path / "server", "acme/agent", tmp_path) as url:
        clone.git("remote", "add", "origin", f"{url}/acme/agent.git")
        with pytest.raises(GitError, match="certificate"):
            opened(clone).fetch(made.head())
        known = {**os.environ, "SSL_CERT_FILE": str(tmp_path / "certificate.pem")}
        repository = opened(clone, environ=known)
        repository.fetch(made.head())
        assert repository.has(made.head())


def test_partial_clone__what_is_missing_is_fetched_before_it_is_read(tmp_path: Path) -> None:
    origin = Repository.create(
        tmp_path / "origin", {"old.py": LONG, "config.yaml": "a: 1\n", "docs/more.md": "x"}
    )
    base = origin.head()
    head = origin.commit("renamed", {"old.py": None, "src/new.py": f"{LONG}more\n"})
    origin.git("config", "uploadpack.allowFilter", "true")
    options = ("--quiet", "--no-checkout", "--filter=blob:none")
    origin.git("clone", *options, f"file://{origin.path}", str(tmp_path / "clone"))
    repository, log = recorded(tmp_path, Repository(tmp_path / "clone"))

    assert repository.changed_files(base, head) == (ChangedFile("src/new.py", "renamed", "old.py"),)
    assert repository.show(base, "config.yaml") == b"a: 1\n"
    assert repository.show(base, "nothing.yaml") is None
    calls = set(log.read_text().splitlines())
    assert "connection token" in calls
    assert "connection none" not in calls
    # Nothing is fetched twice, and what is there needs no origin.
    origin.path.rename(tmp_path / "gone")
    repository.changed_files(base, head)
    assert repository.show(base, "config.yaml") == b"a: 1\n"


def test_uncommitted__runs_no_program_of_a_repository_in_a_submodule(tmp_path: Path) -> None:
    """Attack: the folder of a submodule that was not checked out is the agent's."""
    made = Repository.create(tmp_path / "repository", {"agent.py": "1"})
    made.git("update-index", "--add", "--cacheinfo", f"160000,{made.head()},vendor")
    made.git("commit", "--quiet", "-m", "a submodule")
    ran = tmp_path / "ran"
    inner = Repository.create(made.path / "vendor", {"x": "1", ".gitattributes": "* filter=own\n"})
    inner.git("config", "filter.own.clean", f"touch {ran}; cat")
    (made.path / "vendor/x").write_text("2")
    assert opened(made).uncommitted() == ("vendor",)
    assert not ran.exists()
    assert made.git("status", "--porcelain")
    assert ran.exists()  # the attack is real


def test_blobs__are_those_of_git_and_of_the_files_that_differ(made: Repository) -> None:
    made.write({"EVAL.yaml": "name: b\n", "new": "1"})
    made.git("add", "new")
    repository = opened(made)
    expected = {
        name: made.git("hash-object", "--", name) for name in ("EVAL.yaml", "new", "src/agent.py")
    }
    assert repository.blobs(repository.uncommitted()) == expected
    made.write({"EVAL.yaml": None, "untracked": "1"})
    blobs = repository.blobs(repository.uncommitted())
    assert blobs == {**expected, "EVAL.yaml": "FileNotFoundError"}


@pytest.mark.parametrize(
    "url", ["git@github.com:acme/agent.git", "ssh://git@github.com/acme/agent.git"]
)
def test_origin__over_ssh_is_that_of_the_server_for_a_token(made: Repository, url: str) -> None:
    made.git("remote", "add", "origin", url)
    assert opened(made).origin() == url
    assert opened(made, token="t").origin() == "https://github.com/acme/agent.git"


def test_author__is_the_user_s_and_not_the_action_s(made: Repository, tmp_path: Path) -> None:
    home = tmp_path / "home"
    home.mkdir()
    environ = {"PATH": os.environ["PATH"], "HOME": str(home)}
    assert opened(made, environ=environ).author() == ""
    (home / ".gitconfig").write_text("[user]\n\temail = ada@example.org\n")
    assert opened(made, environ=environ).author() == "ada@example.org"
    (home / ".gitconfig").write_text("[user]\n\temail = ada@example.org\n\tname = Ada\n")
    made.git("config", "user.name", "Ada B. Lovelace")
    assert opened(made, environ=environ).author() == "Ada B. Lovelace"
