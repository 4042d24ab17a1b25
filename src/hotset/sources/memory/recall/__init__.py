"""Finds the memories that fit a question: time words, tasks, signals, ranking and learned
weights."""
