"""Workspaces as suites declare them: what a test ends up with, which files they name, and every
fault at its place."""

from pathlib import Path

import pytest

from agentevals_action.model.files import NamedFile
from agentevals_action.model.suite import Test
from agentevals_action.model.workspace import Hook, HookName, Repo, Workspace
from tests.support import suites

TESTS = "tests:\n  - {id: a, input: q, criteria: c}\n"
ONE = "name: suite\nworkspace:\n"


def hook(made: Workspace, name: HookName) -> Hook:
    """The hook of this name."""
    found = made.hook(name)
    assert found
    return found


def made_repo(path: str, source: str | Path, commit: str | None = None) -> Repo:
    return Repo.model_construct(path=path, source=source, commit=commit)


@pytest.fixture
def root(tmp_path: Path) -> Path:
    files: dict[str, str | bytes] = {
        ".agentv/targets.yaml": suites.TARGETS,
        "evals/start/app.py": "print(1)\n",
        "evals/start/sub/data.txt": "1\n",
        "evals/setup.sh": "true\n",
        "evals/cleanup.sh": "true\n",
    }
    return suites.write(tmp_path / "repository", files)


def declared(root: Path, text: str) -> tuple[Test, ...]:
    suites.write(root, {"evals/EVAL.yaml": text})
    return tuple(suites.load_valid(root, "evals/EVAL.yaml").tests)


def workspace(root: Path, fields: str, rest: str = TESTS) -> Workspace:
    """Of the first test of a suite with these fields under `workspace`."""
    found = declared(root, ONE + "".join(f"  {line}\n" for line in fields.splitlines()) + rest)[
        0
    ].workspace
    assert found is not None
    return found


def refused(root: Path, fields: str, rest: str = TESTS) -> list[str]:
    suites.write(
        root,
        {"evals/EVAL.yaml": ONE + "".join(f"  {line}\n" for line in fields.splitlines()) + rest},
    )
    return suites.errors(root, "evals/EVAL.yaml")


def test_workspace__none(root: Path) -> None:
    assert declared(root, f"name: suite\n{TESTS}")[0].workspace is None


def test_workspace__all_fields(root: Path) -> None:
    fields = """\
template: start
scope: attempt
repos:
  - {path: ./app, repo: acme/app, base_commit: v1.2}
hooks:
  before_all: {command: [sh, setup.sh], timeout_ms: 1500}
  before_each: {script: npm ci && npm test, cwd: /evals/start, reset: strict}
  after_each: {reset: fast}
  after_all: {command: [sh, ./cleanup.sh]}
"""
    made = workspace(root, fields)
    evals = root.resolve() / "evals"
    assert (made.template, made.per_test, made.own, made.reset, made.reset_before) == (
        evals / "start",
        True,
        False,
        "fast",
        "strict",
    )
    assert made.repos == (made_repo("app", "https://github.com/acme/app.git", "v1.2"),)
    assert made.hook("after_each") is None
    assert (
        hook(made, "before_all").command,
        hook(made, "before_all").cwd,
        made.timeout_seconds("before_all"),
    ) == (
        ("sh", "setup.sh"),
        evals,
        1.5,
    )
    assert (
        hook(made, "before_each").command,
        hook(made, "before_each").cwd,
        made.timeout_seconds("before_each"),
    ) == (
        "npm ci && npm test",
        evals / "start",
        60,
    )
    assert made.timeout_seconds("after_all") == 30
    assert set(made.files) == {
        NamedFile("evals/start/app.py", "workspace template"),
        NamedFile("evals/start/sub/data.txt", "workspace template"),
        NamedFile("evals/setup.sh", "workspace hook"),
        NamedFile("evals/cleanup.sh", "workspace hook"),
    }


def test_workspace__files_touch_the_suite(root: Path) -> None:
    suites.write(root, {"evals/EVAL.yaml": f"{ONE}  template: start\n{TESTS}"})
    suite = suites.load_valid(root, "evals/EVAL.yaml")
    assert NamedFile("evals/start/sub/data.txt", "workspace template") in suite.files


def test_workspace__empty_is_an_empty_folder(root: Path) -> None:
    made = declared(root, f"name: suite\nworkspace: {{}}\n{TESTS}")[0].workspace
    assert made is not None
    assert (made.template, made.repos, made.per_test) == (None, (), False)


def test_workspace__fields_of_a_test_replace_those_of_the_suite(root: Path) -> None:
    text = """\
name: suite
workspace:
  template: start
  hooks:
    before_all: {command: [bun, run, default-setup.ts], timeout_ms: 9000}
    after_each: {command: [sh, cleanup.sh], reset: fast}
tests:
  - id: own
    input: q
    criteria: c
    workspace:
      hooks:
        before_all: {command: [bun, run, custom-setup.ts]}
        after_each: {reset: strict}
  - {id: other, input: q, criteria: c}
  - {id: third, input: q, criteria: c}
"""
    own, other, third = (test.workspace for test in declared(root, text))
    assert own
    assert other
    assert own.template == other.template
    assert (own.own, other.own) == (True, False)
    assert (hook(own, "before_all").command, own.timeout_seconds("before_all")) == (
        ("bun", "run", "custom-setup.ts"),
        9,
    )
    assert hook(other, "before_all").command == ("bun", "run", "default-setup.ts")
    assert (hook(own, "after_each").command, own.reset, other.reset) == (
        ("sh", "cleanup.sh"),
        "strict",
        "fast",
    )
    assert other is third


