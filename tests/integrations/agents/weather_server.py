"""An MCP server in a process of its own, which notes in a file which cities it was asked about: `FILE`, or `FILE PORT` for HTTP."""

import sys
from pathlib import Path

from mcp.server.mcpserver import MCPServer


def main(file: str, port: str | None = None) -> None:
    """Serve until the client is gone, or for ever."""
    server = MCPServer("weather server")

    @server.tool()
    def weather(city: str) -> str:
        with Path(file).open("a") as noted:
            noted.write(f"{city}\n")
        return f"sunny in {city}"

    if port is None:
        server.run("stdio")
    else:
        server.run("streamable-http", port=int(port))


if __name__ == "__main__":
    main(*sys.argv[1:])
