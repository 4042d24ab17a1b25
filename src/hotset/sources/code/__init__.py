"""The project's own files as entries of the index: found, read safely, sealed, parsed, cut, kept up to date.

Read `indexing.py` first: it is the walk from a folder to the index. `scan` says which files, `opening` opens them, `texts` makes
them text and seals it, `parsing` has them parsed in processes that may die, `chunks` cuts them, `manifest` remembers.
"""
