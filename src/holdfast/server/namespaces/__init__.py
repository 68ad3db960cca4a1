"""Namespaces: names, quotas and usage of tenants that share one store."""
