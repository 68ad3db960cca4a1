# Generated from src/holdfast/workers/steps/_async/__init__.py by tools/unasync.py; do not edit.
"""The steps of a run, for tasks; the twin for threads is generated."""
