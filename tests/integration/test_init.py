"""What `init` never does. What it writes is in the table of `test_commands.py`."""

from pathlib import Path

from tests.support import command, tool_agent
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


#: An agent with a client of MCP, which it uses where it has a server.
CLIENT = """\
import os
import client
if "AGENTEVALS_MCP_URL" in os.environ:
    print(*[client.call(name, {"id": 2077}) for name in ("find_order", "refund")])
else:
    print("ready")
"""


def test_init__an_agent_that_is_a_client_of_mcp_gets_a_test_with_tools(tmp_path: Path) -> None:
    code = Path(tool_agent.__file__).read_text("utf-8")
    files = {"agent.py": CLIENT, "client.py": code}
    repository = Repository.create(tmp_path / "repository", files)
    command.run(repository.path, "init", "--command", "python3 agent.py")

    done = command.run(repository.path, "run")
    assert (done.code, done.out.count("2            0      0       0")) == (0, 1), done.out

    repository.commit("the suite")
    hasty = CLIENT.replace('"find_order", "refund"', '"refund", "find_order"')
    repository.write({"agent.py": hasty})
    red = command.run(repository.path, "review", "--base", "HEAD")
    assert (red.code, "#### `refund` pass → fail" in red.out) == (1, True), red.out
