"""Schedules: rules that say when, entries that are stored, and what is due at a moment."""
