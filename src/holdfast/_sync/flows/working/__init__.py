# Generated from src/holdfast/_async/flows/working/__init__.py by tools/unasync.py; do not edit.
"""What a worker says to its store: claim and settle in one step, remember effects, show that it lives, hear of cancellations."""
