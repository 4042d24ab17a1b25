"""What words, sentences and definitions a text has: one routine for each question, for all rooms.
Pure."""
