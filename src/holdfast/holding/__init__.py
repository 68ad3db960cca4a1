"""Holds of claims and leases, and their renewal."""
