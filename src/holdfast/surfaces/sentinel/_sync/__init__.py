# Generated from src/holdfast/surfaces/sentinel/_async/__init__.py by tools/unasync.py; do not edit.
"""The calls and the context, for tasks; their twins for threads are generated."""
