"""The command `holdfast top`: queues and workers, live in the terminal."""
