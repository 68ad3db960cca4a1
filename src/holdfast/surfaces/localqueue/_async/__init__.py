"""What tasks call; the twins for threads are generated."""
