"""Converts the arguments of a call to a command."""
