"""Workspaces as suites declare them: their folders, limits and links. Their effective form is in
`tests/data/valid`, their errors are in `tests/data/invalid`."""

from pathlib import Path

import pytest

from agentevals_action.model.diagnostic import NamedFile
from agentevals_action.model.workspace import Hook, HookName, Workspace
from tests.support import suites

TESTS = "tests:\n  - {id: a, input: q, criteria: c}\n"


@pytest.fixture
def root(tmp_path: Path) -> Path:
    files: dict[str, str | bytes] = {
        ".agentv/targets.yaml": suites.TARGETS,
        "evals/start/sub/data.txt": "1\n",
        "evals/setup.sh": "true\n",
    }
    return suites.write(tmp_path / "repository", files)


def write(root: Path, fields: str, tests: str = TESTS) -> Path:
    """A suite with these fields under `workspace`."""
    lines = "".join(f"  {line}\n" for line in fields.splitlines())
    return suites.write(root, {"evals/EVAL.yaml": f"name: suite\nworkspace:\n{lines}{tests}"})


def workspace(root: Path, fields: str, tests: str = TESTS) -> Workspace:
    """The one of the first test."""
    found = suites.load_valid(write(root, fields, tests), "evals/EVAL.yaml").tests[0].workspace
    assert found
    return found


def hook(found: Workspace, name: HookName) -> Hook:
    made = found.hook(name)
    assert made
    return made


def test_workspace__empty_is_an_empty_folder_for_all_tests(root: Path) -> None:
    text = f"name: suite\nworkspace: {{}}\n{TESTS}  - {{id: b, input: q, criteria: c}}\n"
    suites.write(root, {"evals/EVAL.yaml": text})

    first, second = suites.load_valid(root, "evals/EVAL.yaml").tests

    assert first.workspace is second.workspace
    assert first.workspace
    assert (first.workspace.template, first.workspace.per_test) == (None, False)


def test_hooks__name_the_files_of_the_script_of_a_shell(root: Path) -> None:
    suites.write(root, {"evals/up.py": "", "evals/other.py": ""})
    found = workspace(root, "hooks: {before_all: {command: [sh, -c, 'exec python3 up.py']}}")
    assert [file.path for file in found.files] == ["evals/up.py"]


def test_hooks__run_in_the_folder_of_the_file_that_declares_the_command(root: Path) -> None:
    shared = "hooks: {before_all: {command: [sh, up.sh]}, before_each: {command: [x], cwd: /evals}}"
    suites.write(root, {"shared/workspace.yaml": shared})
    tests = (
        "tests:\n  - id: a\n    input: q\n    criteria: c\n"
        "    workspace: ../shared/workspace.yaml\n"
    )
    fields = "hooks: {before_all: {command: [a], timeout_ms: 1500}, after_all: {command: [b]}}"

    found, at = workspace(root, fields, tests), root.resolve()

    folders = [hook(found, name).cwd for name in ("before_all", "before_each", "after_all")]
    assert folders == [at / "shared", at / "evals", at / "evals"]
    limits = [found.timeout_seconds(name) for name in ("before_all", "before_each", "after_all")]
    assert limits == [1.5, 60, 30]


@pytest.mark.parametrize("is_enabled", [False, True])
@pytest.mark.parametrize("at", ["suite", "test"])
def test_hooks__may_be_turned_off(root: Path, is_enabled: bool, at: str) -> None:
    enabled = f"enabled: {str(is_enabled).lower()}"
    of_suite, of_test = (f", {enabled}", "") if at == "suite" else ("", enabled)
    tests = f"tests: [{{id: a, input: q, criteria: c, workspace: {{hooks: {{{of_test}}}}}}}]\n"
    hooks = f"before_all: {{command: [a]}}, after_each: {{command: [a], reset: fast}}{of_suite}"

    found = workspace(root, f"hooks: {{{hooks}}}", tests)

    present = [found.hook(name) is not None for name in ("before_all", "after_each")]
    assert present == [is_enabled] * 2
    assert found.reset == ("fast" if is_enabled else "none")


@pytest.mark.parametrize(
    ("fields", "per_test"),
    [
        ("isolation: shared", False),
        ("isolation: per_test", True),
        ("isolation: per_case", True),
        ("scope: suite", False),
        ("scope: attempt\nisolation: per_test", True),
    ],
)
def test_isolation__in_every_spelling(root: Path, fields: str, per_test: bool) -> None:
    assert workspace(root, fields).per_test is per_test


@pytest.mark.parametrize("target", ["../setup.sh", "/etc/passwd"])
def test_template__a_link_that_leads_out_is_an_error(root: Path, target: str) -> None:
    (root / "evals/start/link").symlink_to(target)

    (error,) = suites.errors(write(root, "template: start"), "evals/EVAL.yaml")

    assert error.startswith(
        "evals/EVAL.yaml:3:13: `template`: the link 'link' in it leads out of it; "
    )


def test_template__a_link_may_lead_to_its_own_files(root: Path) -> None:
    (root / "evals/start/link").symlink_to("sub/data.txt")

    link = NamedFile("evals/start/link", "workspace template")

    assert link in workspace(root, "template: start").files
