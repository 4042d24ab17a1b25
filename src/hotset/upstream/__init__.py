"""Sends calls: the only package that talks to providers."""
