"""The PostgreSQL store: every command is one call of a function in a schema of its own."""
