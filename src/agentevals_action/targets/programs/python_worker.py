"""The worker of `provider: python`: a program of its own, which any Python from 3.9 runs with
nothing but its standard library. `python python_worker.py package.module:function`

It imports the function once, writes a line that says so, and then answers each line of standard
input (a JSON object) with a line. Lines go over copies of the standard descriptors that no other
code knows: what the function or its child processes print goes to standard error."""

from __future__ import annotations

import asyncio
import contextlib
import dataclasses
import importlib
import inspect
import json
import os
import sys
import traceback
from collections.abc import Callable, Mapping
from functools import reduce
from pathlib import Path
from typing import IO, Any

if sys.version_info < (3, 9):  # noqa: UP036  # the interpreter is the user's choice
    sys.exit("the target's `python` must be Python 3.9 or later")

#: The variables that name the folder that an agent works in; the second is AgentV's.
_WORKSPACE_VARIABLES = ("WORKSPACE_PATH", "AGENTV_WORKSPACE_PATH")
#: Fields of a question that the function gets if it has a parameter of the name.
_KEYWORDS = ("test_id", "conversation_id", "metadata", "mcp")
#: The types of replies that are data.
_DATA = (str, bytes, bytearray, bool, int, float, type(None), Mapping, list, tuple)


def _main(target: str) -> None:
    questions, answers = _take_streams()
    folder = str(Path.cwd())
    sys.path[0] = str(Path(__file__).parents[2] / "system" / "observer")
    observer = importlib.import_module("agentevals_imports")
    sys.path[0] = folder  # where these files are, is nobody's business
    try:
        function = _load(target)
        keywords = _keywords(function)
    except BaseException as error:
        _write(answers, _describe(error))
        return
    _write(answers, observer.foreign_import())  # it is ready
    loop = asyncio.new_event_loop()
    asyncio.set_event_loop(loop)
    for line in questions:
        question = json.loads(line)
        _enter_workspace(question["workspace"], folder)
        given = {name: question[name] for name in keywords}
        answer = _answer(function, question["messages"], given, loop)
        with contextlib.suppress(OSError, ValueError):  # the function closed it
            sys.stdout.flush()
        _write(answers, {"call": question["call"], **answer, **observer.foreign_import()})


def _take_streams() -> tuple[IO[bytes], IO[bytes]]:
    """Private copies of standard input and output, whose numbers lead to nothing and to standard
    error from now on."""
    streams = os.fdopen(os.dup(0), "rb"), os.fdopen(os.dup(1), "wb")
    nothing = os.open(os.devnull, os.O_RDONLY)
    os.dup2(nothing, 0)
    os.close(nothing)
    os.dup2(2, 1)
    return streams


def _load(target: str) -> Callable[..., Any]:
    module, _, name = target.partition(":")
    function = reduce(getattr, name.split("."), importlib.import_module(module))
    if not callable(function):
        raise TypeError(f"{target} is not a function")
    return function


def _keywords(function: Callable[..., Any]) -> list[str]:
    """The optional fields that a function takes; TypeError if it cannot be called with messages."""
    try:
        signature = inspect.signature(function)
    except ValueError:  # of a built-in function, it is unknown
        return []
    keywords = [name for name in _KEYWORDS if name in signature.parameters]
    signature.bind([], **dict.fromkeys(keywords))
    return keywords


def _enter_workspace(workspace: str | None, folder: str) -> None:
    os.chdir(workspace or folder)
    for name in _WORKSPACE_VARIABLES:
        os.environ.pop(name, None)
        if workspace:
            os.environ[name] = workspace


def _answer(
    function: Callable[..., Any],
    messages: list[dict[str, Any]],
    given: Mapping[str, Any],
    loop: asyncio.AbstractEventLoop,
) -> dict[str, Any]:
    try:
        reply = function(messages, **given)
        if inspect.isawaitable(reply):
            reply = loop.run_until_complete(reply)
        return {"reply": _plain(reply), "type_name": _type_name(reply), "waiting": _waiting(reply)}
    except BaseException as error:  # `sys.exit` as well: it is an error of this test
        return _describe(error)


