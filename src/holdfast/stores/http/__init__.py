"""The store behind a Holdfast server: its protocol, and its sync and async clients."""
