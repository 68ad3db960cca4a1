"""The routes: one module for each kind of request."""
