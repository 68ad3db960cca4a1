"""The public handles: each method builds a command or calls a flow."""
