"""Reads the tools and commands of a suite and its tests, merges them, and finds mistakes."""

import re
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from agentevals_action.errors import AttemptError
from agentevals_action.formatting import quoted
from agentevals_action.model.diagnostic import Location, NamedFile, files_of_program
from agentevals_action.model.evaluator import Evaluator, evaluators_by_path
from agentevals_action.model.suite import Suite, Test
from agentevals_action.model.tools import (
    OTHERS,
    TOOL_FILE,
    TOOL_SERVER,
    Command,
    Condition,
    Tool,
    ToolEntries,
    ToolEntry,
    ToolFile,
    ToolList,
    ToolReply,
    ToolServer,
    combine_tools,
    find_tools,
)
from agentevals_action.suites.documents.diagnostics import Unreadable
from agentevals_action.suites.documents.json_reader import read_json
from agentevals_action.suites.documents.yaml_reader import read_document, read_yaml
from agentevals_action.suites.reading import FileReader
from agentevals_action.system.program import all_words
from agentevals_action.validation.field_errors import did_you_mean
from agentevals_action.validation.file_model import FileModel, list_spellings
from agentevals_action.validation.json_schema import (
    find_mismatches,
    find_schema_problems,
    json_path,
    one_line,
)

#: Names that no command-line agent changes.
_PLAIN_NAME = re.compile(r"[A-Za-z0-9_]{1,48}")
#: Keywords with which a schema names arguments in places that are not looked at.
_MORE_NAMES = frozenset({"$ref", "allOf", "anyOf", "oneOf", "if", "patternProperties"})
_OTHERWISE = "an entry without a condition, as `- error: not allowed`"
_OTHERWISE_OF_COMMAND = _OTHERWISE.replace("error: not allowed", "{stderr: not allowed, exit: 1}")


class _Entries(FileModel):
    noun = "tool file"

    tools: ToolEntries


@dataclass(frozen=True)
class TestTools:
    """The tools and commands of a test, effective, and the files that declare them."""

    __test__ = False  # pytest: not a test case

    tools: tuple[Tool | ToolServer, ...]
    commands: tuple[Command, ...]
    files: tuple[NamedFile, ...]


class ToolReader:
    """The tools of the tests of one suite. Each problem is reported once."""

    def __init__(self, suite: Suite, reader: FileReader) -> None:
        self._entries, self._files = _expand(suite.tools, reader)
        self._commands = suite.commands
        self._reader = reader
        _check_entries(self._entries, (), reader)
        _check_commands(suite.commands, reader)
        #: The tools and commands that lack a reply, which are reported for one test.
        self._incomplete: set[Location] = set()

    def read(self, test: Test, reader: FileReader) -> TestTools:
        """The tools of a test: its own entries, over the suite's entries of the same names."""
        of_test, files = _expand(test.tools, reader)
        _check_entries(of_test, self._entries, reader)
        _check_commands(test.commands, reader)
        entries = (*self._entries, *of_test)
        commands = {command.name: command for command in (*self._commands, *test.commands)}
        expected = {name for evaluator in test.evaluators for name in _expected_tools(evaluator)}
        declared = [entry for entry in entries if isinstance(entry, Tool)]
        tools = combine_tools(declared).values()
        for tool in tools:
            self._check_replies(tool.trace_name, tool, expected, test, _OTHERWISE)
        names = {tool.name: tool.trace_name for tool in (*declared, *tools)}
        evaluators = evaluators_by_path(test.evaluators).values()
        named = {name for evaluator in evaluators for name in evaluator.expected_tools()}
        for name in sorted(named & names.keys() - {*names.values(), *commands}):
            problem = f"the test `{test.id}` names {quoted(name)}, and no call has this name"
            reader.warn(test.location, problem, f"write {quoted(names[name])}")
        for command in commands.values():
            self._check_replies(command.name, command, expected, test, _OTHERWISE_OF_COMMAND)
        for server in (entry for entry in entries if isinstance(entry, ToolServer)):
            self._check_server(server, entries)
        return TestTools(entries, tuple(commands.values()), (*self._files, *files))

    def _check_replies(
        self,
        name: str,
        source: Tool | Command,
        expected: set[str],
        test: Test,
        advice: str,
    ) -> None:
        """An agent that makes a forbidden call must fail its test, which is not scored if the call
        has no reply."""
        is_complete = any(reply.is_otherwise for reply in source.replies)
        is_expected = bool(source.replies) and name in expected
        if is_complete or is_expected or source.location in self._incomplete:
            return
        self._incomplete.add(source.location)
        problem = f"{quoted(name)} has no reply for other calls, and the test `{test.id}` expects "
        problem += "such a call" if name in expected else "no call of it"
        self._reader.error(source.location, problem, f"add {advice}, to its `replies`")

    def _check_server(self, server: ToolServer, entries: Iterable[ToolEntry]) -> None:
        others = (entry for entry in entries if isinstance(entry, Tool) and entry.name == OTHERS)
        if server.location in self._incomplete or any(
            entry.server_name in (None, server.server)
            and any(reply.is_otherwise for reply in entry.replies)
            for entry in others
        ):
            return
        self._incomplete.add(server.location)
        problem = "the tools of this server that the suite does not name have no reply"
        advice = f"add `- name: {quoted(OTHERS)}` whose `replies` have {_OTHERWISE}"
        self._reader.error(server.location, problem, advice)


