"""Tools and commands that a suite answers: their declarations, their replies, and the comparison of
arguments."""

import json
import shlex
from collections.abc import Awaitable, Callable, Collection, Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Annotated, Any, Self

from pydantic import AfterValidator, Field, PlainValidator, ValidationInfo, model_validator

from agentevals_action.model.diagnostic import Location, NamedFile
from agentevals_action.validation.file_model import (
    Computed,
    FileModel,
    ListOf,
    NonEmpty,
    errors_at,
    expected,
    spelled,
)
from agentevals_action.validation.json_values import MISSING, as_object, equal, look_up

#: The role of a file with tools, and of a file of a server.
TOOL_FILE, TOOL_SERVER = "tool file", "tool server"
#: The MCP server whose tools have bare names in a trace.
DEFAULT_SERVER = "suite"
#: The variable with the token of an attempt's servers.
TOKEN_VARIABLE = "AGENTEVALS_MCP_TOKEN"  # noqa: S105  # the name of it
#: The name of the entry whose replies all tools without replies get.
OTHERS = "*"
#: How the replies to calls begin that the suite refuses.
UNKNOWN, INVALID = "Unknown tool: ", "Invalid arguments for tool "
#: The name of a server, and the name of one of its tools.
ToolKey = tuple[str, str]
#: A JSON Schema, which is checked where it is read from a suite.
Schema = dict[str, Any]
#: The fields of which a reply has exactly one.
_RESULTS = ("reply", "error", "in_turn")
#: Without `_`, at which agents split the names of tools.
SERVER_NAME = r"^[A-Za-z0-9-]{1,32}$"
_Server = Annotated[
    Annotated[str, Field(pattern=SERVER_NAME)] | None,
    spelled(
        "in",
        serialization_alias="in",
        description="The agent's name of the MCP server; `suite` by default.",
    ),
]


def argument(arguments: Mapping[str, Any], name: str) -> Any:
    """An argument by its name, or by a dotted path into an argument; MISSING without one."""
    return arguments[name] if name in arguments else look_up(arguments, name.split("."))


def find_differences(
    given: Mapping[str, Any], wanted: Mapping[str, Any], names: Iterable[str]
) -> dict[str, tuple[Any, Any]]:
    """The arguments of these names that differ, as given and as wanted (MISSING: on one side
    only)."""
    paired = {name: (argument(given, name), argument(wanted, name)) for name in names}
    return {name: both for name, both in paired.items() if MISSING in both or not equal(*both)}


class ToolAnswer(FileModel):
    """What a call is answered with: a `reply`, or an `error`, which the agent sees as one."""

    noun = "reply"

    reply: str | dict[str, Any] | list[Any] = Field(
        default="", description="The result: a text, an object or a list."
    )
    error: NonEmpty | None = Field(
        default=None, description="The text of the error that the agent gets instead of a result."
    )

    @model_validator(mode="after")
    def _has_one_result(self) -> Self:
        names = [name for name in _RESULTS if name in type(self).model_fields]
        written = [name for name in names if name in self.model_fields_set]
        choices = ", ".join(f"`{name}`" for name in names)
        if not written:
            raise ValueError(f"it says no result; write one of {choices}")
        if written[1:]:
            problem = f"there is another result already; keep one of {choices}"
            raise errors_at({(written[1],): problem})
        return self


class Condition(FileModel):
    """Which calls an entry answers; all, if it has neither field."""

    matches: Schema | None = Field(
        default=None, description="A JSON Schema that the arguments of the call match."
    )

    location: Computed[Location] = Field(default=Location(""), exclude=True)
    places: Computed[Mapping[str, Location]] = Field(default={}, exclude=True)

    @property
    def wanted(self) -> Mapping[str, Any]:
        """The arguments that must be equal, by name or dotted path."""
        return {}

    @property
    def is_otherwise(self) -> bool:
        """Whether it answers every call."""
        return not self.wanted and self.matches is None

    def covers(self, other: "Condition") -> bool:
        """Whether it answers each call that another entry would answer. An entry with a schema is
        not known to do so."""
        others = other.wanted
        shared = {name for name in self.wanted if argument(others, name) is not MISSING}
        return (
            self.matches is None
            and shared == self.wanted.keys()
            and not find_differences(others, self.wanted, shared)
        )


class ToolReply(Condition, ToolAnswer):
    """The answer to some calls of a tool; that of `in_turn` at each call, the last one stays."""

    when: dict[str, Any] | None = Field(
        default=None,
        description="Arguments that must be equal, by their names or dotted paths; others are "
        "free.",
    )
    in_turn: Annotated[ListOf[ToolAnswer], Field(min_length=1)] | None = Field(
        default=None, description="One result for each call that it answers; the last one stays."
    )

    @property
    def wanted(self) -> Mapping[str, Any]:
        """The arguments that must be equal."""
        return self.when or {}

    @property
    def answers(self) -> Sequence[ToolAnswer]:
        """The results, one for each call."""
        return self.in_turn or (self,)


#: Asks a real server for the result of a call; the second parameter removes the paths of this
#: machine from what is kept of the result.
Ask = Callable[[Mapping[str, Any], Callable[[Any], Any]], Awaitable[ToolReply]]


