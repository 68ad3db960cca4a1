"""The steps of a run, for tasks; the twin for threads is generated."""
