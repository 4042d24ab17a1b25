"""From a session to what stays of it: episodes, facts, pitfalls, procedures and ledgers, by rules
alone."""
