"""Finds: words and meaning side by side, derived from what is kept elsewhere, rebuilt whenever it has to be."""
