"""An agent that refunds orders, built with openai-agents. It knows nothing of traces."""

import asyncio
import sys

from agents import Agent, Runner, function_tool


@function_tool
def refund(order: str, amount: float) -> str:
    """Refunds an order."""
    return f"refunded {amount} for {order}"


AGENT = Agent(name="support", instructions="Refund.", model="gpt-5-mini", tools=[refund])

if __name__ == "__main__":
    print(asyncio.run(Runner.run(AGENT, sys.stdin.read())).final_output)
