"""The command `holdfast mcp`: a store for AI assistants, by the Model Context Protocol."""
