"""What `init` never does. What it writes is in the table of `test_commands.py`."""

from pathlib import Path

from tests.support import command
from tests.support.repositories import Repository


def test_init__writes_through_no_link_of_the_repository(tmp_path: Path) -> None:
    """A link in place of a file would let the repository choose which file is created."""
    repository = Repository.create(tmp_path / "repository", {"agent.py": ""})
    (repository.path / ".agentevals.yaml").symlink_to(tmp_path / "outside")
    (tmp_path / "folder").mkdir()
    (repository.path / ".agentv").symlink_to(tmp_path / "folder")

    done = command.run(repository.path, "init", "--command", "python3 agent.py")

    assert done.code == 2
    assert ".agentv/targets.yaml" in done.err
    assert "outside of the repository" in done.err
    assert not (tmp_path / "outside").exists()
    assert not list((tmp_path / "folder").iterdir())


def test_init__outside_git_the_advice_is_for_a_person(tmp_path: Path) -> None:
    for arguments in (("init", "--model", "gpt-4o-mini"), ("review", "--base", "main")):
        done = command.run(tmp_path, *arguments)
        assert done.code == 2
        assert "git init" in done.err
        assert "actions/checkout" not in done.err
