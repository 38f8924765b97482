"""A shop's agent, built with pydantic-ai."""

from pydantic_ai import Agent

AGENT = Agent("openai-chat:gpt-5-mini", instructions="Answer briefly.")


@AGENT.tool_plain
def look_up(order: str) -> str:
    """Looks up an order."""
    return f"{order}: shipped"


async def result(messages):
    return await AGENT.run(messages[-1]["content"])


async def messages_json(messages) -> bytes:
    return (await result(messages)).all_messages_json()
