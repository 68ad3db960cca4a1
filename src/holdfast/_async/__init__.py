"""Flows and handles, written by hand for tasks; their twins for threads are generated into `_sync`."""
