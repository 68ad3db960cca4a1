# Generated from src/holdfast/_async/flows/__init__.py by tools/unasync.py; do not edit.
"""Combines commands and waits."""
