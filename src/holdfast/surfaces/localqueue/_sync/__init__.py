# Generated from src/holdfast/surfaces/localqueue/_async/__init__.py by tools/unasync.py; do not edit.
"""The async side of localqueue; the sync twins are generated."""
