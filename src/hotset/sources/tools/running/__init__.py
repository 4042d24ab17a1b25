"""Processes and connections that tools run in: started at their first call, stopped when they are
idle."""

from math import inf

from hotset.files.scope import PROCESS, Budget

SERVERS = PROCESS.child("tool servers", Budget(tasks=inf))
"""The tasks and the thread of tools' servers: `Tooling.limit` bounds how many run."""
