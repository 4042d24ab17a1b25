"""Memories: made from sessions, found again, shown step by step, kept in order. Words of a conversation stay the source."""
