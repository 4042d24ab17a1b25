"""Memories step by step: which topics there are, what happened lately, and whole texts only where they are needed."""
