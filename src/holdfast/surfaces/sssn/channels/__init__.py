"""The channels, under the path that programs import them from."""
