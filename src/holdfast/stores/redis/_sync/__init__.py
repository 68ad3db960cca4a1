# Generated from src/holdfast/stores/redis/_async/__init__.py by tools/unasync.py; do not edit.
"""What threads and tasks do alike: written for tasks, and generated for threads."""