def _expected_tools(evaluator: Evaluator) -> Iterator[str]:
    """The names of the tools of which a call is expected: none, if the result is negated."""
    if not evaluator.negate:
        yield from evaluator.expected_tools()
        for child in evaluator.children():
            yield from _expected_tools(child)


def _expand(
    entries: Iterable[ToolEntry], reader: FileReader
) -> tuple[tuple[Tool | ToolServer, ...], tuple[NamedFile, ...]]:
    """The tools and servers of entries, with the tools of the files that the entries name: lists
    first, then tools with parameters, then replies for tools. The files."""
    expanded: list[Tool | ToolServer] = []
    files: dict[NamedFile, None] = {}
    for entry in entries:
        _expand_entry(entry, reader, expanded, files)
    expanded.sort(key=_precedence)
    return tuple(expanded), tuple(files)


def _precedence(entry: Tool | ToolServer) -> int:
    if isinstance(entry, ToolServer) or entry.is_listed:
        return 0
    return 1 if entry.parameters is not None else 2


def _expand_entry(
    entry: ToolEntry,
    reader: FileReader,
    expanded: list[Tool | ToolServer],
    files: dict[NamedFile, None],
) -> None:
    if isinstance(entry, Tool):
        expanded.append(entry)
        return
    if isinstance(entry, ToolServer):
        words = all_words(entry.command)
        files_in_command = reader.files_among(words, reader.path)
        named = files_of_program(files_in_command, TOOL_SERVER, words, reader.path, reader)
        files |= dict.fromkeys(named)
        expanded.append(entry.model_copy(update={"files": named}))
        return
    try:
        _expand_file(entry, reader, expanded, files)
    except Unreadable as error:
        reader.diagnostics.unreadable(error)
    except ValueError as error:
        advice = "name a file of the repository, from the folder of this one"
        reader.error(entry.location, str(error), advice)


def _expand_file(
    entry: ToolList | ToolFile,
    reader: FileReader,
    expanded: list[Tool | ToolServer],
    files: dict[NamedFile, None],
) -> None:
    """The entries in a file; of a saved `tools/list`, without what plain clients do not use."""
    path, is_list = reader.file(entry.file), isinstance(entry, ToolList)
    file = NamedFile(reader.relative(path), TOOL_FILE)
    if file in files and not is_list:
        reader.error(entry.location, f"{file.path} is named twice", "name it once")
        return
    files[file] = None
    content = read_document(path, file.path)
    document = read_json(content, file.path) if is_list else read_yaml(content, file.path)
    inner, data = reader.of(document, path.parent), document.data
    if is_list and isinstance(data, dict):
        data = data.get("tools")
    if not isinstance(data, list):
        advice = "save MCP's `tools/list`" if is_list else "write a list of tools"
        reader.error(document.location, f"this {entry.noun} has no list of tools", advice)
        return
    if is_list:
        kept = list_spellings(Tool).keys() - {"in", "replies"}
        tools = [inner.only(item, kept) if isinstance(item, dict) else item for item in data]
        document.positions.copy(data, tools)
        data = tools
    entries = inner.validate(_Entries, {"tools": data})
    for inside in entries.tools if entries else ():
        if isinstance(entry, ToolList) and isinstance(inside, Tool):
            fields = {"server_name": entry.server_name, "parameters": inside.parameters or {}}
            inside = inside.model_copy(update={**fields, "is_listed": True})
            _check_schemas(inside, inner)
        _expand_entry(inside, inner, expanded, files)


