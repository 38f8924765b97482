"""One call of an agent whose tools the suite answers."""

import asyncio
from collections.abc import Awaitable, Callable
from contextlib import AsyncExitStack
from dataclasses import replace

from agentevals_action.errors import AttemptError
from agentevals_action.model.target import Request
from agentevals_action.model.tools import ToolSet
from agentevals_action.model.trace import Trace
from agentevals_action.tools.mcp import serve_tools
from agentevals_action.tools.session import ToolSession


async def complete_with_tools(
    complete: Callable[[Request], Awaitable[Trace]], request: Request, tools: ToolSet
) -> Trace:
    """The answer of an agent that reaches the tools by `request.access`, with its calls as they
    arrived. Raises as `complete` does, and AttemptError for a call without a reply."""
    session = ToolSession(tools, request.workspace)
    try:
        async with AsyncExitStack() as stack:
            try:
                access = await stack.enter_async_context(serve_tools(session))
            except OSError as error:
                problem = f"the server of the tools cannot listen: {error.strerror}"
                raise AttemptError("target", problem) from None
            trace = await complete(replace(request, access=access))
    except AttemptError as error:
        if cause := session.find_error():  # the agent may have failed because of it
            cause.spent = error.spent
            raise cause from error
        raise
    return await asyncio.to_thread(session.finish, trace)
