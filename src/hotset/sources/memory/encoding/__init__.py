"""What a session leaves behind: episodes, facts, procedures and pitfalls, by rules alone."""
