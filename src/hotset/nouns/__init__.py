"""The data types of hotset: frozen data, nothing else."""
