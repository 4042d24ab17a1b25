"""A server that the tests start: the official SDK's own, over a pipe or, with a port, by HTTP."""

from mcp.server.mcpserver import MCPServer
from mcp_types import ToolAnnotations

server = MCPServer("sdk", version="1.2.3", instructions="words of the server")
counted = 0


@server.tool(annotations=ToolAnnotations(readOnlyHint=True))
def add(a: int, b: int) -> int:
    """Adds."""
    return a + b


@server.tool()
def count() -> str:
    global counted  # noqa: PLW0603 - it is this server's state
    counted += 1
    return str(counted)


@server.tool()
def fail() -> str:
    raise ValueError("it did not work")


if __name__ == "__main__":
    server.run()
