# Generated from src/holdfast/_async/handles/__init__.py by tools/unasync.py; do not edit.
"""The public handles: each method builds a command or calls a flow."""