class Tool(FileModel):
    """A tool that the suite declares, or replies for one that a list has.

    An entry with replies alone has no `parameters`. A tool that `is_listed` is from the list of a
    server. While its server is recorded, calls without a reply `ask` it."""

    noun = "tool"

    name: NonEmpty = Field(
        description="Name of the tool; `*` stands for all tools of lists that have no replies."
    )
    server_name: _Server = None
    description: str | None = Field(default=None, description="What it does, for the model.")
    title: str | None = Field(default=None, description="Its name for people.")
    parameters: Schema | None = spelled(
        "parameters",
        "inputSchema",
        default=None,
        description="The JSON Schema of its arguments, an object; without it, a list has the tool.",
    )
    output_schema: Schema | None = spelled(
        "output_schema",
        "outputSchema",
        default=None,
        description="The JSON Schema of its results, which are objects.",
    )
    annotations: dict[str, Any] | None = Field(
        default=None, description="Hints of MCP, as `readOnlyHint`."
    )
    replies: ListOf[ToolReply] = Field(
        default=(), description="Its replies; the first that fits the call is used."
    )

    location: Computed[Location] = Field(default=Location(""), exclude=True)
    places: Computed[Mapping[str, Location]] = Field(default={}, exclude=True)
    is_listed: Computed[bool] = Field(default=False, exclude=True)
    ask: Computed[Ask | None] = Field(default=None, exclude=True)

    @property
    def server(self) -> str:
        """The agent's name of the server."""
        return self.server_name or DEFAULT_SERVER

    @property
    def key(self) -> ToolKey:
        """The server and the name."""
        return self.server, self.name

    @property
    def is_reply(self) -> bool:
        """Whether the entry only has replies for a tool that is declared elsewhere."""
        return self.parameters is None

    @property
    def trace_name(self) -> str:
        """Its name in a trace, the same for every agent."""
        is_default = self.server == DEFAULT_SERVER
        return self.name if is_default else f"mcp__{self.server}__{self.name}"

    @property
    def argument_names(self) -> Collection[str]:
        """The names of its arguments that its schema lists."""
        return as_object((self.parameters or {}).get("properties"))

    def listing(self) -> dict[str, Any]:
        """The tool as MCP lists it."""
        listed = {
            "name": self.name,
            "title": self.title,
            "description": self.description,
            "inputSchema": {"type": "object", **(self.parameters or {})},
            "outputSchema": self.output_schema,
            "annotations": self.annotations,
        }
        return {name: value for name, value in listed.items() if value is not None}


class ToolServer(FileModel):
    """An MCP server of each side, which is started for its list of tools alone."""

    noun = "tool server"

    command: Annotated[ListOf[NonEmpty], Field(min_length=1)] = spelled(
        "server",
        serialization_alias="server",
        description="The command of an MCP server (stdio), in the suite's folder; it is started "
        "for its list of tools alone.",
    )
    env: ListOf[NonEmpty] = Field(
        default=(), description="Names of variables that it needs, of the input `env`."
    )
    server_name: _Server = None

    location: Computed[Location] = Field(default=Location(""), exclude=True)
    files: Computed[tuple[NamedFile, ...]] = Field(default=(), exclude=True)

    @property
    def server(self) -> str:
        """The agent's name of the server."""
        return self.server_name or DEFAULT_SERVER


class ToolList(FileModel):
    """A saved list of the tools of an MCP server."""

    noun = "tool list"

    file: NonEmpty = spelled(
        "from", description="A JSON file with the `tools` of an MCP server, as `tools/list` has it."
    )
    server_name: _Server = None

    location: Computed[Location] = Field(default=Location(""), exclude=True)


class ToolFile(FileModel):
    """More entries in a file."""

    noun = "tool file"

    file: NonEmpty = Field(description="A YAML file with a list of such entries.")

    location: Computed[Location] = Field(default=Location(""), exclude=True)


ToolEntry = Tool | ToolServer | ToolList | ToolFile
_ENTRIES: Mapping[str, type[ToolEntry]] = {
    "name": Tool,
    "server": ToolServer,
    "from": ToolList,
    "file": ToolFile,
}


def _read_entry(value: Any, info: ValidationInfo) -> ToolEntry:
    if isinstance(value, Tool | ToolServer | ToolList | ToolFile):
        return value
    if not isinstance(value, Mapping):
        raise expected("an object with `name`, `from`, `server` or `file`")
    model = next((model for key, model in _ENTRIES.items() if key in value), Tool)
    return model.model_validate(value, context=info.context)


ToolEntries = ListOf[
    Annotated[ToolEntry, PlainValidator(_read_entry, json_schema_input_type=ToolEntry)]
]


def _join_line(line: str) -> str:
    """A line of a shell as `shlex.join` writes its words."""
    try:
        return shlex.join(shlex.split(line))
    except ValueError as error:
        raise ValueError(f"its quotes are wrong ({error}); close them, or escape them") from None


