"""An agent that refunds orders, built with LangGraph. It knows nothing of traces."""

import sys

from langchain_core.tools import tool
from langchain_openai import ChatOpenAI
from langgraph.prebuilt import create_react_agent


@tool
def refund(order: str, amount: float) -> str:
    """Refunds an order."""
    return f"refunded {amount} for {order}"


GRAPH = create_react_agent(ChatOpenAI(model="gpt-5-mini"), [refund], prompt="Refund.")

if __name__ == "__main__":
    state = GRAPH.invoke({"messages": [("user", sys.stdin.read())]})
    print(state["messages"][-1].content)
