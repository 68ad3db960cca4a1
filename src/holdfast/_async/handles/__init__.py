"""The public faces: each method builds a command or calls a flow."""
