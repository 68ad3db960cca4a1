# Generated from src/holdfast/_async/flows/working/__init__.py by tools/unasync.py; do not edit.
"""The worker's commands: claims and settles in one step, records effects, sends heartbeats, receives cancellations."""
