"""The jobs that a worker runs at this moment."""
