"""Sends: the only room that talks to providers."""
