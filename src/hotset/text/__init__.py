"""Words, sentences and definitions of a text: one routine for each question, shared by all
packages. Pure."""
