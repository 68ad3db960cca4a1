"""The ASGI layers around the routes, one per file."""
