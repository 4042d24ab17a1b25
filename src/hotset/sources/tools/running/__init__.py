"""Processes and connections that tools run in: started at their first call, stopped when they are
idle."""
