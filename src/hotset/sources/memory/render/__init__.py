"""Memories as text for a model, step by step: topics, timeline, whole memories, and what that
costs."""