class CommandCall(FileModel):
    """A call of a command."""

    noun = "`when`"

    line: Annotated[str, AfterValidator(_join_line)] | None = Field(
        default=None, description="The words after the command, as in a shell."
    )
    stdin: str | None = Field(default=None, description="The standard input.")


class CommandReply(Condition):
    """What a call of a command prints, and its exit code."""

    noun = "reply"

    when: CommandCall | None = Field(
        default=None, description="What must be equal of the call; the rest is free."
    )
    stdout: str = Field(default="", description="The standard output.")
    stderr: str = Field(default="", description="The standard error.")
    exit: Annotated[int, Field(ge=0, le=255)] = Field(default=0, description="The exit code.")

    @property
    def wanted(self) -> Mapping[str, Any]:
        """The values of `line` and `stdin` that must be equal."""
        return self.when.model_dump(exclude_none=True) if self.when else {}


class Command(FileModel):
    """A command: a program in front of the agent's `PATH` answers it."""

    noun = "command"

    name: Annotated[str, Field(pattern=r"^[A-Za-z0-9_][A-Za-z0-9_.+-]*$")] = Field(
        description="Name of the program, without a path."
    )
    replies: ListOf[CommandReply] = Field(
        default=(), description="Its replies; the first that fits the call is used."
    )

    location: Computed[Location] = Field(default=Location(""), exclude=True)

    @property
    def reads_stdin(self) -> bool:
        """Whether a reply depends on the standard input."""
        return any("stdin" in reply.wanted or reply.matches is not None for reply in self.replies)


@dataclass(frozen=True)
class ToolSet:
    """The tools of a test on one side, by server and name in a stable order, and the commands by
    name."""

    tools: Mapping[ToolKey, Tool] = field(default_factory=dict)
    commands: Mapping[str, Command] = field(default_factory=dict)

    @property
    def servers(self) -> tuple[str, ...]:
        """The agent's names of the servers, the default server first."""
        names = {server for server, _ in self.tools}
        return tuple(sorted(names, key=lambda name: (name != DEFAULT_SERVER, name)))


def combine_tools(entries: Iterable[Tool]) -> dict[ToolKey, Tool]:
    """The tools of entries; a later entry has precedence. Without `parameters`, an entry gives its
    replies to the tools of its name, in its server if it names one; `*` to tools without
    replies."""
    tools: dict[ToolKey, Tool] = {}
    others: list[Tool] = []
    for entry in entries:
        if entry.name == OTHERS:
            others.append(entry)
        elif not entry.is_reply:
            tools[entry.key] = entry
        else:
            for key in find_tools(tools, entry):
                tools[key] = _with_replies(tools[key], entry)
    for entry in reversed(others):
        for key, tool in tools.items():
            if not tool.replies and entry.server_name in (None, tool.server):
                tools[key] = _with_replies(tool, entry)
    return dict(sorted(tools.items()))


def describe_tool(entry: ToolEntry | Command) -> dict[str, Any]:
    """A tool, a server or a command as JSON data, without its location."""
    return entry.model_dump(exclude_unset=True, by_alias=True)


def find_tools(tools: Collection[ToolKey], entry: Tool) -> list[ToolKey]:
    """The keys of the tools for which an entry has replies."""
    return [key for key in tools if key[1] == entry.name and entry.server_name in (None, key[0])]


def _with_replies(tool: Tool, entry: Tool) -> Tool:
    return tool.model_copy(update={"replies": entry.replies})


@dataclass(frozen=True)
class ToolAccess:
    """How the agent of one attempt reaches its tools and commands.

    `url` is the address of the loopback server without a slash at its end, `token` the bearer token
    of this attempt, `servers` are the agent's names of MCP servers. `stubs` are the texts of the
    programs that stand in for commands, by name."""

    url: str
    token: str = field(repr=False)
    servers: tuple[str, ...] = ()
    stubs: Mapping[str, str] = field(default_factory=dict, repr=False)

    def address(self, server: str) -> str:
        """The URL of a server."""
        return f"{self.url}/mcp/{server}"

    @property
    def headers(self) -> dict[str, str]:
        """The headers of each request."""
        return {"Authorization": f"Bearer {self.token}"}

    def config(self, settings: Mapping[str, object] | None = None, **fields: object) -> str:
        """The JSON file of servers that clients read, with more `settings`; `fields` are more
        fields of each server."""
        servers = {name: {"type": "http", **self.client(name), **fields} for name in self.servers}
        return json.dumps({**(settings or {}), "mcpServers": servers}, indent=1)

    def client(self, server: str) -> dict[str, Any]:
        """The fields that a client needs for a server."""
        return {"url": self.address(server), "headers": self.headers}

    @property
    def clients(self) -> dict[str, Any] | None:
        """The fields for the first server, and for all by name; None without a server."""
        if not self.servers:
            return None
        servers = {name: self.client(name) for name in self.servers}
        return {**servers[self.servers[0]], "servers": servers}

    @property
    def variables(self) -> dict[str, str]:
        """The environment variables of a program that is a client of the first server."""
        if not self.servers:
            return {}
        return {
            "AGENTEVALS_MCP_URL": self.address(self.servers[0]),
            TOKEN_VARIABLE: self.token,
        }