def _check_entries(
    entries: Sequence[Tool | ToolServer], of_suite: Sequence[Tool | ToolServer], reader: FileReader
) -> None:
    """Reports the mistakes in the entries of one list, which replace entries of the suite."""
    all_tools = [entry for entry in (*of_suite, *entries) if isinstance(entry, Tool)]
    tools, seen = combine_tools(all_tools), dict[tuple[object, ...], Tool]()
    has_server = any(isinstance(entry, ToolServer) for entry in (*of_suite, *entries))
    for entry in entries:
        if isinstance(entry, ToolServer):
            continue
        if not _PLAIN_NAME.fullmatch(entry.name) and entry.name != OTHERS and not entry.is_reply:
            problem = f"agents rename the tool {quoted(entry.name)}"
            advice = "its calls have this name in results; prefer at most 48 letters, digits and _"
            reader.warn(entry.location, problem, advice)
        kind = entry.server_name if entry.is_reply else entry.server, entry.name, entry.is_reply
        first = seen.setdefault(kind, entry)
        if first is not entry:
            problem = f"duplicate tool {quoted(entry.name)} (first in {first.location})"
            is_replaced = first.is_listed and not entry.is_listed
            advice = "leave out `parameters`" if is_replaced else "keep one of them"
            reader.error(entry.location, problem, advice)
        if entry.is_listed:
            continue
        _check_schemas(entry, reader)
        replied = [tools[key] for key in find_tools(tools, entry)] if entry.is_reply else [entry]
        if not (replied or has_server or entry.name == OTHERS):
            names = {name for _, name in tools}
            advice = did_you_mean(
                entry.name, names, "add `parameters`, the schema of its arguments"
            )
            reader.error(entry.location, f"no list has the tool {quoted(entry.name)}", advice)
        _check_order(entry.replies, reader)
        for tool in replied:
            _check_against(tool, entry.replies, reader)


def _check_commands(commands: Iterable[Command], reader: FileReader) -> None:
    seen: set[str] = set()
    for command in commands:
        if command.name in seen:
            problem = f"duplicate command {quoted(command.name)}"
            reader.error(command.location, problem, "keep one of them")
        seen.add(command.name)
        _check_order(command.replies, reader)


def _check_order(replies: Sequence[Condition], reader: FileReader) -> None:
    """Reports entries that are never used, and schemas that are none."""
    for index, reply in enumerate(replies):
        _check_schema(reply.matches, reply.places.get("matches"), reader)
        if earlier := next((other for other in replies[:index] if other.covers(reply)), None):
            problem = f"this reply is never used: the one on line {earlier.location.line} fits "
            reader.error(reply.location, f"{problem}each of its calls", "write it before that one")


def _check_schemas(tool: Tool, reader: FileReader) -> None:
    for field in ("parameters", "output_schema"):
        _check_schema(getattr(tool, field), tool.places.get(field), reader)


def _check_schema(
    schema: Mapping[str, Any] | None, location: Location | None, reader: FileReader
) -> None:
    for steps, problem in find_schema_problems(schema or {}).items():
        what, _, advice = problem.partition("; ")
        where = location or reader.positions.start
        reader.error(where, f"`{json_path(steps)}`: {what}", advice)


def _check_against(tool: Tool, replies: Iterable[ToolReply], reader: FileReader) -> None:
    """Reports conditions and replies that do not fit the schemas of a tool."""
    schema = tool.parameters or {}
    is_open = schema.get("additionalProperties") or _MORE_NAMES & schema.keys()
    arguments = tool.argument_names
    for reply in replies:
        for name in reply.wanted if arguments and not is_open else ():
            if name not in arguments and name.split(".")[0] not in arguments:
                problem = f"`parameters` of {quoted(tool.name)} has no {quoted(name)}"
                advice = did_you_mean(name, arguments, "write one of its arguments")
                reader.error(reply.places["when"], problem, advice)
        for answer in reply.answers if tool.output_schema is not None else ():
            if answer.error is None and (reason := _refusal(tool.output_schema, answer.reply)):
                problem = f"the `outputSchema` of {quoted(tool.name)} refuses this reply: {reason}"
                reader.error(reply.location, problem, "correct the reply")


def _refusal(schema: Mapping[str, Any] | None, reply: Any) -> str:
    """Why a schema of results refuses a reply; empty if it does not, or is no schema."""
    if not isinstance(reply, dict):
        return "it is no object"
    if find_schema_problems(schema or {}):
        return ""
    try:
        errors = find_mismatches(schema or {}, reply, "it", 1)
    except AttemptError as error:
        return str(error)
    return one_line(errors[0].message) if errors else ""
