"""Flows: jobs that depend on each other, as data that a built-in task runs."""
