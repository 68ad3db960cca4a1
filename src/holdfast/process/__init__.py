"""Forks, blocking calls, and what threads of one process open and call once."""
