"""What becomes of memories: they replace, confirm and contradict each other, are drawn together, age, and can be taken back."""
