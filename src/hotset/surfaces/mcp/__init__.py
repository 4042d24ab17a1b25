"""What agents reach over MCP: the project's tools, code, conversations and memories.

`protocol` speaks MCP, also over stdio, `mcp_tools` and `memory_tools` list the tools and answer,
`project` opens what that takes. The protocol is written here because four methods are all it takes:
importing the official SDK costs 1.2 s of CPU at each start of an agent, and it brings 30 MB along.
"""
