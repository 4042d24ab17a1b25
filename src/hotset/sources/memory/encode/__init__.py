"""Encode a session as episodes, facts, pitfalls, procedures and ledgers, by rules alone."""
