"""`record`: a real server answers the agent once, and the suite from then on."""

import json
import sys
from pathlib import Path
from typing import Any

import pytest
import yaml

from agentevals_action.suites.documents.yaml_writer import write_yaml
from tests.support import command, tool_agent

AGENT = Path(tool_agent.__file__).read_text("utf-8")
TARGETS = "- {name: default, provider: cli, command: [python3, agent.py, plan.json]}\n"
SUITE = """\
name: shop
workspace: {template: files}
tests:
  - id: first
    input: Do it.
    assert: [{type: contains, value: never said}]
"""
#: `count` answers differently each time, `path` and `env` with what does not belong into a file.
SERVER = """
import json, os, sys
from mcp.server import MCPServer
from mcp.types import ImageContent, TextContent
server, calls = MCPServer("shop"), []
@server.tool()
def count(kind: str = "") -> dict[str, int]:
    calls.append(kind)
    return {"calls": len(calls)}
@server.tool(structured_output=False)
def path(folder: str) -> str:
    return f"two lines\\nof {folder}"
@server.tool(structured_output=False)
def env() -> str:
    return json.dumps({"API_KEY": "1234", "keys": [{"token": "x"}], "home": os.environ["HOME"]})
@server.tool(structured_output=False)
def fail(id: int) -> str:
    raise ValueError("no database")
@server.tool(structured_output=False)
def picture() -> list:
    return [TextContent(type="text", text="a picture"), ImageContent(type="image", data="", mimeType="image/png")]
@server.tool(structured_output=False)
def end() -> str:
    os._exit(3)
server.run("stdio")
"""
NEVER_CALLED = {"name": "*", "replies": [{"error": "this tool has no recorded reply"}]}


def write(folder: Path, plan: list[Any], more: str = "") -> None:
    (folder / ".agentv").mkdir(exist_ok=True)
    (folder / "files").mkdir(exist_ok=True)
    (folder / "files/notes.txt").write_text("notes")
    (folder / ".agentv/targets.yaml").write_text(TARGETS)
    (folder / "agent.py").write_text(AGENT)
    (folder / "plan.json").write_text(json.dumps(plan))
    (folder / "server.py").write_text(SERVER)
    (folder / "EVAL.yaml").write_text(SUITE + more)


def record(folder: Path, *options: str, **variables: str) -> command.Done:
    words = ("record", "EVAL.yaml", *options, "--", sys.executable, "server.py")
    return command.run(folder, *words, env=variables)


def entries(folder: Path, name: str = "suite") -> Any:
    return yaml.safe_load((folder / f"tools/{name}.yaml").read_text())


def test_calls__are_entries_that_a_run_answers_alike(tmp_path: Path) -> None:
    folder = {"folder": "$WORKSPACE_PATH/notes.txt"}
    write(
        tmp_path, [["fail", {"id": 1}], ["env", {}], ["env", {}], ["picture", {}], ["path", folder]]
    )
    done = record(tmp_path)
    assert done.code == 0, done.err
    assert entries(tmp_path) == [
        NEVER_CALLED,
        {
            "name": "env",
            "replies": [
                {"reply": {"API_KEY": "***", "keys": [{"token": "***"}], "home": "/nonexistent"}}
            ],
        },
        {
            "name": "fail",
            "replies": [{"when": {"id": 1}, "error": "Error executing tool fail"}],
        },
        {
            "name": "path",
            "replies": [
                {
                    "when": {"folder": "{{workspace}}/notes.txt"},
                    "reply": "two lines\nof {{workspace}}/notes.txt",
                }
            ],
        },
        {"name": "picture", "replies": [{"reply": "a picture"}]},
    ]
    assert 'what is no text in answers of "picture" is left out' in done.err
    listed = json.loads((tmp_path / "tools/suite.tools.json").read_text())["tools"]
    assert [tool["name"] for tool in listed] == ["count", "end", "env", "fail", "path", "picture"]

    expected = (
        "{type: tool_trajectory, mode: any_order, minimums: {env: 1, fail: 1, path: 1, picture: 1}}"
    )
    write(tmp_path, json.loads((tmp_path / "plan.json").read_text()), done.out)
    suite = (tmp_path / "EVAL.yaml").read_text()
    says = "[{type: contains, value: /notes.txt}, " + expected + "]"
    (tmp_path / "EVAL.yaml").write_text(
        suite.replace("[{type: contains, value: never said}]", says)
    )
    assert (ran := command.run(tmp_path, "run")).code == 0, ran.out + ran.err


