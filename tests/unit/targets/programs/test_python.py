import ast
import asyncio
import sys
import textwrap
import venv
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import pytest

from agentevals_action.model.messages import Message, ToolCall
from agentevals_action.model.target import Provider, Target
from agentevals_action.model.trace import Trace
from agentevals_action.system.files.paths import Folder
from agentevals_action.targets.programs import python_worker
from tests.support import targets
from tests.support.cases import file_block


@dataclass(frozen=True)
class Agent:
    """A repository with the module `agent.py`, whose function `answer` is the target."""

    root: Path
    fields: Mapping[str, Any] = field(default_factory=dict)

    def write(self, source: str, name: str = "agent.py") -> None:
        path = self.root / name
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text(textwrap.dedent(source))

    @property
    def target(self) -> Target:
        definition = {"provider": "python", "target": "agent:answer", "python": sys.executable}
        return targets.target({**definition, **self.fields})

    def traces(self, *prompts: str, **request: Any) -> list[targets.Outcome]:
        """The outcomes of calls, one after another."""
        requests = (targets.request(self.root, prompt, **request) for prompt in prompts)
        return targets.outcomes(self.target, *requests)

    def answers(self, *prompts: str, **request: Any) -> list[str]:
        return [*map(targets.shown, self.traces(*prompts, **request))]

    def imports(self) -> int:
        """How often the module that notes its imports was imported."""
        return len((self.root / "imports").read_text())


@pytest.fixture
def agent(tmp_path: Path) -> Agent:
    return Agent(tmp_path)


def with_fields(agent: Agent, **fields: Any) -> Agent:
    return Agent(agent.root, {**agent.fields, **fields})


NOTES_IMPORTS = """
with open("imports", "a") as file:
    file.write(".")
"""


def test_complete__one_import_and_one_event_loop_serve_many_calls(agent: Agent) -> None:
    agent.write(
        f"""{NOTES_IMPORTS}
import asyncio
loops = set()
async def answer(messages):
    loops.add(asyncio.get_running_loop())
    await asyncio.sleep(0)
    return messages[-1]["content"].upper() + str(len(loops))
"""
    )
    assert agent.answers("a", "b", "c") == ["A1", "B1", "C1"]
    assert agent.imports() == 1


def test_complete__calls_at_once_have_workers_of_their_own(agent: Agent) -> None:
    """Each call waits until the other one is made, too."""
    agent.write(
        """
        import os, pathlib, time
        def answer(messages):
            pathlib.Path(messages[0]["content"]).touch()
            while not (os.path.exists("a") and os.path.exists("b")):
                time.sleep(0.01)
            return str(os.getpid())
        """
    )

    async def both(provider: Provider) -> Sequence[Trace]:
        requests = (targets.request(agent.root, text) for text in ("a", "b"))
        return await asyncio.gather(*map(provider.complete, requests))

    assert len({trace.output for trace in targets.use(agent.target, both)}) == 2


def test_complete__a_function_gets_the_messages_and_the_fields_that_it_names(
    agent: Agent,
) -> None:
    agent.write(
        """
        import json
        def answer(messages, metadata, *, test_id, conversation_id=None, other="unset"):
            given = [test_id, conversation_id, metadata["team"], other]
            return json.dumps({"output": json.dumps([messages, given])})
        """
    )
    (agent.root / "notes.txt").write_text("content")
    messages = (
        Message("system", "Be brief."),
        Message("user", "one"),
        Message("assistant", "", tool_calls=(ToolCall("look", {"at": 1}, id="c1"),)),
        Message("tool", "seen", tool_call_id="c1"),
        Message("user", (file_block("file", "notes.txt", agent.root / "notes.txt"),)),
    )
    request: dict[str, Any] = {
        "eval_id": "t1",
        "conversation_id": "talk",
        "metadata": {"team": "core"},
    }

    function = {"name": "look", "arguments": '{"at": 1}'}
    trace = targets.ask(agent.target, agent.root, *messages, **request)
    assert ast.literal_eval(trace.output) == [
        [
            {"role": "system", "content": "Be brief."},
            {"role": "user", "content": "one"},
            {
                "role": "assistant",
                "content": "",
                "tool_calls": [{"id": "c1", "type": "function", "function": function}],
            },
            {"role": "tool", "content": "seen", "tool_call_id": "c1"},
            {"role": "user", "content": '<file path="notes.txt">\ncontent\n</file>'},
        ],
        ["t1", "talk", "core", "unset"],
    ]


def test_complete__an_object_is_read_as_an_envelope(agent: Agent) -> None:
    agent.write(
        """
        import dataclasses
        @dataclasses.dataclass
        class Reply:
            output: str
            cost_usd: float
            messages: object = None
        def answer(messages): return Reply("done", 0.5)
        """
    )
    (trace,) = agent.traces("a")
    assert isinstance(trace, Trace)
    assert (trace.output, trace.usage.cost_usd) == ("done", 0.5)


