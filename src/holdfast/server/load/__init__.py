"""Limits on how much of the server one caller may use."""
