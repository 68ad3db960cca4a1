# Generated from src/holdfast/_async/__init__.py by tools/unasync.py; do not edit.
"""Flows and handles, written by hand for tasks; their twins for threads are generated into `_sync`."""
