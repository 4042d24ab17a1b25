"""Memories as files, for people and programs that like files; and CONTINUITY.md, which both may write."""