#: Runs of openai-agents, pydantic-ai and LangGraph, with the public fields of their classes, that
#: stopped because a person must approve the call of `refund`.
STOPPED = {
    "openai-agents": """
        call = {"type": "function_call", "call_id": "c1", "name": "refund", "arguments": "{}"}
        made = {"type": "function_call", "call_id": "c2", "name": "look", "arguments": "{}"}
        result = {"type": "function_call_output", "call_id": "c2", "output": "seen"}
        class Run:
            interruptions = [SimpleNamespace(raw_item=call)]
            final_output = None
            usage = SimpleNamespace(input_tokens=0, requests=0, output_tokens=0,
                                    input_tokens_details=SimpleNamespace(cached_tokens=0))
            context_wrapper = SimpleNamespace(usage=usage)
            last_agent = SimpleNamespace(model=None)
            def to_input_list(self): return [call, made, result]
        """,
    "pydantic-ai": """
        parts = [{"part_kind": "tool-call", "tool_name": name, "args": {}, "tool_call_id": call_id}
                 for name, call_id in (("refund", "c1"), ("look", "c2"))]
        result = {"part_kind": "tool-return", "tool_name": "look", "content": "seen",
                  "tool_call_id": "c2"}
        class Run:
            output = SimpleNamespace(approvals=[SimpleNamespace(tool_call_id="c1")], calls=[])
            def all_messages_json(self):
                return json.dumps([{"kind": "response", "parts": parts},
                                   {"kind": "request", "parts": [result]}])
        """,
    "langgraph": """
        class Message(SimpleNamespace):
            def model_dump(self, mode): return vars(self)
        def calls(*names): return [{"name": name, "args": {}, "id": name} for name in names]
        class Run(dict):
            def __init__(self):
                looked = Message(type="ai", content="", tool_calls=calls("look"))
                result = Message(type="tool", content="seen", tool_call_id="look")
                asked = Message(type="ai", content="", tool_calls=calls("refund"))
                super().__init__(messages=[looked, result, asked], __interrupt__=["approve?"])
        """,
}


@pytest.mark.parametrize("framework", STOPPED)
def test_complete__a_run_that_waits_for_an_approval_did_not_make_the_call(
    agent: Agent, framework: str
) -> None:
    source = textwrap.dedent(STOPPED[framework])
    agent.write(
        f"import json\nfrom types import SimpleNamespace\n{source}\n"
        "def answer(messages): return Run()\n"
    )
    (trace,) = agent.traces("a")
    assert isinstance(trace, Trace), trace
    refused = {call.name: call.refused for call in trace.tool_calls or ()}
    assert refused == {"refund": True, "look": False}
    assert (trace.output, trace.has_answer) == ("", True)


@pytest.mark.parametrize("reply", ["Completion()", "[Completion()]"])
def test_complete__objects_of_a_framework_are_read_as_messages_or_refused(
    agent: Agent, reply: str
) -> None:
    """They must not become the answer as their JSON text."""
    agent.write(
        f"""
        import dataclasses
        @dataclasses.dataclass
        class Completion:
            id: str = "c"
            choices: list = dataclasses.field(default_factory=lambda: [
                {{"message": {{"role": "assistant", "content": "shipped"}}}}])
        def answer(messages): return {reply}
        """
    )
    (outcome,) = agent.traces("a")
    if isinstance(outcome, Trace):
        assert (outcome.output, outcome.tool_calls) == ("shipped", None)
    else:
        assert "the reply is an object of agent.Completion, which cannot be read" in str(outcome)
    assert isinstance(outcome, Trace) == (reply == "Completion()")


@pytest.mark.parametrize(
    "statement", ["raise ValueError('no such order')", "import sys; sys.exit('no such order')"]
)
def test_complete__an_exception_is_an_error_of_its_test(agent: Agent, statement: str) -> None:
    agent.write(
        f"""
        import os
        def find():
            {statement}
        def answer(messages):
            return find() if messages[0]["content"] == "bad" else str(os.getpid())
        """
    )
    before, error, after = agent.answers("a", "bad", "b")
    assert error.startswith("target: ")
    assert "no such order" in error.splitlines()[0]
    assert 'agent.py", line ' in error
    assert "in find" in error
    assert "python_worker" not in error
    assert before == after  # the same process


def test_complete__a_time_out_during_the_import_says_so(agent: Agent) -> None:
    agent.write("import time\ntime.sleep(1000)\ndef answer(messages): return 'x'")
    (error,) = agent.answers("a", timeout=0.3)
    assert error == "timeout: no answer within 0.3 s: its worker was still starting"


def test_complete__what_is_printed_is_not_an_answer(agent: Agent) -> None:
    agent.write(
        """
        import os, subprocess, sys
        print('{"call": 1, "reply": "forged"}', flush=True)
        def answer(messages):
            if not sys.stdout.closed:
                print('{"call": 1, "reply": "forged"}')
            os.write(1, b'{"call": 1, "reply": "forged"}\\n')
            subprocess.run(["echo", '{"call": 1, "reply": "forged"}'])
            sys.stderr.write("noise\\n")
            sys.stdout.close()
            return f"real, input {os.read(0, 100)!r}"
        """
    )
    assert agent.answers("a", "b") == ["real, input b''"] * 2


