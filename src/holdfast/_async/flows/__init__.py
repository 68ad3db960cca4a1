"""Commands and waits strung together."""
