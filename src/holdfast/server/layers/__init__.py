"""What stands between the socket and the routes, one layer a file; each is an ASGI app around the next."""