def test_workspace__of_tests_in_another_file(root: Path) -> None:
    suites.write(
        root,
        {
            "evals/more/cases.jsonl": '{"id": "a", "input": "q", "criteria": "c", "workspace": {"template": "here"}}\n'
        },
    )
    suites.write(root, {"evals/more/here/x": ""})
    (test,) = declared(root, "name: suite\ntests: more/cases.jsonl\n")
    assert test.workspace
    assert test.workspace.template == root.resolve() / "evals/more/here"
    assert NamedFile("evals/more/here/x", "workspace template") in test.files


def test_workspace__in_a_file_of_its_own(root: Path) -> None:
    suites.write(
        root,
        {
            "shared/workspace.yaml": "template: ./base\nhooks: {before_all: {command: [sh, up.sh]}}\n"
        },
    )
    suites.write(root, {"shared/base/x": "", "shared/up.sh": ""})
    made = declared(root, f"name: suite\nworkspace: ../shared/workspace.yaml\n{TESTS}")[0].workspace
    assert made
    assert made.template == root.resolve() / "shared/base"
    assert hook(made, "before_all").cwd == root.resolve() / "shared"
    assert {file.path for file in made.files} == {
        "shared/workspace.yaml",
        "shared/base/x",
        "shared/up.sh",
    }


@pytest.mark.parametrize(("enabled", "kept"), [("false", False), ("true", True)])
def test_hooks__enabled(root: Path, enabled: str, kept: bool) -> None:
    hooks = f"hooks: {{enabled: {enabled}, before_all: {{command: [a]}}, after_each: {{command: [a], reset: fast}}}}"
    made = workspace(root, hooks)
    assert (bool(made.hook("before_all")), bool(made.hook("after_each")), made.reset) == (
        kept,
        kept,
        "fast" if kept else "none",
    )


def test_hooks__a_test_turns_them_off(root: Path) -> None:
    tests = "tests:\n  - {id: a, input: q, criteria: c, workspace: {hooks: {enabled: false}}}\n"
    assert workspace(root, "hooks: {before_all: {command: [a]}}", tests).hook("before_all") is None


@pytest.mark.parametrize(
    ("words", "fresh"),
    [
        ("isolation: shared", False),
        ("isolation: per_test", True),
        ("isolation: per_case", True),
        ("scope: suite", False),
        ("scope: attempt\nisolation: per_test", True),
    ],
)
def test_isolation__its_words(root: Path, words: str, fresh: bool) -> None:
    assert workspace(root, words).per_test is fresh


@pytest.mark.parametrize(
    ("written", "source"),
    [
        ("acme/support-app", "https://github.com/acme/support-app.git"),
        ("acme/app.git", "https://github.com/acme/app.git"),
        ("https://git.example.org/a/b.git", "https://git.example.org/a/b.git"),
        ("git@github.com:acme/app.git", "git@github.com:acme/app.git"),
        ("ssh://git@example.org/app", "ssh://git@example.org/app"),
    ],
)
def test_repo__its_sources(root: Path, written: str, source: str) -> None:
    assert workspace(root, f"repos: [{{path: app, repo: '{written}'}}]").repos == (
        made_repo("app", source),
    )


@pytest.mark.parametrize(
    ("written", "path"),
    [
        ("./start", "evals/start"),
        ("/evals", "evals"),
        ("file:///evals/start", "evals/start"),
        ("/", ""),
    ],
)
def test_repo__folder_of_this_repository(root: Path, written: str, path: str) -> None:
    assert workspace(root, f"repos: [{{path: app, repo: '{written}'}}]").repos == (
        made_repo("app", root.resolve() / path),
    )


def test_repo__a_committed_bare_one_names_its_files(root: Path) -> None:
    suites.write(
        root, {"evals/app.git/HEAD": "ref: refs/heads/main\n", "evals/app.git/objects/ab/c": ""}
    )
    made = workspace(root, "repos: [{path: app, repo: ./app.git}]")
    assert {file.path for file in made.files} == {
        "evals/app.git/HEAD",
        "evals/app.git/objects/ab/c",
    }


@pytest.mark.parametrize("target", ["../setup.sh", "/etc/passwd"])
def test_template__a_link_that_leads_out(root: Path, target: str) -> None:
    (root / "evals/start/link").symlink_to(target)
    (diagnostic,) = refused(root, "template: start")
    assert diagnostic.startswith(
        "evals/EVAL.yaml:3:13: `template`: the link 'link' in it leads out of it; "
    )


def test_template__a_link_that_stays_inside(root: Path) -> None:
    (root / "evals/start/link").symlink_to("sub/data.txt")
    assert (
        NamedFile("evals/start/link", "workspace template")
        in workspace(root, "template: start").files
    )


def test_warning__reset_with_fresh_folders(root: Path) -> None:
    suites.write(
        root,
        {
            "evals/EVAL.yaml": f"{ONE}  isolation: per_test\n  hooks: {{after_each: {{reset: fast}}}}\n{TESTS}"
        },
    )
    (warning,) = suites.load_valid(root, "evals/EVAL.yaml").warnings
    assert str(warning).startswith(
        "evals/EVAL.yaml:4:23: `reset` has no effect where each test has a fresh folder; "
    )