def _describe(error: BaseException) -> dict[str, Any]:
    """The error as it is reported: its last line, and the frames that are not of this file."""
    frames = traceback.extract_tb(error.__traceback__)
    shown = [
        frame
        for frame in frames
        if frame.filename != __file__ and "importlib" not in frame.filename
    ]
    *details, problem = traceback.format_exception_only(type(error), error)
    lines = "".join([*traceback.format_list(shown), *details])
    missing = sys.modules["agentevals_imports"].missing_import(error)
    return {"error": missing or problem.strip(), "traceback": lines}


def _type_name(reply: Any) -> str:
    """The class of an object that is the reply, or of the first one in a list; empty for data."""
    items = reply if isinstance(reply, (list, tuple)) else [reply]
    classes = (type(item) for item in items if not isinstance(item, _DATA))
    return next((f"{kind.__module__}.{kind.__qualname__}" for kind in classes), "")


def _waiting(reply: Any) -> list[str]:
    """The ids of the calls that wait for a person's approval, for which the run stopped."""
    if isinstance(reply, Mapping) and reply.get("__interrupt__"):  # LangGraph
        (last,) = list(reply.get("messages") or [None])[-1:]
        return [str(call.get("id")) for call in getattr(last, "tool_calls", None) or ()]
    if callable(getattr(reply, "to_input_list", None)):
        asked = [_plain(item.raw_item) for item in getattr(reply, "interruptions", ())]
        return [str(call.get("call_id")) for call in asked]
    if callable(getattr(reply, "all_messages_json", None)):
        return [call.tool_call_id for call in getattr(reply.output, "approvals", ())]
    return []


def _plain(value: Any, inside: bool = False) -> Any:
    """A reply as JSON: data, what a framework returns from a run, or the fields of an object. Other
    objects inside data (the state of a graph) become texts; TypeError for one that is the reply
    itself."""
    if value is None or isinstance(value, (str, bool, int, float)):
        return value
    if isinstance(value, (bytes, bytearray)):
        return bytes(value).decode()
    if isinstance(value, Mapping):
        return {str(name): _plain(item, True) for name, item in value.items()}
    if isinstance(value, (list, tuple)):
        return [_plain(item, True) for item in value]
    return _of_object(value, inside)


def _of_object(value: Any, inside: bool) -> Any:
    if callable(getattr(value, "to_input_list", None)):  # openai-agents: RunResult
        return _openai_run(value)
    if callable(getattr(value, "all_messages_json", None)):  # pydantic-ai: AgentRunResult
        output = None if hasattr(value.output, "approvals") else value.output
        return {"messages": json.loads(value.all_messages_json()), "output": _text(output)}
    if callable(getattr(value, "model_dump", None)):  # pydantic: LangChain's messages, and others
        return value.model_dump(mode="json")
    if dataclasses.is_dataclass(value) and not isinstance(value, type):
        names = [field.name for field in dataclasses.fields(value)]
        return {name: _plain(getattr(value, name), True) for name in names}
    if inside:
        return str(value)
    raise TypeError(
        f"the target returned an object of {type(value).__module__}.{type(value).__qualname__}; "
        "return a text, a dict, or the list of messages"
    )


def _openai_run(run: Any) -> dict[str, Any]:
    """The items of a run, which contain no tokens, and its usage, which does (0: unknown)."""
    usage = run.context_wrapper.usage
    model = run.last_agent.model
    tokens = {
        "input": usage.input_tokens,
        "output": usage.output_tokens,
        "cached": usage.input_tokens_details.cached_tokens,
    }
    return {
        "messages": _plain(run.to_input_list()),
        "output": _text(run.final_output),
        "token_usage": tokens if usage.input_tokens else None,
        "llm_call_count": usage.requests or None,
        "model": model if isinstance(model, str) else getattr(model, "model", None),
    }


def _text(output: Any) -> str | None:
    """The final output of a run: a text, or structured data as JSON; None if it stopped before."""
    if output is None or isinstance(output, str):
        return output
    return json.dumps(_plain(output), ensure_ascii=False)


def _write(answers: IO[bytes], data: dict[str, Any]) -> None:
    try:
        text = json.dumps(data, allow_nan=False)
    except ValueError as error:
        text = json.dumps({"call": data.get("call"), "error": f"the reply is not JSON: {error}"})
    answers.write(text.encode("ascii") + b"\n")
    answers.flush()


if __name__ == "__main__":
    _main(*sys.argv[1:])
