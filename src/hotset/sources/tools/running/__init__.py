"""Processes and connections that tools run in: started at their first call, stopped when nobody
needs them."""
