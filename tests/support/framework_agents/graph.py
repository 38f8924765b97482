"""A shop's agent, built with LangGraph."""

from langchain_core.messages import messages_to_dict
from langchain_core.tools import tool
from langchain_openai import ChatOpenAI
from langgraph.prebuilt import create_react_agent


@tool
def look_up(order: str) -> str:
    """Looks up an order."""
    return f"{order}: shipped"


GRAPH = create_react_agent(ChatOpenAI(model="gpt-5-mini"), [look_up], prompt="Answer briefly.")


def state(messages) -> dict:
    return GRAPH.invoke({"messages": messages})


def as_dicts(messages) -> list:
    return messages_to_dict(state(messages)["messages"])
