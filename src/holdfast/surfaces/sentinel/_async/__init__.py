"""The calls and the context, for tasks; their twins for threads are generated."""
