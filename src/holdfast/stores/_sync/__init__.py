# Generated from src/holdfast/stores/_async/__init__.py by tools/unasync.py; do not edit.
"""What threads and tasks do alike in stores across a wire: written for tasks, and `_sync` generated from it."""
