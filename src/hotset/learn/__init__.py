"""What was learned from sessions: a fold over events, and what follows from it."""