def test_second_recording__changes_nothing(tmp_path: Path) -> None:
    write(tmp_path, [["fail", {"id": 2}], ["fail", {"id": 1}]])
    record(tmp_path)
    first = (tmp_path / "tools/suite.yaml").read_bytes()
    (tmp_path / "tools/suite.yaml").unlink()
    write(tmp_path, [["fail", {"id": 1}], ["fail", {"id": 2}]])
    record(tmp_path)
    assert (tmp_path / "tools/suite.yaml").read_bytes() == first


def test_different_answers_to_one_call__are_in_turn(tmp_path: Path) -> None:
    write(tmp_path, [["count", {"kind": "a"}], ["count", {"kind": "a"}]])
    done = record(tmp_path, "--in", "shop")
    assert done.code == 0, done.err
    in_turn = [{"reply": {"calls": 1}}, {"reply": {"calls": 2}}]
    replies = [{"when": {"kind": "a"}, "in_turn": in_turn}]
    assert entries(tmp_path, "shop")[1] == {"name": "count", "in": "shop", "replies": replies}
    assert yaml.safe_load(done.out)["tools"][0] == {"from": "tools/shop.tools.json", "in": "shop"}


def test_replies_that_exist__answer_and_stay(tmp_path: Path) -> None:
    own = [
        {"when": {"kind": "a"}, "reply": {"calls": 70}},
        {"matches": {"properties": {"kind": {"const": "forbidden"}}}, "error": "not allowed"},
    ]
    more = "tools: [{from: tools/suite.tools.json}, {file: tools/suite.yaml}]\n"
    kinds = ("a", "forbidden", "b")
    write(tmp_path, [["count", {"kind": kind}] for kind in kinds])
    record(tmp_path, "--test", "first")
    (tmp_path / "tools/suite.yaml").write_text(write_yaml([{"name": "count", "replies": own}]))
    trajectory = "{type: tool_trajectory, mode: any_order, minimums: {count: 1}}"
    write(tmp_path, [["count", {"kind": kind}] for kind in kinds], more)
    suite = (
        (tmp_path / "EVAL.yaml")
        .read_text()
        .replace("{type: contains, value: never said}", trajectory)
    )
    rest = "tools: [{name: '*', replies: [{error: never called}]}, "
    (tmp_path / "EVAL.yaml").write_text(suite.replace("tools: [", rest))
    done = record(tmp_path)
    assert done.code == 0, done.err
    added = {"when": {"kind": "b"}, "reply": {"calls": 1}}
    merged = [NEVER_CALLED, {"name": "count", "replies": [*own, added]}]
    assert entries(tmp_path) == merged

    by_hand = f"# no real orders\n{json.dumps([{'name': 'count', 'replies': own}])}\n"
    (tmp_path / "tools/suite.yaml").write_text(by_hand)
    done = record(tmp_path)
    assert (tmp_path / "tools/suite.yaml").read_text() == by_hand
    assert "tools/suite.yaml stays as you wrote it" in done.err
    assert yaml.safe_load(done.out) == merged


def test_recording__that_ends_early_keeps_what_was_answered(tmp_path: Path) -> None:
    write(tmp_path, [["count", {"kind": "a"}], ["end", {}]])
    done = record(tmp_path)
    assert (done.code, "ended with exit code 3" in done.err) == (3, True)
    count = {"name": "count", "replies": [{"when": {"kind": "a"}, "reply": {"calls": 1}}]}
    assert entries(tmp_path) == [NEVER_CALLED, count]


TWICE = "- {name: count, replies: [{reply: 1}]}\n"
#: What the file of entries has, an option, and what is wrong.
MISTAKES = {
    "no YAML": ("[", (), "suite.yaml is no list of different tools"),
    "an object": ("{}", (), "suite.yaml is no list of different tools"),
    "a tool twice": (2 * TWICE, (), "suite.yaml is no list of different tools"),
    "the name of a server": ("", ("--in", "../x"), "`--in ../x` names no server"),
}


@pytest.mark.parametrize("case", MISTAKES)
def test_mistakes__are_found_before_the_agent_runs(tmp_path: Path, case: str) -> None:
    text, options, words = MISTAKES[case]
    write(tmp_path, [["count", {}]])
    (tmp_path / "tools").mkdir()
    (tmp_path / "tools/suite.yaml").write_text(text)
    done = record(tmp_path, *options)
    assert (done.code, words in done.err, "1 of 1 test" in done.err) == (2, True, False)
    assert (tmp_path / "tools/suite.yaml").read_text() == text


def test_nothing__is_recorded_in_ci_or_without_a_server(tmp_path: Path) -> None:
    write(tmp_path, [["end", {}]])
    refused = record(tmp_path, CI="true")
    assert (refused.code, "where the variable CI is set" in refused.err) == (2, True)
    ended = record(tmp_path)
    assert ended.code == 3
    assert "ended with exit code 3" in ended.err
    assert not (tmp_path / "tools").exists()
