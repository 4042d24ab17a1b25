"""What flows through the house: frozen data, nothing else."""
