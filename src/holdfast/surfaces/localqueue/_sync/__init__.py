# Generated from src/holdfast/surfaces/localqueue/_async/__init__.py by tools/unasync.py; do not edit.
"""What tasks call; the twins for threads are generated."""
