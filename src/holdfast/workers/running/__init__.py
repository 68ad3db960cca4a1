"""The running jobs of a worker."""
