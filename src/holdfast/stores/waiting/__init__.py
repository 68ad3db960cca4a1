"""Waiting inside one process: the line of each topic, and what wakes those who wait."""
