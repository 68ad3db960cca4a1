"""Authentication and authorisation of callers."""
