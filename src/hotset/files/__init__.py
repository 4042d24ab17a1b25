"""Disk, locks and threads: safe opens, atomic writes, file locks, `Lru`, `DeadlinePool`."""
