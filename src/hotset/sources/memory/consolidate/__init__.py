"""What becomes of memories: they replace, confirm and contradict each other, are merged, and can be
taken back."""
