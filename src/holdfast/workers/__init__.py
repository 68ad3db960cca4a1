"""What a worker is made of, apart from its conversation with the store: handlers, jobs, limits, and ways to run them."""