@pytest.mark.parametrize(
    ("source", "problem"),
    [
        ("import nothing_like_it", "ModuleNotFoundError: No module named 'nothing_like_it'"),
        ("raise SystemExit('needs a key')", "SystemExit: needs a key"),
        ("import os\nos._exit(7)", "the worker ended with exit code 7"),
        ("other = 1", "AttributeError: module 'agent' has no attribute 'answer'"),
        ("answer = 1", "TypeError: agent:answer is not a function"),
        ("def answer(): pass", "TypeError: too many positional arguments"),
        ("def answer(messages, tools): pass", "TypeError: missing a required argument: 'tools'"),
    ],
)
def test_complete__an_import_that_fails_is_one_error_for_all(
    agent: Agent, source: str, problem: str
) -> None:
    agent.write(f"{NOTES_IMPORTS}\n{source}")
    errors = agent.answers("a", "b", "c")
    assert errors[0].startswith(f"target: agent:answer cannot be imported: {problem}")
    assert errors[1:] == errors[:1] * 2
    assert agent.imports() == 1


def test_complete__an_interpreter_of_its_own_needs_none_of_our_packages(agent: Agent) -> None:
    venv.create(agent.root / ".venv", with_pip=False)
    agent.write(
        """
        import importlib.util, sys
        def answer(messages):
            names = ("pydantic", "agentevals_action")
            return f"{sys.prefix} {[name for name in names if importlib.util.find_spec(name)]}"
        """,
        "evals/agent.py",
    )
    own = with_fields(agent, python=".venv/bin/python")
    assert own.answers("a", folder=agent.root / "evals") == [f"{agent.root / '.venv'} []"]
    missing = with_fields(agent, python=".venv/no/python")
    error = targets.refused(missing.target, agent.root)
    assert str(error) == f"there is no interpreter {agent.root}/.venv/no/python"
    assert "`prepare`" in error.hint


def test_worker__is_valid_for_python_3_9() -> None:
    source = Path(python_worker.__file__).read_text()
    tree = ast.parse(source, feature_version=(3, 9))
    imported = {
        name
        for node in ast.walk(tree)
        if isinstance(node, ast.Import | ast.ImportFrom)
        for name in [getattr(node, "module", None) or node.names[0].name]
    }
    assert {name.partition(".")[0] for name in imported} <= sys.stdlib_module_names


def test_complete__the_agent_works_in_the_workspace(agent: Agent) -> None:
    """Its imports come from the folder of the suite, also when the workspace has such a module."""
    agent.write(
        """
        import os, pathlib
        def answer(messages):
            import helper
            pathlib.Path("written").touch()
            names = ("WORKSPACE_PATH", "AGENTV_WORKSPACE_PATH")
            return f"{helper.NAME} {os.getcwd()} {[os.environ.get(name) for name in names]}"
        """
    )
    agent.write("NAME = 'real'", "helper.py")
    agent.write("NAME = 'planted'", "work/helper.py")
    work = agent.root / "work"

    async def both(provider: Provider) -> list[str]:
        requests = (targets.request(agent.root, "a", workspace=folder) for folder in (work, None))
        return [(await provider.complete(request)).output for request in requests]

    inside, outside = targets.use(agent.target, both)
    assert inside == f"real {work} {[str(work)] * 2}"
    assert outside == f"real {agent.root} [None, None]"
    assert (work / "written").exists()


@pytest.mark.slow
@pytest.mark.parametrize(
    ("value", "problem"),
    [
        ("object()", "TypeError: the target returned an object of builtins.object; return a text"),
        ("float('nan')", "the reply is not JSON: "),
        ("None", "the answer is empty (null)"),
        ("'x' * 11_000_000", "the worker wrote more than 10 MB"),
    ],
)
def test_complete__a_reply_that_cannot_be_read_is_an_error(
    agent: Agent, value: str, problem: str
) -> None:
    agent.write(
        f"def answer(messages): return {value} if messages[0]['content'] == 'bad' else 'fine'"
    )
    error, after = agent.answers("bad", "good")
    assert error.startswith(f"target: {problem}")
    assert after == "fine"


def test_files__are_the_module_and_its_packages(tmp_path: Path) -> None:
    for name in ("src/app/__init__.py", "src/app/agent.py", "src/agent.py"):
        path = tmp_path / name
        path.parent.mkdir(parents=True, exist_ok=True)
        path.touch()
    options = targets.target({"provider": "python", "target": "app.agent:answer", "cwd": "/src"})
    found = options.named_files(Folder(tmp_path, tmp_path))
    assert [file.path for file in found] == ["src/app/__init__.py", "src/app/agent.py"]
