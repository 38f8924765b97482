"""The MCP server of a shop. What a model knows of its tools is their names and descriptions."""

from mcp.server import MCPServer

server = MCPServer("shop")


@server.tool()
def find_order(order: int) -> str:
    """Finds the state of an order: whether it was shipped, and when it arrives."""
    raise NotImplementedError("the database of the shop")


@server.tool()
def refund(order: int) -> str:
    """Refunds an order. Only after the customer asked for the money back."""
    raise NotImplementedError("the bank of the shop")


if __name__ == "__main__":
    server.run("stdio")
