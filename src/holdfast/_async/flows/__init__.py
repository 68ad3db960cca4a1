"""Combines commands and waits."""
