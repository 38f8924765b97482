"""Which files are suites: names, configuration, the user's patterns, and what is not searched."""

from pathlib import Path

import pytest

from agentevals_action.suites.find import find_suites
from tests.support import suites

TESTS = "tests: [{id: a, input: q, criteria: c}]"


@pytest.fixture
def root(tmp_path: Path) -> Path:
    names = [
        "EVAL.yaml",
        "a/EVAL.yml",
        "a/b.eval.yaml",
        "a/c.eval.yml",
        ".agentv/evals/d.eval.yaml",
        "evals/extra.yaml",
        "evals/notes.md",
    ]
    hidden = [
        ".github/EVAL.yaml",
        "node_modules/x/EVAL.yaml",
        "a/node_modules/EVAL.yaml",
        ".agentv/targets.yaml",
        ".agentv/config.yaml",
    ]
    return suites.write(
        tmp_path / "repository", dict.fromkeys(names, TESTS) | dict.fromkeys(hidden, "")
    )


DEFAULT = (".agentv/evals/d.eval.yaml", "EVAL.yaml", "a/EVAL.yml", "a/b.eval.yaml", "a/c.eval.yml")


def walked(root: Path) -> list[str]:
    return [path.relative_to(root).as_posix() for path in root.rglob("*") if path.is_file()]


@pytest.mark.parametrize("from_git", [True, False])
def test_default__names_and_folders(root: Path, from_git: bool) -> None:
    assert find_suites(root, root, (), walked(root) if from_git else None).paths == DEFAULT


@pytest.mark.parametrize("from_git", [True, False])
@pytest.mark.parametrize(
    "name", ["a.EVAL.yaml", "eval.yaml", "Eval.YML", "b.Eval.yaml", "x/c.eval.YAML"]
)
def test_default__names_in_upper_and_lower_case(tmp_path: Path, name: str, from_git: bool) -> None:
    suites.write(tmp_path, {name: TESTS})

    assert find_suites(tmp_path, tmp_path, (), walked(tmp_path) if from_git else None).paths == (
        name,
    )


def test_files__what_git_does_not_know_is_no_suite(root: Path) -> None:
    assert find_suites(root, root, (), ["a/EVAL.yml", "gone/EVAL.yaml"]).paths == ("a/EVAL.yml",)


@pytest.mark.parametrize("from_git", [True, False])
def test_below__searches_one_folder(root: Path, from_git: bool) -> None:
    assert find_suites(root, root / "a", (), walked(root) if from_git else None).paths == (
        "a/EVAL.yml",
        "a/b.eval.yaml",
        "a/c.eval.yml",
    )


@pytest.mark.parametrize(
    ("patterns", "found"),
    [
        (("evals/*.yaml",), ("evals/extra.yaml",)),
        (("evals",), ("evals/extra.yaml",)),
        (("**/EVAL.yaml", "evals/**"), ("EVAL.yaml", "evals/extra.yaml")),
        (("!a/**",), (".agentv/evals/d.eval.yaml", "EVAL.yaml")),
        (("a/**", "!**/*.eval.yaml"), ("a/EVAL.yml", "a/c.eval.yml")),
        (("a/**", "!a/**", "a/b*"), ("a/b.eval.yaml",)),
        (("nothing/**",), ()),
    ],
)
def test_patterns__of_the_user_replace_the_default(
    root: Path, patterns: tuple[str, ...], found: tuple[str, ...]
) -> None:
    assert find_suites(root, root, patterns, walked(root)).paths == found


def test_patterns__are_seen_from_the_root_and_from_the_folder(root: Path) -> None:
    assert find_suites(root, root / "a", ("b.*",), None).paths == ("a/b.eval.yaml",)
    assert find_suites(root, root / "a", ("a/b.*",), None).paths == ("a/b.eval.yaml",)


