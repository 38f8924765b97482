"""The inputs that `.agentevals.yaml` holds, and commands in a subfolder."""

import json
from pathlib import Path

import pytest

from tests.support import command
from tests.support.repositories import Files, Repository

SUITE = "name: one\ntests: [{id: a, input: q, assert: [{type: contains, value: a}]}]\n"
TARGETS = "- {name: default, provider: mock, responses: [{pattern: '', response: a}]}\n"
FILES: Files = {
    "evals/EVAL.yaml": SUITE,
    "other/suite.yaml": SUITE.replace("one", "other"),
    ".agentv/targets.yaml": TARGETS,
    "config/targets.yaml": TARGETS.replace("response: a", "response: b"),
    "src/agent.py": "",
}


def repository_with(folder: Path, configuration: str) -> Repository:
    return Repository.create(folder / "repository", {**FILES, ".agentevals.yaml": configuration})


def paths(done: command.Done) -> list[str]:
    assert done.code == 0, done.err
    return [suite["path"] for suite in json.loads(done.out)]


def test_watch__a_glob_with_too_many_alternatives_is_invalid(tmp_path: Path) -> None:
    repository = repository_with(tmp_path, "watch: src/{1..1001}\n")

    for words in (("list",), ("list", "--watch", "src/{1..1001}")):
        done = command.run(repository.path, *words)
        assert done.code == 2, done.err
        assert "the braces of `src/{1..1001}` have more than 1,000 alternatives" in done.err


def test_watch__of_the_file_decides_what_a_change_affects(tmp_path: Path) -> None:
    repository = repository_with(tmp_path, "watch: [docs/**, src/**]\n")
    repository.write({"src/agent.py": "changed = 1\n"})

    assert paths(command.run(repository.path, "list", "--base", "HEAD", "--json")) == [
        "evals/EVAL.yaml"
    ]
    review = command.run(repository.path, "review", "--base", "HEAD")
    assert review.code == 0, review.err
    assert "src/agent.py" in review.out


def test_watch__of_an_option_takes_precedence(tmp_path: Path) -> None:
    repository = repository_with(tmp_path, "watch: src/**\n")
    repository.write({"src/agent.py": "changed = 1\n"})

    assert not paths(
        command.run(repository.path, "list", "--base", "HEAD", "--json", "--watch", "evals/**")
    )


@pytest.mark.parametrize(
    ("head", "edit"),
    [
        ("watch: docs/**\n", "it removes `src/**`"),
        ("watch: [src/**, '!src/agent.py']\n", "it adds `!src/agent.py`"),
    ],
)
def test_watch__a_change_cannot_uncover_its_own_files(
    tmp_path: Path, head: str | None, edit: str
) -> None:
    repository = repository_with(tmp_path, "watch: src/**\n")
    repository.write({"src/agent.py": "changed = 1\n", ".agentevals.yaml": head})

    review = command.run(repository.path, "review", "--base", "HEAD", "--json")

    assert review.code == 0, review.err
    found = json.loads(review.out)
    assert [suite["path"] for suite in found["suites"]] == ["evals/EVAL.yaml"]
    notice = f"the change edits `watch`: {edit}; base's rules hold, too"
    assert notice in json.dumps(found, ensure_ascii=False)


def test_watch__without_a_base_nothing_is_edited(tmp_path: Path) -> None:
    repository = repository_with(tmp_path, "watch: [src/**, '!src/agent.py']\n")
    assert "edits `watch`" not in command.run(repository.path, "run").err


def test_suites__a_change_cannot_hide_one_of_base(tmp_path: Path) -> None:
    repository = repository_with(tmp_path, "suites: ['**/*.yaml', '!.agent*/**', '!config/**']\n")
    repository.write({".agentevals.yaml": "suites: evals/*.yaml\n"})

    review = command.run(repository.path, "review", "--base", "HEAD")

    assert "other/suite.yaml" in review.out


def test_targets__of_the_file_are_used_from_every_folder(tmp_path: Path) -> None:
    repository = repository_with(tmp_path, "targets: config/targets.yaml\n")

    assert command.run(repository.path, "run").code == 1
    assert command.run(repository.path / "src", "run").code == 1
    assert command.run(repository.path, "run", "--targets", ".agentv/targets.yaml").code == 0


def test_errors__of_the_file_have_a_location(tmp_path: Path) -> None:
    repository = repository_with(tmp_path, "suites: [a, 5]\n")

    for arguments in (("validate",), ("run",), ("review", "--base", "HEAD")):
        done = command.run(repository.path, *arguments)
        assert done.code == 2
        assert ".agentevals.yaml:1:13: `suites[1]` is the number 5; write a text" in done.err


def test_suites__a_pattern_that_matches_nothing_is_named(tmp_path: Path) -> None:
    repository = repository_with(tmp_path, "suites: ['nothing/*', '!x/**']\n")

    done = command.run(repository.path, "review", "--base", "HEAD")

    assert done.code == 2
    assert "`nothing/*` in `suites` matches none" in done.err
    assert "write globs from the root of the repository, as `evals/**/*.yaml`" in done.err


def test_subfolder__the_suites_of_the_repository_are_found(tmp_path: Path) -> None:
    repository = repository_with(tmp_path, "")
    below = repository.path / "src"

    assert paths(command.run(below, "list", "--json")) == ["evals/EVAL.yaml"]
    assert paths(command.run(below, "list", "../evals", "--json")) == ["evals/EVAL.yaml"]
    done = command.run(below, "review", "--base", "HEAD", "--select", "all")
    assert done.code == 0, done.err
    assert (repository.path / "agentevals-report/comment.md").is_file()


def test_env__is_an_option_of_the_commands_that_read_suites(tmp_path: Path) -> None:
    repository = repository_with(tmp_path, "")
    repository.write({"evals/EVAL.yaml": SUITE.replace("input: q", "input: '${{ CITY }}'")})

    for name in ("validate", "list", "explain"):
        what = "a" if name == "explain" else "evals/EVAL.yaml"
        refused = command.run(repository.path, name, what, env={"CITY": "Oslo"})
        read = command.run(repository.path, name, what, "--env", "CITY", env={"CITY": "Oslo"})
        assert (refused.code, read.code) == (2, 0), (name, refused.err, read.err)
