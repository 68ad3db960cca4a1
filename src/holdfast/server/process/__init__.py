"""The process around the app: uvicorn, sockets, logs."""
