"""Recalling: which memories fit a task and its time, in what order, and why."""
