"""What a stretch of work was: its calls, failures, endings and the user's words."""
