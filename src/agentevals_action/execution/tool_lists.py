"""The tools of a test on one side, with the tools that the side's own servers list."""

import asyncio
from collections import defaultdict
from collections.abc import Hashable, Sequence

from agentevals_action.errors import AttemptError
from agentevals_action.formatting import joined
from agentevals_action.model.suite import Suite, Test
from agentevals_action.model.tools import Tool, ToolServer, ToolSet, combine_tools
from agentevals_action.system.child_environment import ChildContext
from agentevals_action.system.program import Program


class ToolLists:
    """The lists of the servers of each side, made once in a run. `children` are the agents'
    programs."""

    def __init__(self, children: ChildContext) -> None:
        self._children = children
        self._locks = defaultdict[Hashable, asyncio.Lock](asyncio.Lock)
        self._known: dict[Hashable, Sequence[Tool] | AttemptError] = {}

    async def find(self, suite: Suite, test: Test) -> ToolSet:
        """The tools and commands of a test. AttemptError of kind `prepare` if a server has no
        list."""
        entries: list[Tool] = []
        for entry in test.tools:
            if isinstance(entry, Tool):
                entries.append(entry)
            elif isinstance(entry, ToolServer):
                entries += await self._list(suite, entry)
        commands = {command.name: command for command in test.commands}
        return ToolSet(combine_tools(entries), commands)

    async def _list(self, suite: Suite, server: ToolServer) -> Sequence[Tool]:
        key = suite.folder, server.command, server.env, server.server
        async with self._locks[key]:
            if key not in self._known:
                try:
                    self._known[key] = await self._ask(suite, server)
                except AttemptError as error:
                    self._known[key] = error
        tools = self._known[key]
        if isinstance(tools, AttemptError):
            raise tools.copy()
        return tools

    async def _ask(self, suite: Suite, server: ToolServer) -> Sequence[Tool]:
        from agentevals_action.tools.server_list import (  # jsonschema: only with tools
            list_server_tools,
        )

        listed = await list_server_tools(self._program(suite, server))
        of_server = {"server_name": server.server, "is_listed": True}
        return [
            tool.model_copy(update={**of_server, "parameters": tool.parameters or {}})
            for tool in listed
        ]

    def _program(self, suite: Suite, server: ToolServer) -> Program:
        children, root = self._children, suite.root
        if missing := [name for name in server.env if name not in children.allowed]:
            problem = f"`env` of a tool server names {joined(missing)}, which is not passed on"
            advice = "name it in the input `env` (`--env`), and set it in the environment"
            raise AttemptError("configuration", problem, advice)
        variables = {name: children.allowed[name] for name in server.env}
        user = children.isolation.choose_user(root)
        environment = {**children.workspace(root), **variables}
        program = children.program(server.command, suite.folder, user, environment)
        return children.with_packages(program, root, root, suite.folder)
