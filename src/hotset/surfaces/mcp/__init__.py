"""What agents reach over MCP: the project's code and everything that is kept of its conversations,
in tools that only read.

`protocol` speaks MCP, `stdio` carries it, `tools` says what there is and answers, `project` opens
what that takes. The protocol is written here because four methods are all it takes: importing the
official SDK costs 1.2 s of CPU at each start of an agent, and it brings 30 MB along.
"""
