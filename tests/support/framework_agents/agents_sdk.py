"""A shop's agent, built with openai-agents."""

from agents import Agent, Runner, RunResult, function_tool, set_tracing_disabled

set_tracing_disabled(True)


@function_tool
def look_up(order: str) -> str:
    """Looks up an order."""
    return f"{order}: shipped"


AGENT = Agent(name="shop", instructions="Answer briefly.", model="gpt-5-mini", tools=[look_up])


async def result(messages) -> RunResult:
    return await Runner.run(AGENT, messages)


async def items(messages) -> list:
    return (await result(messages)).to_input_list()