@pytest.mark.parametrize(
    ("files", "is_suite"),
    [
        ({"dataset.yaml": TESTS}, True),
        ({"dataset.yaml": "evalcases: []"}, True),
        ({"dataset.yaml": "name: x", "dataset.jsonl": ""}, True),
        ({"dataset.yaml": "name: x"}, False),
        ({"dataset.yaml": "rows: [tests]"}, False),
        ({"dataset.yaml": "{'tests' : []}"}, True),
        ({"dataset.yaml": "name: x\ntests:\n  - id: [\n"}, True),
        ({"dataset.yaml": "# rows\n\n- tests: [1]\n  tests:\n  - a\n"}, False),
        ({"dataset.yaml": "---\n[{\ntests: 1}]"}, False),
        ({"dataset.yaml": "- tests:\n", "dataset.jsonl": ""}, True),
    ],
)
def test_dataset__only_with_tests_or_rows(
    tmp_path: Path, files: dict[str, str], is_suite: bool
) -> None:
    suites.write(tmp_path, files)

    assert find_suites(tmp_path, tmp_path, (), None).paths == (
        ("dataset.yaml",) if is_suite else ()
    )


def test_patterns__a_list_is_data_of_a_suite_unless_its_name_is_that_of_one(tmp_path: Path) -> None:
    rows = "- {id: a, input: q, criteria: c}\n"
    files = {"evals/rows.yaml": rows, "evals/own.yaml": TESTS, "evals/x.eval.yaml": rows}
    suites.write(tmp_path, files)

    found = find_suites(tmp_path, tmp_path, ["evals/*.yaml"], None)

    assert found.paths == ("evals/own.yaml", "evals/x.eval.yaml")
    (warning,) = found.warnings
    assert (warning.location.path, warning.problem) == (
        "evals/rows.yaml",
        "this is a list and no suite: it is not run",
    )


@pytest.mark.parametrize("from_git", [True, False])
def test_configuration__patterns_add(root: Path, from_git: bool) -> None:
    suites.write(
        root,
        {
            ".agentv/config.yaml": "eval_patterns: ['evals/*.yaml', '!a/c*']",
            "a/.agentv/config.yaml": "eval_patterns: [x/*.yaml]",
        },
    )
    suites.write(root, {"a/x/y.yaml": TESTS})

    found = find_suites(root, root, (), walked(root) if from_git else None).paths

    assert set(found) == {*DEFAULT, "evals/extra.yaml", "a/x/y.yaml"} - {"a/c.eval.yml"}


def test_configuration__above_the_folder_holds_for_it(root: Path) -> None:
    suites.write(root, {".agentv/config.yaml": "eval_patterns: ['evals/*.yaml']"})

    assert find_suites(root, root / "evals", (), None).paths == ("evals/extra.yaml",)


@pytest.mark.parametrize(
    ("text", "error"),
    [
        ("eval_patterns: 3", "1:16: `eval_patterns` is the number 3; write a list"),
        (
            "defaults: {target: x}",
            "1:1: `defaults` of AgentV is not supported; see https://github.com/org/agentevals-action/blob/main/docs/compatibility.md",
        ),
        ("- other: content", "1:1: this file is a list; write an object with `eval_patterns`"),
    ],
)
def test_configuration__that_is_broken_is_an_error(root: Path, text: str, error: str) -> None:
    suites.write(root, {".agentv/config.yaml": text})

    found = find_suites(root, root, (), None)

    assert list(map(str, found.errors)) == [f".agentv/config.yaml:{error}"]
    assert found.paths == DEFAULT


def test_links__of_folders_are_not_followed(root: Path, tmp_path: Path) -> None:
    suites.write(tmp_path, {"outside/EVAL.yaml": TESTS})
    (root / "linked").symlink_to(tmp_path / "outside")

    assert find_suites(root, root, (), None).paths == DEFAULT


def test_find__copies_of_suites_in_agentvs_results_are_none(tmp_path: Path) -> None:
    copies = ".agentv/results/runs/default/2026-11-22T10-42-52-456Z/greeter/one/task"
    root = suites.write(
        tmp_path / "r",
        {
            "EVAL.yaml": TESTS,
            f"{copies}/EVAL.yaml": TESTS,
            f"evals/{copies}/EVAL.yaml": TESTS,
            ".agentv/evals/d.eval.yaml": TESTS,
            "results/EVAL.yaml": TESTS,
        },
    )
    expected = (".agentv/evals/d.eval.yaml", "EVAL.yaml", "results/EVAL.yaml")
    assert find_suites(root, root, (), None).paths == expected
