"""The parts of a worker apart from its commands: handlers, jobs, limits, and ways to run them."""
